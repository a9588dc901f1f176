"""Every field, length, value and either-or rule of payment bodies (payments.md#members-of-a-body)."""

from __future__ import annotations

from emulator.bank.money import CURRENCIES
from emulator.bank.products import table
from emulator.bank.reference import COUNTRIES
from tests.cases import cases
from tests.unit.shapes.bodies import (
    BULK,
    CROSS_BORDER,
    DROPPED,
    INSTANT,
    PAYMENTS,
    PERIODIC,
    SEPA,
    changed,
    mistakes,
    payment,
    wrong,
)


@cases("name", PAYMENTS)
def test_a_good_body_passes_as_it_was_sent(name):
    assert payment(name, PAYMENTS[name]) == PAYMENTS[name]


def test_every_product_has_its_shape():
    assert {product.body for product in table().values()} == set(PAYMENTS)


REQUIRED = {
    "InstantTransfer": """
        instructedAmount instructedAmount.amount instructedAmount.currency creditorName
        creditorAccount creditorAccount.bban creditorAccount.currency creditorAddress creditorAddress.country
        debtorAccount debtorAccount.currency
    """,
    "DomesticTransfer": "instructedAmount creditorName creditorAccount debtorAccount debtorAccount.currency",
    "PeriodicTransfer": "instructedAmount creditorName creditorAccount debtorAccount startDate frequency",
    "BulkTransfer": "payments debtorAccount payments.0.instructedAmount payments.1.creditorName",
    "SepaTransfer": """
        instructedAmount creditorName creditorAccount creditorAccount.iban creditorAccount.currency
        creditorAddress.country debtorAccount debtorAccount.iban debtorAccount.currency
    """,
    "CrossBorderTransfer": "instructedAmount creditorName creditorAccount creditorAccount.currency debtorAccount.iban",
}
OPTIONAL = {
    "InstantTransfer": """
        creditorAddress.street creditorAddress.buildingNumber creditorAddress.postalCode creditorAddress.city
        ultimateDebtor purposeCode remittanceInformationUnstructured
    """,
    "DomesticTransfer": "endToEndIdentification requestedExecutionDate remittanceInformationStructuredArray",
    "PeriodicTransfer": "endDate executionRule dayOfExecution",
    "BulkTransfer": """
        requestedExecutionDate batchBookingPreferred paymentInformationId payments.0.endToEndIdentification
    """,
    "SepaTransfer": """
        endToEndIdentification creditorAddress creditorAddress.street remittanceInformationUnstructured
        requestedExecutionDate
    """,
    "CrossBorderTransfer": "creditorAgent creditorAddress",
}


def each(members: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, path) for name, paths in members.items() for path in paths.split()]


def shown(path: str) -> str:
    """`payments.0.creditorName` as messages write it."""
    for index in ("0", "1"):
        path = path.replace(f".{index}.", f"[{index}].").removesuffix(f".{index}")
    return path


@cases("name, path", each(REQUIRED))
def test_a_required_member_may_not_be_left_out(name, path):
    body = changed(PAYMENTS[name], path, DROPPED)
    assert (shown(path), "This member is required.") in mistakes(f"payments:{name}", body)
    [(place, text)] = mistakes(f"payments:{name}", changed(PAYMENTS[name], path, None))
    assert place == shown(path)
    assert text.endswith(" was expected; received null.")


@cases("name, path", each(OPTIONAL))
def test_an_optional_member_may_be_left_out_but_not_be_null(name, path):
    assert wrong(name, changed(PAYMENTS[name], path, DROPPED)) == []
    assert wrong(name, changed(PAYMENTS[name], path, None)) == [shown(path)]


# (shape, member, longest, whether it may be empty)
LENGTHS = [
    ("InstantTransfer", "creditorName", 70, False),
    ("InstantTransfer", "creditorAddress.street", 70, True),
    ("InstantTransfer", "ultimateDebtor", 70, True),
    ("InstantTransfer", "remittanceInformationUnstructured", 140, False),
    ("DomesticTransfer", "remittanceInformationStructuredArray.0.reference", 35, False),
    ("DomesticTransfer", "remittanceInformationStructuredArray.0.referenceType", 35, False),
    ("DomesticTransfer", "remittanceInformationStructuredArray.0.referenceIssuer", 35, False),
    ("DomesticTransfer", "endToEndIdentification", 35, True),
    ("BulkTransfer", "paymentInformationId", 35, True),
    ("BulkTransfer", "payments.1.creditorName", 70, False),
    ("SepaTransfer", "endToEndIdentification", 35, True),
    ("SepaTransfer", "creditorName", 70, False),
    ("SepaTransfer", "remittanceInformationUnstructured", 140, False),
    ("SepaTransfer", "creditorAddress.street", 70, True),
]


@cases("name, path, longest, empty", LENGTHS)
def test_texts_are_taken_up_to_their_length_in_characters(name, path, longest, empty):
    where = shown(path).replace("Array.0", "Array[0]")
    for letter in ("a", "ø"):
        assert wrong(name, changed(PAYMENTS[name], path, letter * longest)) == []
    message = f"At most {longest} characters were expected; received {longest + 1}."
    assert mistakes(f"payments:{name}", changed(PAYMENTS[name], path, "ø" * (longest + 1))) == [(where, message)]
    for blank in ("", "  "):
        assert wrong(name, changed(PAYMENTS[name], path, blank)) == ([] if empty else [where])


@cases("path", ["creditorAccount.bban", "debtorAccount.bban"])
def test_a_bban_has_at_most_30_letters_digits_dots_and_blanks(path):
    for good in ("1", "1" * 30, "9990.10.00014", "9990 10 00014", "AbC1"):
        assert wrong("InstantTransfer", changed(INSTANT, path, good)) == []
    for bad in ("", " ", "..", "1" * 31, "9990-10-00014", "9990/1", "１２３", "ø"):
        assert wrong("InstantTransfer", changed(INSTANT, path, bad)) == [path]


@cases("path", ["creditorAccount.iban", "debtorAccount.iban"])
def test_an_iban_has_at_most_34_capital_letters_digits_and_blanks(path):
    for good in ("NO8599901000014", "NO85 9990 1000 014", "MT" + "1" * 32):
        assert wrong("SepaTransfer", changed(SEPA, path, good)) == []
    for bad in ("", "NO", "no8599901000014", "N185999", "MT" + "1" * 33, "NO85.9990", "NO8599901000014\u00a0"):
        assert wrong("SepaTransfer", changed(SEPA, path, bad)) == [path]


def test_a_card_account_is_named_by_identification_and_scheme():
    other = {"identification": "99901000014", "schemeNameProprietary": "creditCardAccount"}
    body = changed(INSTANT, "debtorAccount", {"currency": "NOK", "other": other})
    assert payment("InstantTransfer", body) == body
    assert wrong("InstantTransfer", changed(body, "debtorAccount.other.identification", DROPPED)) == [
        "debtorAccount.other.identification"
    ]
    assert wrong("InstantTransfer", changed(body, "debtorAccount.other.schemeNameProprietary", "debitCard")) == [
        "debtorAccount.other.schemeNameProprietary"
    ]


@cases("name", ["InstantTransfer", "DomesticTransfer", "PeriodicTransfer", "BulkTransfer"])
def test_the_debtor_account_has_exactly_one_of_bban_and_other(name):
    other = {"identification": "99901000014", "schemeNameProprietary": "creditCardAccount"}
    neither, both = {"currency": "NOK"}, {"currency": "NOK", "bban": "99901000014", "other": other}
    message = "Exactly one of bban and other was expected;"
    for account, members in ((neither, "neither"), (both, "both")):
        body = changed(PAYMENTS[name], "debtorAccount", account)
        assert mistakes(f"payments:{name}", body) == [("debtorAccount", f"{message} received {members}.")]


def test_a_cross_border_creditor_has_exactly_one_of_iban_and_bban():
    for account in ({"currency": "USD"}, {"currency": "USD", "iban": "GB82WEST12345698765432", "bban": "1"}):
        assert wrong("CrossBorderTransfer", changed(CROSS_BORDER, "creditorAccount", account)) == ["creditorAccount"]


@cases("form", ["remittanceInformationStructured", "remittanceInformationStructuredArray"])
def test_a_message_and_a_structured_reference_do_not_go_together(form):
    reference = {"reference": "2345676"}
    value = [reference] if form.endswith("Array") else reference
    both = changed(INSTANT, form, value)
    assert wrong("InstantTransfer", both) == [form]
    assert wrong("InstantTransfer", changed(both, "remittanceInformationUnstructured", DROPPED)) == []
    entry = changed(BULK, f"payments.1.{form}", value)
    assert wrong("BulkTransfer", changed(entry, "payments.1.remittanceInformationUnstructured", "a")) == [
        f"payments[1].{form}"
    ]


def test_both_structured_forms_are_read_and_an_empty_list_is_none():
    reference = {"reference": "2345676"}
    body = changed(INSTANT, "remittanceInformationUnstructured", DROPPED)
    body |= {"remittanceInformationStructured": reference, "remittanceInformationStructuredArray": [reference]}
    assert payment("InstantTransfer", body) == body
    assert wrong("InstantTransfer", changed(body, "remittanceInformationStructuredArray", [])) == [
        "remittanceInformationStructuredArray"
    ]


def test_every_purpose_code_of_the_interface_is_taken_and_no_other():
    codes = "INVS SALA IDCP CASH CORT INTC PENS SSBE SUPP TAXS TREA VATX LOAN OTHR"
    for code in codes.split():
        assert wrong("InstantTransfer", changed(INSTANT, "purposeCode", code)) == []
    for code in ("", "othr", "GDDS", "OTHR "):
        assert wrong("InstantTransfer", changed(INSTANT, "purposeCode", code)) == ["purposeCode"]


def test_every_currency_and_country_of_the_lists_is_taken_and_no_other():
    for currency in CURRENCIES:
        assert wrong("InstantTransfer", changed(INSTANT, "creditorAccount.currency", currency)) == []
    for country in COUNTRIES:
        assert wrong("InstantTransfer", changed(INSTANT, "creditorAddress.country", country)) == []
    for bad in ("", "nok", "XXX", "NOK ", "BTC", "CHE"):
        assert wrong("InstantTransfer", changed(INSTANT, "debtorAccount.currency", bad)) == ["debtorAccount.currency"]
    for bad in ("", "no", "NOR", "XK", "UK", "N"):
        assert wrong("InstantTransfer", changed(INSTANT, "creditorAddress.country", bad)) == ["creditorAddress.country"]


@cases(
    "amount, currency, text",
    [
        ("100", "NOK", 'NOK has exactly 2 digits after the point, such as 100.00; received "100".'),
        ("0.00", "NOK", "An amount is greater than 0."),
        (100, "NOK", "Text in quotes was expected; received the number 100."),
        (True, "NOK", "Text in quotes was expected; received true."),
        ([], "NOK", "Text in quotes was expected; received a list."),
    ],
)
def test_an_amount_is_text_with_exactly_the_minor_units(amount, currency, text):
    body = changed(INSTANT, "instructedAmount", {"amount": amount, "currency": currency})
    assert mistakes("payments:InstantTransfer", body) == [("instructedAmount.amount", text)]


@cases("name", PAYMENTS)
def test_every_product_checks_minor_units(name):
    member = "payments.0.instructedAmount.amount" if name == "BulkTransfer" else "instructedAmount.amount"
    assert wrong(name, changed(PAYMENTS[name], member, "100.0")) == [shown(member)]
    assert wrong(name, changed(PAYMENTS[name], member, "0.00")) == [shown(member)]


def test_amount_and_currency_are_both_reported_when_both_are_wrong():
    body = changed(INSTANT, "instructedAmount", {"amount": "0.00", "currency": "XXX"})
    assert wrong("InstantTransfer", body) == ["instructedAmount.currency", "instructedAmount.amount"]


@cases("name", ["DomesticTransfer", "BulkTransfer", "SepaTransfer", "CrossBorderTransfer"])
def test_a_date_is_real_and_in_the_plain_form(name):
    path = "requestedExecutionDate"
    assert wrong(name, changed(PAYMENTS[name], path, "2028-02-29")) == []
    for bad in ("", "2026-02-29", "2026-3-2", "20260302", "02.03.2026", "2026-03-02T00:00:00Z", "0000-01-01", 20260302):
        assert wrong(name, changed(PAYMENTS[name], path, bad)) == [path]


def test_the_members_of_a_standing_order():
    for frequency in (
        "Daily",
        "Weekly",
        "EveryTwoWeeks",
        "Monthly",
        "EveryTwoMonths",
        "Quarterly",
        "SemiAnnual",
        "Annual",
    ):
        other = changed(changed(PERIODIC, "frequency", frequency), "monthsOfExecution", DROPPED)
        assert wrong("PeriodicTransfer", other) == []
        assert wrong("PeriodicTransfer", changed(other, "monthsOfExecution", ["1"])) == ["monthsOfExecution"]
    for rule in ("following", "preceding", "preceeding"):
        assert wrong("PeriodicTransfer", changed(PERIODIC, "executionRule", rule)) == []
    for day in range(1, 32):
        assert wrong("PeriodicTransfer", changed(PERIODIC, "dayOfExecution", str(day))) == []
    for path, bad in (
        ("frequency", "monthly"),
        ("frequency", "MonthlyVariable "),
        ("executionRule", "Following"),
        ("dayOfExecution", "0"),
        ("dayOfExecution", "32"),
        ("dayOfExecution", "01"),
        ("dayOfExecution", 1),
        ("startDate", "2026-02-30"),
        ("endDate", "tomorrow"),
    ):
        assert wrong("PeriodicTransfer", changed(PERIODIC, path, bad)) == [path]


def test_the_months_of_a_variable_standing_order_are_1_to_11_different_ones():
    def months(value):
        return wrong("PeriodicTransfer", changed(PERIODIC, "monthsOfExecution", value))

    assert months(["1"]) == []
    assert months([str(month) for month in range(1, 12)]) == []
    assert months(DROPPED) == ["monthsOfExecution"]
    assert months([]) == ["monthsOfExecution"]
    assert months([str(month) for month in range(1, 13)]) == ["monthsOfExecution"]
    assert months(["1", "1"]) == ["monthsOfExecution"]
    assert months(["0", "13", "01", 1]) == [f"monthsOfExecution[{index}]" for index in range(4)]


def test_a_bulk_has_1_to_500_payments():
    entry = BULK["payments"][1]
    assert wrong("BulkTransfer", changed(BULK, "payments", [entry])) == []
    assert wrong("BulkTransfer", changed(BULK, "payments", [entry] * 500)) == []
    assert mistakes("payments:BulkTransfer", changed(BULK, "payments", [entry] * 501)) == [
        ("payments", "At most 500 items were expected; received 501.")
    ]
    assert mistakes("payments:BulkTransfer", changed(BULK, "payments", [])) == [
        ("payments", "At least 1 item was expected; received 0.")
    ]
    assert mistakes("payments:BulkTransfer", changed(BULK, "payments", {})) == [
        ("payments", "A list was expected; received an object.")
    ]


def test_each_entry_of_a_bulk_is_checked_under_its_own_path():
    body = changed(BULK, "payments.1.instructedAmount.amount", "1")
    body = changed(body, "payments.0.creditorAccount.bban", "")
    assert wrong("BulkTransfer", body) == ["payments[0].creditorAccount.bban", "payments[1].instructedAmount.amount"]


@cases("value", ["true", 1, 0, "", []])
def test_a_boolean_is_true_or_false_and_nothing_like_it(value):
    assert wrong("BulkTransfer", changed(BULK, "batchBookingPreferred", value)) == ["batchBookingPreferred"]


def test_a_creditor_agent_is_a_bic():
    for good in ("MUSTUS33", "MUSTUS33XXX"):
        assert wrong("CrossBorderTransfer", changed(CROSS_BORDER, "creditorAgent", good)) == []
    for bad in ("", "MUSTUS3", "MUSTUS33XX", "mustus33", "MUST1S33", "MUSTUS1OXXX"):
        assert wrong("CrossBorderTransfer", changed(CROSS_BORDER, "creditorAgent", bad)) == ["creditorAgent"]
