"""The bodies of sandbox data: lenient in form, never rounding in silence (sandbox-data.md)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.headers import Headers
from emulator.api.json_body import read_json, validate
from tests.cases import cases
from tests.unit.shapes.bodies import DROPPED, changed, mistakes

ACCOUNT = {
    "customerNumber": "12345678",
    "accountName": "Brukskonto",
    "bban": "12345678901",
    "iban": "NO1112345678901",
    "currency": "NOK",
    "product": "Brukskonto",
    "cashAccountType": "CACC",
    "creditLine": "1000.00",
    "balances": [{"balanceType": "closingBooked", "balanceAmount": {"amount": "-100.50", "currency": "NOK"}}],
}
TRANSACTION = {
    "amount": -100,
    "currency": "NOK",
    "valueDate": "2026-03-02",
    "bookingDate": "2026-03-02",
    "remittanceInformationUnstructured": "Takk",
    "creditorName": "Navn",
    "creditorAccount": {"iban": "", "bban": "12345678901"},
    "bankTransactionCode": "PMNT-ICDT-DMCT",
    "purposeCode": "OTHR",
}


def clean(name: str, body: Any) -> Any:
    return validate(f"emulator.api.shapes.sandbox:{name}", body)[0]


def paths(name: str, body: Any) -> list[str | None]:
    return [path for path, _ in mistakes(f"sandbox:{name}", body)]


def test_a_customer_has_8_to_11_digits_and_a_type_in_any_case():
    body = {"customerNumber": "12345678", "name": "Navn", "type": "Private"}
    assert clean("PostedCustomer", body) == body
    for good in ("12345678901", "310001007"):
        assert paths("PostedCustomer", changed(body, "customerNumber", good)) == []
    for bad in ("1234567", "123456789012", "1234567x", "١٢٣٤٥٦٧٨", 12345678, ""):
        assert paths("PostedCustomer", changed(body, "customerNumber", bad)) == ["customerNumber"]
    for good in ("private", "CORPORATE"):
        assert paths("PostedCustomer", changed(body, "type", good)) == []
    assert mistakes("sandbox:PostedCustomer", changed(body, "type", "business")) == [
        ("type", 'One of private, corporate was expected; received "business".')
    ]
    for member in body:
        assert paths("PostedCustomer", changed(body, member, DROPPED)) == [member]


def test_an_account_needs_customer_numbers_and_currency_and_nothing_else():
    assert clean("PostedAccount", ACCOUNT) == ACCOUNT
    needed = ("customerNumber", "bban", "iban", "currency")
    assert paths("PostedAccount", {member: ACCOUNT[member] for member in needed}) == []
    for member in needed:
        assert paths("PostedAccount", changed(ACCOUNT, member, DROPPED)) == [member]


def test_account_numbers_need_the_right_characters_and_length_but_no_check_digits():
    body = changed(changed(ACCOUNT, "bban", "1234.56.78901"), "iban", "NO11 1234 5678 901")
    assert clean("PostedAccount", body) == ACCOUNT
    foreign = changed(changed(ACCOUNT, "bban", "WEST12345698765432"), "iban", "GB00WEST12345698765432")
    assert paths("PostedAccount", foreign) == []
    for bad in ("1234567890", "123456789012", "1234567890a", "1234-5678901", ""):
        assert paths("PostedAccount", changed(ACCOUNT, "bban", bad)) == ["bban"]
    for bad in (
        "NO111234567890",
        "NO11123456789012",
        "no1112345678901",
        "NO1112345678X01",
        "N O111234567890",
        "",
        "XX",
    ):
        assert paths("PostedAccount", changed(ACCOUNT, "iban", bad)) == ["iban"]


def test_a_refused_account_number_is_told_its_length():
    expectation = " of at most 30 letters and digits was expected; received "
    body = changed(changed(ACCOUNT, "bban", "1" * 31), "iban", "GB00WEST12345698765432")
    assert mistakes("sandbox:PostedAccount", body) == [("bban", f'An account number{expectation}"{"1" * 31}".')]
    card = {"customerNumber": "12345678", "maskedPan": "1234", "currency": "NOK", "accountNumber": "1" * 31}
    assert mistakes("sandbox:PostedCardAccount", card) == [("accountNumber", f'A BBAN{expectation}"{"1" * 31}".')]


@cases("kind", ["CACC", "SVGS", "LOAN", "TRAN", "TAXE", "Current", "Savings", "savings"])
def test_account_types_are_iso_codes_or_the_old_names(kind):
    assert paths("PostedAccount", changed(ACCOUNT, "cashAccountType", kind)) == []
    assert paths("PostedAccount", changed(ACCOUNT, "cashAccountType", kind + "X")) == ["cashAccountType"]


@cases(
    "sent, expected",
    [(b"100", 100), (b"-100.5", -100.5), (b"1e2", 100), (b'"100"', "100"), (b'"-0.50"', "-0.50"), (b"0", 0)],
)
def test_amounts_are_numbers_or_text_and_stay_what_they_were(sent, expected):
    body = read_json(b'{"amount": %s, "currency": "NOK"}' % sent, Headers())
    cleaned = clean("PostedTransactions", body)
    assert cleaned == {"amount": expected, "currency": "NOK"}
    assert type(cleaned["amount"]) is type(expected)


@cases(
    "sent",
    [
        *('"1.0.0"', '"1e2"', '"+1"', '""', '"ten"', "true", "null", "[]", "{}", '"٣"', '" 1"'),
        *("1e300", "1e-300", "0.1234567", '"0.123456"', "1e18", '"1234567890123456789"', "9" * 40),
    ],
)
def test_what_is_no_amount_or_one_without_measure_is_refused(sent):
    assert paths("PostedTransactions", read_json(f'{{"amount": {sent}}}'.encode(), Headers())) == ["amount"]


def test_a_number_that_json_cannot_keep_must_be_text():
    body = read_json(b'{"amount": 1234567890123456.78}', Headers())
    message = "This number has more digits than a JSON number can hold: write the amount as text; received "
    assert mistakes("sandbox:PostedTransactions", body) == [("amount", message + "the number 1234567890123456.78.")]
    assert paths("PostedTransactions", {"amount": "1234567890123456.78"}) == []


def test_no_amount_is_finer_than_its_currency():
    message = "NOK has at most 2 digits after the point."
    assert mistakes("sandbox:PostedTransactions", {"amount": "1.001", "currency": "NOK"}) == [("amount", message)]
    assert mistakes("sandbox:PostedTransactions", {"amount": Decimal("1.001"), "currency": "NOK"}) == [
        ("amount", message)
    ]
    assert paths("PostedTransactions", {"amount": "1.5", "currency": "JPY"}) == ["amount"]
    assert paths("PostedTransactions", {"amount": "1.100", "currency": "NOK"}) == []
    body = changed(ACCOUNT, "balances.0.balanceAmount.amount", "1.001")
    assert mistakes("sandbox:PostedAccount", body) == [("balances[0].balanceAmount.amount", message)]
    assert paths("PostedAccount", changed(ACCOUNT, "creditLine", "1.001")) == ["creditLine"]
    assert paths("PostedAccount", changed(ACCOUNT, "creditLine", "-1")) == ["creditLine"]
    card = {"customerNumber": "12345678", "maskedPan": "1234", "currency": "NOK", "creditLimit": "1.001"}
    assert mistakes("sandbox:PostedCardAccount", card) == [("creditLimit", message)]
    limit = {"amount": "1.001", "currency": "NOK"}
    assert mistakes("sandbox:PostedCardAccount", {**card, "creditLimit": limit}) == [("creditLimit.amount", message)]


def test_a_credit_limit_is_checked_like_every_amount_with_a_currency():
    card = {"customerNumber": "12345678", "maskedPan": "1234", "currency": "NOK"}
    limit = {"amount": "10.00", "currency": "NOK"}
    read, warnings = validate(
        "emulator.api.shapes.sandbox:PostedCardAccount", {**card, "creditLimit": {**limit, "x": 1}}
    )
    assert (read, [one.path for one in warnings]) == ({**card, "creditLimit": limit}, ["creditLimit.x"])
    for member in limit:
        assert paths("PostedCardAccount", {**card, "creditLimit": {**limit, member: "?"}}) == [f"creditLimit.{member}"]
    assert paths("PostedCardAccount", {**card, "creditLimit": {**limit, "amount": -1}}) == ["creditLimit"]


def test_currencies_at_odds_are_told_with_all_else():
    body = changed(changed(ACCOUNT, "balances.0.balanceAmount.currency", "EUR"), "creditLine", "-1")
    problem = ("balances[0].balanceAmount.currency", "The currency is not the account's, NOK.")
    assert mistakes("sandbox:PostedAccount", body)[1:] == [problem]
    assert paths("PostedAccount", body) == ["creditLine", problem[0]]
    card = {"customerNumber": "12345678", "maskedPan": "1234", "currency": "NOK", "balances": body["balances"]}
    limit = {"amount": 1, "currency": "EUR"}
    assert paths("PostedCardAccount", {**card, "creditLimit": limit}) == ["creditLimit.currency", problem[0]]
    assert paths("PostedCardAccount", {**card, "currency": "EURO"}) == ["currency"]
    assert paths("PostedCardAccount", {**card, "currency": ["NOK"], "balances": [1]}) == ["currency", "balances[0]"]
    assert paths("PostedAccount", {**ACCOUNT, "creditLimit": limit}) == []


def test_transactions_come_one_by_one_or_in_a_list():
    assert clean("PostedTransactions", TRANSACTION) == TRANSACTION
    assert clean("PostedTransactions", [TRANSACTION, {"amount": 1}]) == [TRANSACTION, {"amount": 1}]
    assert paths("PostedTransactions", [TRANSACTION, {"amount": "x"}, {}, 5]) == ["[1].amount", "[2].amount", "[3]"]
    assert paths("PostedTransactions", [{"amount": "1.001", "currency": "NOK"}]) == ["[0].amount"]
    assert paths("PostedTransactions", "x") == [None]
    assert paths("PostedCardTransactions", [{"transactionAmount": {"amount": "1.001", "currency": "NOK"}}, {}]) == [
        "[1].transactionAmount",
        "[0].transactionAmount.amount",
    ]


def test_what_the_bank_shows_may_be_posted_back():
    """Absent text is shown as ""."""
    shown = {
        **TRANSACTION,
        "id": "1",
        "creditorName": "",
        "valueDate": "",
        "bankTransactionCode": "",
        "purposeCode": "",
        "_links": {"self": {"href": "/v1", "verbs": ["GET"]}},
    }
    cleaned, warnings = validate("emulator.api.shapes.sandbox:PostedTransactions", [shown])
    assert cleaned == [{name: value for name, value in shown.items() if name not in ("id", "_links")}]
    assert {warning.path for warning in warnings} == {"[0].id", "[0]._links"}


@cases(
    "member, good, bad",
    [
        ("valueDate", "2026-03-02", "2026-02-30"),
        ("bookingDate", "", "02.03.2026"),
        ("bookingDate", "1990-01-01", "1989-12-31"),
        ("valueDate", "2200-12-31", "2201-01-01"),
        ("bankTransactionCode", "a" * 4, "a" * 3),
        ("bankTransactionCode", "a" * 14, "a" * 15),
        ("purposeCode", "a" * 4, "a" * 5),
        ("creditorName", "a" * 70, "a" * 71),
        ("remittanceInformationUnstructured", "a" * 140, "a" * 141),
        ("currency", "EUR", "EURO"),
    ],
)
def test_members_of_a_transaction_have_the_limits_of_account_information(member, good, bad):
    assert paths("PostedTransactions", {**TRANSACTION, member: good}) == []
    assert paths("PostedTransactions", {**TRANSACTION, member: bad}) == [member]


def test_an_agreement_has_engagements_with_roles():
    engagement = {"customer": "12345678", "account": {"iban": "NO11 1234 5678 901"}, "roles": ["VIEW", "REGISTER"]}
    body = {"owner": "310001007", "name": "Avtale", "engagements": [{**engagement, "registerLimit": 1000}]}
    assert clean("PostedAgreement", body)["engagements"][0]["account"] == {"iban": "NO1112345678901"}
    assert paths("PostedAgreement", {"owner": "310001007", "name": "Avtale"}) == []
    assert paths("PostedAgreement", changed(body, "engagements.0.roles", ["VIEW", "PAY"])) == [
        "engagements[0].roles[1]"
    ]
    assert paths("PostedAgreement", changed(body, "engagements.0.roles", [])) == ["engagements[0].roles"]
    assert paths("PostedAgreement", changed(body, "engagements.0.registerLimit", "-1")) == [
        "engagements[0].registerLimit"
    ]
    assert paths("PostedEngagement", changed(engagement, "account", {})) == ["account.iban"]
    assert paths("PostedEngagement", {**engagement, "approvalLimit": -1}) == ["approvalLimit"]


@cases("mail", ["a@b.example", "open-banking+x@mail.tpp.example"])
def test_a_contact_address_is_an_e_mail_address(mail):
    assert clean("ContactInformation", {"email": mail}) == {"email": mail}


@cases("mail", ["", "a", "a@b", "@b.example", "a@b..example", "a b@c.example", "a@b.example\n", 5, None])
def test_what_is_no_e_mail_address_is_refused(mail):
    assert set(paths("ContactInformation", {"email": mail})) == {"email"}


@given(st.integers(-(10**15), 10**15), st.integers(0, 5), st.booleans())
def test_whatever_amount_is_taken_can_be_written_as_json_and_read_back_exactly(units, digits, as_text):
    number = Decimal(units).scaleb(-digits)
    amount = clean("PostedTransactions", {"amount": format(number, "f") if as_text else number})["amount"]
    assert Decimal(str(orjson.loads(orjson.dumps(amount)))) == number
