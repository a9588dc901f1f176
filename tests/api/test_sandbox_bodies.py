"""Every member of a body of sandbox data has an effect, and one that the bank does not know is named in a WARNING."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import zip_longest
from typing import Any

import pytest

from emulator.api.operations import table
from emulator.api.service import BankService
from emulator.api.shapes import sandbox
from emulator.ca import CertificateAuthority
from tests.api.desk import DeskClient, monday, ok, seeded_registry
from tests.known_state import EVEN, KARI

NUMBER, OTHER = "14888520999", "03817910999"
CUSTOMERS, ACCOUNTS, CARDS = "/v1/sandbox/customers", "/v1/sandbox/accounts", "/v1/sandbox/card-accounts"
AGREEMENTS = "/v1/sandbox/agreements"
NOK = {"amount": 1, "currency": "NOK"}
BBAN, IBAN = "99901000999", "NO1099901000999"
KARIS = "NO8599901000014"

# Of each body: its address, the least that it can have, and for each member another value.
CUSTOMER: dict[str, Any] = {"customerNumber": NUMBER, "name": "Nina Ny", "type": "private"}
ACCOUNT: dict[str, Any] = {"customerNumber": KARI, "bban": BBAN, "iban": IBAN, "currency": "NOK"}
CARD: dict[str, Any] = {"customerNumber": KARI, "maskedPan": "1234********5678", "currency": "NOK"}
ENGAGEMENT: dict[str, Any] = {"customer": KARI, "account": {"iban": KARIS}, "roles": ["VIEW"]}
ADDRESS = {"street": "Gata", "buildingNumber": "1", "postalCode": "0001", "city": "Oslo", "country": "NO"}
BODIES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "PostedCustomer": (CUSTOMERS, CUSTOMER, {"customerNumber": OTHER, "name": "Other", "type": "corporate"}),
    "PostedAccount": (
        ACCOUNTS,
        ACCOUNT,
        {
            "customerNumber": EVEN,
            "accountName": "Felles",
            "bban": "99901000980",
            "iban": "NO4299901000980",
            "currency": "EUR",
            "product": "Sparekonto",
            "cashAccountType": "SVGS",
            "creditLine": 10,
            "balances": [{"balanceType": "closingBooked", "balanceAmount": NOK}],
            "status": "blocked",
            "owners": [EVEN],
        },
    ),
    "PostedBalance": (
        ACCOUNTS,
        {**ACCOUNT, "balances": [{"balanceType": "closingBooked", "balanceAmount": NOK}]},
        {"balanceType": "expected", "balanceAmount": {"amount": 2, "currency": "NOK"}},
    ),
    "PostedTransaction": (
        f"{ACCOUNTS}/{{account}}/transactions",
        {"amount": 1, "currency": "NOK"},
        {
            "amount": 2,
            "currency": "NOK ",
            "valueDate": "2026-03-01",
            "bookingDate": "2026-03-01",
            "remittanceInformationUnstructured": "Text",
            "creditorName": "One",
            "creditorAccount": {"bban": "99921000010"},
            "debtorName": "Two",
            "debtorAccount": {"bban": "99921000010"},
            "bankTransactionCode": "PMNT-RCDT",
            "ultimateDebtor": "Three",
            "ultimateCreditor": "Four",
            "purposeCode": "SALA",
            "creditorId": "Five",
            "endToEndId": "Six",
            "proprietaryBankTransactionCode": "Seven",
        },
    ),
    "PostedCardAccount": (
        CARDS,
        CARD,
        {
            "customerNumber": EVEN,
            "maskedPan": "9999********5678",
            "currency": "EUR",
            "creditLimit": 100,
            "balances": [{"balanceType": "closingBooked", "balanceAmount": NOK}],
            "cardId": "one",
            "cardIdVNo": "two",
            "accountNumber": "99901000014",
            "expiry": "2030-01",
            "name": "Name",
            "product": "Product",
            "status": "blocked",
        },
    ),
    "AcceptorAddress": (
        f"{CARDS}/{{card}}/transactions",
        {"transactionAmount": NOK, "cardAcceptorAddress": ADDRESS},
        {"street": "Veien", "buildingNumber": "2", "postalCode": "0002", "city": "Bergen", "country": "SE"},
    ),
    "PostedCardTransaction": (
        f"{CARDS}/{{card}}/transactions",
        {"transactionAmount": NOK},
        {
            "cardTransactionId": "one",
            "terminalId": "two",
            "bookingDate": "2026-03-01",
            "transactionDate": "2026-03-01",
            "transactionAmount": {"amount": 2, "currency": "NOK"},
            "originalAmount": {"amount": 2, "currency": "EUR"},
            "merchantCategoryCode": "5411",
            "markupFee": NOK,
            "markupFeePercentage": 1,
            "cardAcceptorId": "three",
            "cardAcceptorAddress": {"city": "Oslo"},
            "maskedPan": "9999********5678",
            "transactionDetails": "four",
            "invoiced": True,
            "proprietaryBankTransactionCode": "five",
        },
    ),
    "EngagedAccount": (f"{AGREEMENTS}/{{agreement}}/engagements", ENGAGEMENT, {"iban": "NO6399901000022"}),
    "PostedEngagement": (
        f"{AGREEMENTS}/{{agreement}}/engagements",
        ENGAGEMENT,
        {
            "customer": EVEN,
            "account": {"iban": "NO6399901000022"},
            "roles": ["REGISTER"],
            "registerLimit": 1,
            "approvalLimit": 1,
        },
    ),
    "PostedAgreement": (
        AGREEMENTS,
        {"owner": KARI, "name": "One"},
        {"owner": EVEN, "name": "Two", "signatures": 2, "engagements": [ENGAGEMENT]},
    ),
    "ContactInformation": ("{contact}", {"email": "one@tpp.example"}, {"email": "two@tpp.example"}),
}
INSIDE = {
    "PostedBalance": ("balances", 0),
    "AcceptorAddress": ("cardAcceptorAddress",),
    "EngagedAccount": ("account",),
}
ALIKE = {
    ("PostedTransaction", "currency"),  # the only value that it can have is the account's
    ("PostedTransaction", "creditorId"),  # not shown to TPPs, as its description and the manual say
}


class World:
    """A bank with known ids, and what a TPP sees of it."""

    def __init__(self, authority: CertificateAuthority) -> None:
        self.service: BankService = monday(seeded_registry(authority))
        self.tpp = DeskClient(self.service, authority)
        ids = {"account": "accounts", "card": "card-accounts"}
        self.places = {
            name: next(
                one.get("id") or one["resourceId"]
                for one in ok(self.tpp.get(f"/v1/sandbox/{kind}"))
                if one["customerNumber"] == KARI
            )
            for name, kind in ids.items()
        }
        self.places["contact"] = f"/v1/tpps/{self.tpp.tpp_id}/contact-information"
        first = ok(self.tpp.post(AGREEMENTS, json={"owner": EVEN, "name": "First"}), 201)
        self.places["agreement"] = first["agreementId"]

    def send(self, path: str, body: Any) -> Any:
        address = path.format(**self.places)
        put = path == "{contact}"
        return ok(self.tpp.request("PUT" if put else "POST", address, json=body), 200 if put else 201)

    def seen(self, path: str) -> Iterator[Any]:
        """All answers about people and accounts, one after another; first that of an address."""
        get = self.tpp.get
        first = get(path.format(**self.places))
        yield first.json() if first.status == 200 else None
        for path in (f"{CUSTOMERS}?includeAccounts=true&includeAgreements=true", ACCOUNTS, CARDS, AGREEMENTS):
            yield ok(get(path))
        yield ok(get(f"{ACCOUNTS}/{self.places['account']}/transactions"))
        for who in (KARI, EVEN):
            self.tpp.log_in(who)
            yield ok(get("/v1/accounts?withBalance=true"))
            cards = ok(get("/v1/card-accounts?withBalance=true"))
            yield cards
            for card in cards["cardAccounts"]:
                yield ok(get(f"/v1/card-accounts/{card['resourceId']}/transactions"))
        self.tpp.log_in(KARI)
        path = f"/v1/accounts/{self.places['account']}/transactions"
        for one in get(path).json()["transactions"]["booked"][:2]:
            yield ok(get(f"{path}/{one['transactionId']}"))


def test_each_body_and_member_has_its_values_here() -> None:
    forms = {name: form for name, form in vars(sandbox).items() if hasattr(form, "__required_keys__")}
    declared = {
        name: form for name, form in forms.items() if name.startswith(("Posted", "Engaged", "Acceptor", "Contact"))
    }
    members = {name: set(form.__annotations__) for name, form in declared.items()}
    assert members == {name: set(others) for name, (*_, others) in BODIES.items()}


@pytest.mark.parametrize("name", BODIES)
def test_every_member_has_an_effect(authority: CertificateAuthority, name: str) -> None:
    unchanged = list(seen_after(authority, name, {}))
    for member, other in BODIES[name][2].items():
        value = other.strip() if isinstance(other, str) else other
        pairs = zip_longest(seen_after(authority, name, {member: value}), unchanged)
        assert all(now == before for now, before in pairs) == ((name, member) in ALIKE), member


def seen_after(authority: CertificateAuthority, name: str, change: dict[str, Any]) -> Iterator[Any]:
    """What a TPP sees after it has sent the least body of this form with a change."""
    path, least, _ = BODIES[name]
    world = World(authority)
    body = deepcopy(least)
    inside: Any = body
    for step in INSIDE.get(name, ()):
        inside = inside[step]
    inside.update(change)
    world.send(path, body)
    return world.seen(path)


def test_an_unknown_member_is_named_wherever_it_is(authority: CertificateAuthority) -> None:
    world = World(authority)
    for name, (path, least, _) in BODIES.items():
        body = {**least, "colour": "red"}
        if name in INSIDE:
            continue
        for sent in ([body], body) if path.endswith("transactions") else (body,):
            if name == "PostedAccount":
                body |= {"bban": "99901000980", "iban": "NO4299901000980"}
            answer = world.send(path, sent)
            prefix, item = ("[0].", answer[0]) if isinstance(sent, list) else ("", answer)
            warned = [(one["category"], one["code"], one["path"]) for one in item["tppMessages"]]
            assert warned == [("WARNING", "FORMAT_ERROR", f"{prefix}colour")], name
    taking = {row.id for row in table() if row.column == "sandbox" and row.body is not None}
    assert len(taking) == 11, "a new operation has its body above"
