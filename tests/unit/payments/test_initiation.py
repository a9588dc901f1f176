"""What a payment must fulfil to come into being, and what is kept of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CUSTOMER
from emulator.bank.payment import payments
from emulator.bank.payment.initiation import Script, warnings
from emulator.store import Document, Kind
from tests.known_state import EVEN, KARI, SIRI
from tests.unit.payments import world
from tests.unit.payments.world import (
    BULK,
    CROSS_BORDER,
    DOMESTIC,
    FIRM_AGREEMENT,
    GERMAN,
    NOW,
    PERIODIC,
    SEPA,
    STRAKS,
    bulk,
    domestic,
    initiate,
    payment,
    reject,
    sepa,
)

HELD_HERE = "99901100019"
FIRM = {"bban": "99911000012", "currency": "NOK"}


def refused(
    bank: Bank, product: tuple[str, str], initiation: dict[str, Any], **more: Any
) -> list[tuple[str, str | None]]:
    """Codes and paths of the refusal; nothing may have been written."""
    before = bank.documents.dump()
    with pytest.raises(BankError) as error:
        initiate(bank, product, initiation, **more)
    assert bank.documents.dump() == before
    return [(message.code, message.path) for message in error.value.messages]


# the debtor's account


def test_paying_from_an_account_that_is_not_the_customers_is_forbidden(bank: Bank) -> None:
    for debtor in (
        {"bban": "99901100019", "currency": "NOK"},  # another person's
        {"bban": "99911000012", "currency": "NOK"},  # a firm's
        {"bban": "99921000010", "currency": "NOK"},  # nobody's here
        {"iban": "NO2099901100027", "currency": "EUR"},
        {"other": {"identification": "99901000014", "schemeNameProprietary": "creditCardAccount"}, "currency": "NOK"},
    ):
        assert refused(bank, STRAKS, domestic(debtorAccount=debtor)) == [("FORBIDDEN", "debtorAccount")]


def test_the_currency_of_the_debtors_account_must_be_the_accounts(bank: Bank) -> None:
    debtor = {"bban": "99901000014", "currency": "EUR"}
    assert refused(bank, STRAKS, domestic(debtorAccount=debtor)) == [("FORMAT_ERROR", "debtorAccount.currency")]
    abroad = sepa(debtorAccount={"iban": "NO8599901000014", "currency": "EUR"}, requestedExecutionDate="2020-01-01")
    for _ in range(2):  # what is remembered of the debtor makes no difference
        assert refused(bank, SEPA, abroad) == [
            ("FORMAT_ERROR", "debtorAccount.currency"),
            ("EXECUTION_DATE_INVALID", "requestedExecutionDate"),
        ]


@pytest.mark.parametrize("change", [{"paymentsRemoved": True}, {"status": "blocked"}])
def test_an_account_that_is_shut_to_payments_is_forbidden(bank: Bank, change: dict[str, Any]) -> None:
    bank.documents.put(ACCOUNT, {**(bank.documents.get(ACCOUNT, "kari") or {}), **change})
    assert refused(bank, STRAKS, domestic()) == [("FORBIDDEN", "debtorAccount")]


KARIS_IBAN = {"iban": "NO8599901000014", "currency": "NOK"}


@pytest.mark.parametrize(
    ("kind", "identity", "change"),
    [
        (ACCOUNT, "kari", {"status": "blocked"}),
        (ACCOUNT, "kari", {"customerId": "c-even"}),
        (CUSTOMER, "c-kari", {"customerNumber": EVEN}),
        (CUSTOMER, "c-kari", {"type": "corporate"}),
    ],
)
def test_an_account_is_looked_at_anew_once_anything_about_it_changed(
    bank: Bank, kind: Kind[Document], identity: str, change: dict[str, Any]
) -> None:
    order = sepa(debtorAccount=KARIS_IBAN)
    initiate(bank, SEPA, order)
    document = bank.documents.get(kind, identity)
    assert document is not None
    bank.documents.put(kind, {**document, **change})
    assert refused(bank, SEPA, order) == [("FORBIDDEN", "debtorAccount")]
    bank.documents.put(kind, document)
    assert payment(bank, initiate(bank, SEPA, order))["debtorAccountId"] == "kari"


def test_an_order_from_the_same_account_is_looked_at_for_its_own_sake(bank: Bank) -> None:
    order = sepa(debtorAccount=KARIS_IBAN)
    initiate(bank, SEPA, order)
    assert refused(bank, SEPA, order, who=EVEN) == [("FORBIDDEN", "debtorAccount")]
    assert refused(bank, SEPA, order, context="CORPORATE") == [("FORBIDDEN", "debtorAccount")]
    assert refused(bank, SEPA, order, script=Script(permission_removed=True)) == [("FORBIDDEN", "debtorAccount")]
    in_euro = sepa(debtorAccount={**KARIS_IBAN, "currency": "EUR"})
    assert refused(bank, SEPA, in_euro) == [("FORMAT_ERROR", "debtorAccount.currency")]


def test_a_loan_is_no_account_to_pay_from(bank: Bank) -> None:
    bank.documents.put(ACCOUNT, {**(bank.documents.get(ACCOUNT, "kari") or {}), "cashAccountType": "LOAN"})
    assert refused(bank, STRAKS, domestic()) == [("PRODUCT_INVALID", "debtorAccount")]


def test_a_corporate_customer_pays_from_the_accounts_of_its_agreement(bank: Bank) -> None:
    firm = {"who": SIRI, "context": "CORPORATE", "agreement": FIRM_AGREEMENT}
    assert payment(bank, initiate(bank, STRAKS, domestic(debtorAccount=FIRM), **firm))["agreement"] == FIRM_AGREEMENT
    assert refused(bank, STRAKS, domestic(), **firm) == [("FORBIDDEN", "debtorAccount")]


def test_without_the_role_register_nobody_pays_from_an_account(bank: Bank) -> None:
    agreement = bank.documents.get(AGREEMENT, FIRM_AGREEMENT) or {}
    engagements = [{**engagement, "roles": ["VIEW"]} for engagement in agreement["engagements"]]
    bank.documents.put(AGREEMENT, {**agreement, "engagements": engagements})
    firm = {"who": SIRI, "context": "CORPORATE", "agreement": FIRM_AGREEMENT}
    assert refused(bank, STRAKS, domestic(debtorAccount=FIRM), **firm) == [("FORBIDDEN", "debtorAccount")]


def test_the_register_limit_of_an_engagement_is_the_most_that_may_be_registered(bank: Bank) -> None:
    world.agree(bank, registerLimit="100.00")
    firm = {"who": SIRI, "context": "CORPORATE", "agreement": FIRM_AGREEMENT}
    initiate(bank, STRAKS, domestic("100.00", debtorAccount=FIRM), **firm)
    over = domestic("100.01", debtorAccount=FIRM)
    assert refused(bank, STRAKS, over, **firm) == [("FORBIDDEN", "instructedAmount.amount")]


def test_of_a_bulk_the_register_limit_is_for_the_sum(bank: Bank) -> None:
    world.agree(bank, registerLimit="100.00")
    firm = {"who": SIRI, "context": "CORPORATE", "agreement": FIRM_AGREEMENT}
    initiate(bank, BULK, bulk("40.00", "60.00", debtor="99911000012"), **firm)
    over = bulk("40.00", "60.01", debtor="99911000012")
    assert refused(bank, BULK, over, **firm) == [("FORBIDDEN", "payments")]


def test_a_register_limit_is_that_of_the_account_paid_from(bank: Bank) -> None:
    world.agree(bank, registerLimit="100.00")
    agreement = bank.documents.get(AGREEMENT, FIRM_AGREEMENT) or {}
    del agreement["engagements"][0]["registerLimit"]
    bank.documents.put(AGREEMENT, agreement)
    initiate(
        bank, STRAKS, domestic("100.01", debtorAccount=FIRM), who=SIRI, context="CORPORATE", agreement=FIRM_AGREEMENT
    )


# the creditor's account


def test_a_norwegian_account_number_may_be_written_with_dots_and_blanks(bank: Bank) -> None:
    for number in ("99921000010", "9992.10.00010", "9992 10 00010"):
        initiate(bank, DOMESTIC, domestic(to=number))


def test_a_number_that_is_no_norwegian_account_is_refused(bank: Bank) -> None:
    for number in ("99921000011", "9992100001", "999210000100", "9992100001A", "٩٩٩٢١٠٠٠٠١٠", "9992-10-00010"):
        for product in (STRAKS, DOMESTIC):
            assert refused(bank, product, domestic(to=number)) == [("FORMAT_ERROR", "creditorAccount.bban")]


def test_an_account_of_this_bank_needs_no_check_digit(bank: Bank) -> None:
    bank.documents.put(ACCOUNT, {**(bank.documents.get(ACCOUNT, "even") or {}), "id": "odd", "bban": "12345678900"})
    stored = payment(bank, initiate(bank, STRAKS, domestic(to="1234.56.78900")))
    assert stored["creditorAccountId"] == "odd"


def test_an_iban_with_wrong_check_digits_is_refused(bank: Bank) -> None:
    for iban in ("DE19999999990000123457", "DE1999999999000012345", "XX19999999990000123456", "de"):
        assert refused(bank, CROSS_BORDER, sepa(to=iban), who=EVEN) == [("FORMAT_ERROR", "creditorAccount.iban")]


@pytest.mark.parametrize(
    ("product", "order"), [(STRAKS, domestic(to="12345678903")), (SEPA, sepa(to=GERMAN, debtorAccount=KARIS_IBAN))]
)
def test_a_creditor_is_looked_for_anew_once_an_account_changed(
    bank: Bank, product: tuple[str, str], order: dict[str, Any]
) -> None:
    def creditor() -> str | None:
        return payment(bank, initiate(bank, product, order)).get("creditorAccountId")

    assert creditor() is None
    even = bank.documents.get(ACCOUNT, "even") or {}
    bank.documents.put(ACCOUNT, {**even, "id": "new", "bban": "12345678903", "iban": GERMAN})
    assert [creditor(), creditor()] == ["new", "new"]
    bank.documents.delete(ACCOUNT, "new")
    assert creditor() is None


def test_an_iban_may_be_written_in_groups(bank: Bank) -> None:
    initiate(bank, SEPA, sepa(to="DE19 9999 9999 0000 1234 56"), who=EVEN)
    stored = payment(bank, initiate(bank, SEPA, sepa(to="NO42 9990 1100 019"), who=EVEN))
    assert stored["creditorAccountId"] == "even"


def test_sepa_reaches_sepa_countries_only(bank: Bank) -> None:
    outside = "TR039999901234567890123456"
    assert refused(bank, SEPA, sepa(to=outside), who=EVEN) == [("FORMAT_ERROR", "creditorAccount.iban")]
    initiate(bank, CROSS_BORDER, sepa(to=outside), who=EVEN)


# amounts


def test_straks_pays_in_nok_and_sepa_in_eur_only(bank: Bank) -> None:
    for currency in ("EUR", "SEK"):
        wrong = domestic(currency=currency)
        assert refused(bank, STRAKS, wrong) == [("FORMAT_ERROR", "instructedAmount.currency")]
    in_kroner = sepa()
    in_kroner["instructedAmount"]["currency"] = "NOK"
    assert refused(bank, SEPA, in_kroner, who=EVEN) == [("FORMAT_ERROR", "instructedAmount.currency")]


def test_straks_takes_at_most_its_limit(bank: Bank) -> None:
    initiate(bank, STRAKS, domestic("500000.00"))
    assert refused(bank, STRAKS, domestic("500000.01")) == [("FORMAT_ERROR", "instructedAmount.amount")]
    initiate(bank, DOMESTIC, domestic("500000.01"))
    bank.change_settings({"straks_limit": "99.99"})
    assert refused(bank, STRAKS, domestic("100.00")) == [("FORMAT_ERROR", "instructedAmount.amount")]


def test_missing_money_is_a_refusal_only_when_it_is_checked_at_initiation(bank: Bank) -> None:
    initiate(bank, DOMESTIC, domestic("10000.01"))
    bank.change_settings({"funds_check": "initiation"})
    assert refused(bank, DOMESTIC, domestic("10000.01")) == [("PAYMENT_FAILED", "debtorAccount")]
    assert refused(bank, BULK, bulk("9000.00", "1000.01")) == [("PAYMENT_FAILED", "debtorAccount")]
    initiate(bank, DOMESTIC, domestic("10000.00"))


def test_the_fee_counts_when_funds_are_checked_at_initiation(bank: Bank) -> None:
    bank.change_settings({"funds_check": "initiation"})
    enough_without_fee = Script(fee="0.01")
    messages = refused(bank, DOMESTIC, domestic("10000.00"), script=enough_without_fee)
    assert messages == [("PAYMENT_FAILED", "debtorAccount")]


# the reference


def _kid(reference: str, **more: str) -> dict[str, Any]:
    return {"remittanceInformationStructured": {"reference": reference, **more}}


def test_a_right_kid_is_accepted(bank: Bank) -> None:
    for reference in ("1234567897", "123456785", "18", "104-"):
        initiate(bank, STRAKS, domestic(**_kid(reference)))
        initiate(bank, DOMESTIC, domestic(remittanceInformationStructuredArray=[{"reference": reference}]))


def test_a_wrong_kid_is_refused(bank: Bank) -> None:
    for reference in ("1", "12", "12345", "ABC", "1" * 26, "12 34", "１８"):
        single, several = (
            _kid(reference),
            {"remittanceInformationStructuredArray": [{"reference": "18"}, {"reference": reference}]},
        )
        for product in (STRAKS, DOMESTIC):
            assert refused(bank, product, domestic(**single)) == [
                ("KID_INVALID", "remittanceInformationStructured.reference")
            ], reference
            path = "remittanceInformationStructuredArray[1].reference"
            assert refused(bank, product, domestic(**several)) == [("KID_INVALID", path)], reference


def test_a_flood_of_wrong_references_is_told_in_proportion(bank: Bank) -> None:
    body = domestic(remittanceInformationStructuredArray=[{"reference": "1"}] * 1500)
    assert len(refused(bank, STRAKS, body)) == 1000


def test_a_reference_of_another_type_is_no_kid(bank: Bank) -> None:
    initiate(bank, STRAKS, domestic(**_kid("invoice 7", referenceType="CINV")))
    messages = refused(bank, STRAKS, domestic(**_kid("invoice 7", referenceType="SCOR")))
    assert messages == [("KID_INVALID", "remittanceInformationStructured.reference")]


def test_an_account_that_demands_a_kid_is_not_paid_without(bank: Bank) -> None:
    missing = [("KID_MISSING", "remittanceInformationStructured")]
    assert refused(bank, STRAKS, domestic(to="99911000020")) == missing
    message = {"remittanceInformationUnstructured": "hello"}
    assert refused(bank, STRAKS, domestic(to="99911000020", **message)) == missing
    other = _kid("invoice 7", referenceType="CINV")
    assert refused(bank, STRAKS, domestic(to="99911000020", **other)) == missing
    initiate(bank, STRAKS, domestic(to="99911000020", **_kid("18")))


def test_the_structured_object_earns_a_warning_from_its_last_day_on(bank: Bank) -> None:
    initiation = domestic(**_kid("18"))
    (warning,) = warnings(bank, initiation)
    assert (warning.category, warning.path) == ("WARNING", "remittanceInformationStructured")
    in_bulk = bulk("1.00", "2.00")
    in_bulk["payments"][1] |= _kid("18")
    (warning,) = warnings(bank, in_bulk)
    assert warning.path == "payments[1].remittanceInformationStructured"
    assert warnings(bank, domestic(remittanceInformationStructuredArray=[{"reference": "18"}])) == []
    bank.clock.set(now=NOW.replace(year=2024, month=9, day=4, hour=21))
    assert warnings(bank, initiation) == []
    bank.clock.set(now=NOW.replace(year=2024, month=9, day=4, hour=22))  # midnight in Oslo
    assert len(warnings(bank, initiation)) == 1


def test_a_day_of_the_month_that_says_nothing_earns_a_warning(bank: Bank) -> None:
    for frequency, warned in (("Weekly", True), ("Daily", True), ("Monthly", False)):
        plain = domestic(startDate="2026-03-09", frequency=frequency)
        warned_of = [(warning.category, warning.path) for warning in warnings(bank, {**plain, "dayOfExecution": "5"})]
        assert warned_of == ([("WARNING", "dayOfExecution")] if warned else [])
        assert warnings(bank, plain) == [], frequency


# dates


def test_the_execution_date_is_not_past_and_at_most_365_days_ahead(bank: Bank) -> None:
    for product in (DOMESTIC, SEPA, BULK):
        for day, good in (("2026-03-01", False), ("2026-03-02", True), ("2027-03-02", True), ("2027-03-03", False)):
            date = {"requestedExecutionDate": day}
            body = sepa(**date) if product is SEPA else bulk("1.00", **date) if product is BULK else domestic(**date)
            who = EVEN if product is SEPA else KARI
            if good:
                initiate(bank, product, body, who=who)
            else:
                assert refused(bank, product, body, who=who) == [("EXECUTION_DATE_INVALID", "requestedExecutionDate")]


def test_today_is_the_oslo_date_of_bank_time(bank: Bank) -> None:
    bank.clock.set(now=NOW.replace(hour=23))  # past midnight in Oslo
    messages = refused(bank, DOMESTIC, domestic(requestedExecutionDate="2026-03-02"))
    assert messages == [("EXECUTION_DATE_INVALID", "requestedExecutionDate")]


def _standing(**more: Any) -> dict[str, Any]:
    return domestic(**{"frequency": "Monthly", "startDate": "2026-03-10", **more})


def test_a_standing_order_has_at_least_one_execution_in_its_time(bank: Bank) -> None:
    for more, path in (
        ({"startDate": "2026-03-01"}, "startDate"),
        ({"startDate": "2027-03-03"}, "startDate"),
        ({"endDate": "2026-03-09"}, "endDate"),
        ({"dayOfExecution": "9", "endDate": "2026-04-08"}, "endDate"),
        ({"frequency": "MonthlyVariable", "monthsOfExecution": ["7"], "endDate": "2026-07-09"}, "endDate"),
    ):
        assert refused(bank, PERIODIC, _standing(**more)) == [("EXECUTION_DATE_INVALID", path)]


# duplicates


def test_a_payment_alike_within_24_hours_is_a_conflict_only_where_duplicates_are_not_allowed(bank: Bank) -> None:
    initiate(bank, DOMESTIC, domestic())
    initiate(bank, DOMESTIC, domestic())
    assert refused(bank, DOMESTIC, domestic(), allow_duplicate=False) == [("CONFLICT", "allowLogicalDuplicate")]
    bank.clock.advance(timedelta(hours=24))
    initiate(bank, DOMESTIC, domestic(), allow_duplicate=False)


@pytest.mark.parametrize(
    "other",
    [
        domestic("100.01"),
        domestic(to=HELD_HERE),
        domestic(debtorAccount={"bban": "99901000022", "currency": "NOK"}),
        domestic(remittanceInformationUnstructured="something else"),
        domestic(remittanceInformationStructured={"reference": "18"}),
        domestic("10000"),
    ],
)
def test_another_debtor_creditor_amount_or_reference_makes_no_duplicate(bank: Bank, other: dict[str, Any]) -> None:
    initiate(bank, DOMESTIC, domestic())
    initiate(bank, DOMESTIC, other, allow_duplicate=False)


def test_a_message_and_a_reference_are_told_apart(bank: Bank) -> None:
    initiate(bank, DOMESTIC, domestic(remittanceInformationStructured={"reference": "18"}))
    for message in ("18", "|18", '["18"]'):
        initiate(bank, DOMESTIC, domestic(remittanceInformationUnstructured=message), allow_duplicate=False)


def test_the_same_amount_written_otherwise_is_a_duplicate(bank: Bank) -> None:
    def paid(amount: str, currency: str) -> dict[str, Any]:
        return {**sepa(), "instructedAmount": {"amount": amount, "currency": currency}}

    same = (("NOK", "10.00", "010.00"), ("NOK", "0.50", "000.50"), ("XDR", "1.1", "1.10000"), ("XDR", "1", "01.0"))
    for currency, amount, otherwise in same:
        initiate(bank, CROSS_BORDER, paid(amount, currency), who=EVEN)
        messages = refused(bank, CROSS_BORDER, paid(otherwise, currency), who=EVEN, allow_duplicate=False)
        assert messages == [("CONFLICT", "allowLogicalDuplicate")], amount


def test_an_account_of_this_bank_is_the_same_by_bban_and_iban(bank: Bank) -> None:
    def paid(account: dict[str, str]) -> dict[str, Any]:
        return {**sepa(), "creditorAccount": {**account, "currency": "NOK"}}

    initiate(bank, CROSS_BORDER, paid({"bban": "99901000014"}), who=EVEN)
    messages = refused(bank, CROSS_BORDER, paid({"iban": "NO8599901000014"}), who=EVEN, allow_duplicate=False)
    assert messages == [("CONFLICT", "allowLogicalDuplicate")]


def test_the_same_account_written_otherwise_is_a_duplicate(bank: Bank) -> None:
    euro = {"debtorAccount": {"bban": "99901100027", "currency": "EUR"}}
    initiate(bank, DOMESTIC, domestic("10.00", to="9992.10.00010", currency="EUR", **euro), who=EVEN)
    for product, alike in ((DOMESTIC, domestic("10.00", currency="EUR", **euro)), (SEPA, sepa(to="NO6699921000010"))):
        messages = refused(bank, product, alike, who=EVEN, allow_duplicate=False)
        assert messages == [("CONFLICT", "allowLogicalDuplicate")], product


def test_a_rejected_or_cancelled_payment_makes_no_duplicate(bank: Bank) -> None:
    reject(bank, initiate(bank, DOMESTIC, domestic()))
    cancelled = payment(bank, initiate(bank, DOMESTIC, domestic(), allow_duplicate=False))
    assert payments.cancel(bank, cancelled)
    initiate(bank, DOMESTIC, domestic(), allow_duplicate=False)


def test_a_duplicate_is_found_behind_many_that_were_rejected(bank: Bank) -> None:
    initiate(bank, DOMESTIC, domestic())
    for _ in range(25):
        reject(bank, initiate(bank, DOMESTIC, domestic()))
    assert refused(bank, DOMESTIC, domestic(), allow_duplicate=False) == [("CONFLICT", "allowLogicalDuplicate")]


def test_another_tpps_payment_makes_no_duplicate(bank: Bank) -> None:
    initiate(bank, DOMESTIC, domestic())
    initiate(bank, DOMESTIC, domestic(), allow_duplicate=False, tpp="PSDNO-FSA-000002")
