"""What a payment looks like: entries, details, the approval page, the control interface."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from emulator.api.operations.payments import details_shown
from emulator.bank import settlement
from emulator.bank.bank import Bank
from emulator.bank.documents import PsuMessage
from emulator.bank.payment import payment_views
from tests.known_state import EVEN, KARI
from tests.unit.payments import world
from tests.unit.payments.world import (
    BIC,
    BULK,
    CROSS_BORDER,
    DOMESTIC,
    PERIODIC,
    SEPA,
    STRAKS,
    advance,
    bulk,
    domestic,
    initiate,
    paid,
    payment,
    sepa,
)


def _members(entry: dict[str, Any]) -> dict[str, Any]:
    """The members that a transaction may have (accounts.md#transaction-details)."""
    return {name: value for name, value in entry.items() if name not in ("id", "accountId", "status", "shelf", "order")}


def test_a_domestic_entry_has_every_member_that_applies(bank: Bank) -> None:
    initiation = domestic(
        "100.00",
        to="9990 11 00019",
        endToEndIdentification="E2E-7",
        purposeCode="SALA",
        ultimateDebtor="Kari's mother",
        remittanceInformationStructuredArray=[{"reference": "18"}, {"reference": "INV 7", "referenceType": "CINV"}],
    )
    payment_id = paid(bank, DOMESTIC, initiation)
    advance(bank, seconds=3)
    (booked,) = world.entries(bank, "kari")
    both = {
        "creditorName": "Takstein Utleie AS",
        "creditorAccount": {"bban": "99901100019", "iban": "NO4299901100019", "currency": "NOK"},
        "creditorAgent": BIC,
        "debtorName": "Kari Kladd",
        "debtorAccount": {"bban": "99901000014", "iban": "NO8599901000014", "currency": "NOK"},
        "debtorAgent": BIC,
        "endToEndId": "E2E-7",
        "purposeCode": "SALA",
        "ultimateDebtor": "Kari's mother",
        "remittanceInformationStructuredArray": [{"reference": "18"}, {"reference": "INV 7", "referenceType": "CINV"}],
        "proprietaryBankTransactionCode": "Overføring",
        "bookingDate": "2026-03-02",
        "valueDate": "2026-03-02",
        "currency": "NOK",
    }
    issued = {"amount": "-100.00", "bankTransactionCode": "PMNT-ICDT-DMCT", "paymentId": payment_id}
    assert _members(booked) == {**both, **issued}
    (received,) = world.entries(bank, "even")
    assert _members(received) == {**both, "amount": "100.00", "bankTransactionCode": "PMNT-RCDT-DMCT"}


def test_a_creditor_elsewhere_is_shown_as_the_payment_names_it(bank: Bank) -> None:
    paid(bank, STRAKS, domestic(to="9992.10.00010", remittanceInformationUnstructured="Husleie"))
    abroad = sepa(creditorAgent="MUSTDE22XXX", to="DE19 9999 9999 0000 1234 56")
    paid(bank, CROSS_BORDER, abroad, who=EVEN)
    advance(bank, seconds=3)
    (norwegian,), (german, _fee) = (
        world.entries(bank, "kari"),
        sorted(world.entries(bank, "even-eur"), key=lambda entry: str(entry.get("creditorName", "~"))),
    )
    assert norwegian["creditorAccount"] == {"bban": "99921000010", "iban": "NO6699921000010", "currency": "NOK"}
    assert "creditorAgent" not in norwegian
    assert norwegian["remittanceInformationUnstructuredArray"] == ["Husleie"]
    assert german["creditorAccount"] == {"iban": "DE19999999990000123456", "currency": "EUR"}
    assert german["creditorAgent"] == "MUSTDE22XXX"
    assert german["bankTransactionCode"] == "PMNT-ICDT-XBCT"


def test_every_bank_transaction_code_has_4_to_14_characters() -> None:
    from emulator.bank import products

    codes = [code for product in products.table().values() for code in (product.issued, product.received)]
    assert all(4 <= len(code) <= 14 for code in [*codes, settlement.FEE_CODE])


@given(st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs", "Cc"]), max_size=140))
def test_text_is_carried_in_the_characters_of_the_payment_system(text: str) -> None:
    carried = settlement.carried(text, 140)
    carried.encode("latin-1")
    assert len(carried) <= 140
    assert settlement.carried(carried, 140) == carried
    assert (carried == text) == all(letter <= "\xff" for letter in text)


def test_text_whose_letters_become_several_stays_within_its_limit(bank: Bank) -> None:
    paid(bank, STRAKS, domestic(creditorName="㎏" * 70, remittanceInformationUnstructured="…" * 140))
    (pending,) = world.entries(bank, "kari", "pending")
    assert pending["creditorName"] == "kg" * 35
    assert pending["remittanceInformationUnstructuredArray"] == ["." * 140]


# the page where it is approved


def test_the_summary_is_in_plain_words(bank: Bank) -> None:
    for product, body, who, expected in (
        (
            DOMESTIC,
            domestic(requestedExecutionDate="2026-03-09", remittanceInformationStructured={"reference": "18"}),
            KARI,
            {"date": "2026-03-09", "kid": "18"},
        ),
        (
            DOMESTIC,
            domestic(
                remittanceInformationStructuredArray=[
                    {"reference": "18"},
                    {"reference": "INV 7", "referenceType": "CINV"},
                    {"reference": "1234567897", "referenceType": "SCOR"},
                ]
            ),
            KARI,
            {"kid": "18, 1234567897", "reference": "INV 7"},
        ),
        (CROSS_BORDER, sepa(), EVEN, {"product": "cross-border-credit-transfers", "fee": "4.26 EUR"}),
        (SEPA, sepa(), EVEN, {"product": "sepa-credit-transfers", "creditorAccount": world.GERMAN}),
        (
            PERIODIC,
            domestic(frequency="EveryTwoWeeks", startDate="2026-03-10", endDate="2026-09-01"),
            KARI,
            {"frequency": "EveryTwoWeeks", "startDate": "2026-03-10", "endDate": "2026-09-01", "first": "2026-03-10"},
        ),
        (
            PERIODIC,
            domestic(
                frequency="MonthlyVariable",
                startDate="2026-03-10",
                monthsOfExecution=["12", "3", "6"],
                dayOfExecution="31",
                executionRule="preceding",
            ),
            KARI,
            {"frequency": "MonthlyVariable", "first": "2026-03-31", "months": "3, 6, 12"} | {"day": "31"},
        ),
        (
            PERIODIC,
            domestic(frequency="Monthly", startDate="2026-03-10", dayOfExecution="5"),
            KARI,
            {"frequency": "Monthly", "startDate": "2026-03-10", "first": "2026-04-05", "day": "5"},
        ),
    ):
        (item,) = payment_views.summary(bank, payment(bank, initiate(bank, product, body, who=who)))
        assert item.items() >= expected.items()
        assert ("date" in item) == ("date" in expected)


def test_the_listing_shows_the_newest_first_with_their_history(bank: Bank) -> None:
    older = paid(bank, STRAKS, domestic())
    advance(bank, seconds=1)
    newer = initiate(bank, BULK, bulk("1.00", "2.00"))
    first, second = payment_views.listing(bank, 10)
    assert (first["paymentId"], second["paymentId"]) == (newer, older)
    assert first["instructedAmount"] == {"amount": "3.00", "currency": "NOK"}
    assert second["history"] == [
        {"status": "RCVD", "at": "2026-03-02T08:00:00+00:00"},
        {"status": "ACTC", "at": "2026-03-02T08:00:00+00:00"},
        {"status": "ACSP", "at": "2026-03-02T08:00:01+00:00"},
    ]
    assert second["due"] == "2026-03-02T08:00:03+00:00"
    assert payment_views.listing(bank, 1) == [first]


def test_every_message_for_the_customer_has_a_text_in_each_language(bank: Bank) -> None:
    for texts in payment_views.TEXTS.values():
        assert set(texts) == set(get_args(PsuMessage))
    shown = payment(bank, initiate(bank, DOMESTIC, domestic()))
    assert payment_views.psu_message(shown) is None
    shown["psuMessages"] = ["dateChanged", "textChanged"]
    both = [payment_views.TEXTS["nb"]["dateChanged"], payment_views.TEXTS["nb"]["textChanged"]]
    assert payment_views.psu_message(shown, "nb") == " ".join(both)
    assert details_shown(bank, shown, language="nb")["psuMessage"] == " ".join(both)
