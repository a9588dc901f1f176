"""What operations answer is what their rows, and so the OpenAPI document, say they answer."""

from __future__ import annotations

from emulator.api.operations import table
from tests.api.desk import DeskClient, ok
from tests.known_state import BULK, CROSS_BORDER, DOMESTIC, KARI, PERIODIC, SEPA, STRAKS
from tests.unit.payments.world import bulk, domestic, sepa

SETTLED_BY_CARD = {"identification": "99901000014", "schemeNameProprietary": "creditCardAccount"}
TRANSACTION = {
    "amount": -349.5,
    "currency": "NOK",
    "valueDate": "2026-02-20",
    "bookingDate": "2026-02-20",
    "remittanceInformationUnstructured": "Lunsj",
    "creditorName": "Kafé",
    "creditorAccount": {"bban": "99921100090", "iban": "NO4099921100090", "currency": "NOK"},
    "debtorName": "Kari",
    "debtorAccount": {"bban": "99901000014"},
    "bankTransactionCode": "PMNT-CCRD-POSD",
    "ultimateDebtor": "Datter",
    "ultimateCreditor": "Eier",
    "purposeCode": "SALA",
    "creditorId": "X1",
    "endToEndId": "ORDER-1",
    "proprietaryBankTransactionCode": "VARE",
}
CARD_TRANSACTION = {
    "cardTransactionId": "CT-1",
    "terminalId": "T1",
    "bookingDate": "2026-02-20",
    "transactionDate": "2026-02-20",
    "transactionAmount": {"amount": -586.75, "currency": "NOK"},
    "originalAmount": {"amount": -50, "currency": "EUR"},
    "merchantCategoryCode": "5942",
    "markupFee": {"amount": -1.5, "currency": "NOK"},
    "markupFeePercentage": 1.75,
    "cardAcceptorId": "LIBRAIRIE",
    "cardAcceptorAddress": {
        "street": "Rue",
        "buildingNumber": "1",
        "postalCode": "75000",
        "city": "Paris",
        "country": "FR",
    },
    "maskedPan": "541234******0042",
    "transactionDetails": "Librairie",
    "invoiced": False,
    "proprietaryBankTransactionCode": "VARE",
}


def test_a_handler_is_annotated_with_the_shapes_that_its_row_declares() -> None:
    """The type checker compares what it builds with its annotation."""
    for row in table():
        declared = ["None" if name is None else name.rpartition(".")[2] for name in row.answers.values()]
        annotated = str(row.handler.__annotations__["return"]).removeprefix("Reply[").removesuffix("]")
        if annotated != "Any":  # made of a table, which takes the shape from the annotation of another function
            assert set(annotated.split(" | ")) == {name.replace(":", ".") for name in declared}, row.id


REFERENCE = {"reference": "2345676", "referenceType": "KID", "referenceIssuer": "Bank"}
ADDRESS = {"street": "Storgata", "buildingNumber": "1", "postalCode": "0001", "city": "Oslo", "country": "NO"}
EVERYTHING = {
    "creditorAddress": ADDRESS,
    "endToEndIdentification": "ORDER-1",
    "ultimateDebtor": "Datter Eksempel",
    "purposeCode": "SALA",
}
LATER = {"requestedExecutionDate": "2026-03-20"}
EVERY_MEMBER = {
    "message": (DOMESTIC, domestic(**EVERYTHING, **LATER, remittanceInformationUnstructured="Takk")),
    "reference": (DOMESTIC, domestic(**EVERYTHING, remittanceInformationStructured=REFERENCE)),
    "references": (DOMESTIC, domestic(**EVERYTHING, remittanceInformationStructuredArray=[REFERENCE] * 2)),
    "instant": (STRAKS, domestic(creditorAddress=ADDRESS, ultimateDebtor="Datter", purposeCode="SALA")),
    "card": (DOMESTIC, domestic(debtorAccount={"other": SETTLED_BY_CARD, "currency": "NOK"})),
    "standing": (
        PERIODIC,
        domestic(
            **EVERYTHING,
            startDate="2026-03-10",
            endDate="2027-03-10",
            frequency="MonthlyVariable",
            monthsOfExecution=["3", "6"],
            dayOfExecution="10",
            executionRule="following",
        ),
    ),
    "bulk": (
        BULK,
        {
            **bulk("1.00"),
            **LATER,
            "payments": [{**bulk("1.00")["payments"][0], **EVERYTHING, "remittanceInformationUnstructured": "Takk"}],
            "batchBookingPreferred": True,
            "paymentInformationId": "LOT-1",
        },
    ),
    "SEPA": (
        SEPA,
        sepa(
            debtorAccount={"iban": "NO8599901000014", "currency": "NOK"},
            creditorAddress={**ADDRESS, "country": "DE"},
            endToEndIdentification="ORDER-1",
            remittanceInformationUnstructured="Takk",
            **LATER,
        ),
    ),
    "cross-border": (
        CROSS_BORDER,
        sepa(debtorAccount={"iban": "NO8599901000014", "currency": "NOK"}, creditorAgent="EXAMDE33"),
    ),
}


def test_a_payment_shows_every_member_of_its_initiation(tpp: DeskClient) -> None:
    for case in EVERY_MEMBER:
        path, body = EVERY_MEMBER[case]
        tpp.log_in(KARI)
        created = ok(tpp.post(path, json=body), 201)
        details = ok(tpp.get(f"{path}/{created['paymentId']}"))
        assert details | body == details, case


def test_transactions_of_the_sandbox_show_every_member_that_was_posted(tpp: DeskClient) -> None:
    accounts = ok(tpp.get("/v1/sandbox/accounts"))
    cards = ok(tpp.get("/v1/sandbox/card-accounts"))
    own = f"/v1/sandbox/accounts/{accounts[0]['id']}/transactions"
    posted = ok(tpp.post(own, json=TRANSACTION), 201)
    assert posted | TRANSACTION == posted
    card = f"/v1/sandbox/card-accounts/{cards[0]['resourceId']}/transactions"
    posted = ok(tpp.post(card, json=CARD_TRANSACTION), 201)
    assert posted | CARD_TRANSACTION == posted
    shown = ok(tpp.get(f"{card}/{posted['id']}"))
    assert set(CARD_TRANSACTION) <= set(shown)
