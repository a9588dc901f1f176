"""What a TPP is told of its body: every mistake at once, in sentences of the bank's own (requests.md#bodies)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.headers import Headers
from emulator.api.json_body import _details, read_and_validate, read_with_duplicates, shape, validate
from emulator.api.operations import table
from emulator.bank.errors import MOST_MESSAGES, BankError, Message
from emulator.bank.formats import is_plain
from tests.cases import cases
from tests.unit.effort import calls
from tests.unit.shapes.bodies import INSTANT, PAYMENTS, SEPA, changed, mistakes

INSTANT_SHAPE = "emulator.api.shapes.payments:InstantTransfer"


def test_all_mistakes_of_a_body_are_told_at_once():
    body = {
        "instructedAmount": {"amount": 100, "currency": "XXX"},
        "creditorName": "a" * 71,
        "creditorAccount": {"bban": "99901000014\n", "currency": "NOK"},
        "creditorAddress": "Storgata 1",
        "debtorAccount": {"currency": "NOK"},
        "purposeCode": "XXXX",
        "remittanceInformationUnstructured": "😀",
        "remittanceInformationStructured": {"referenceType": 5},
    }
    assert sorted(mistakes("payments:InstantTransfer", body), key=str) == sorted(
        [
            ("instructedAmount.amount", "Text in quotes was expected; received the number 100."),
            (
                "instructedAmount.currency",
                'A currency code that the bank knows (ISO 4217), such as NOK, was expected; received "XXX".',
            ),
            ("creditorName", "At most 70 characters were expected; received 71."),
            ("creditorAccount.bban", "The bank's systems cannot process a control character (U+000A)."),
            (
                "creditorAccount.bban",
                "An account number of letters and digits was expected; received '99901000014\\n'.",
            ),
            ("creditorAddress", 'An object was expected; received "Storgata 1".'),
            ("debtorAccount", "Exactly one of bban and other was expected; received neither."),
            (
                "purposeCode",
                "One of INVS, SALA, IDCP, CASH, CORT, INTC, PENS, SSBE, SUPP, TAXS, TREA, VATX, LOAN or OTHR was "
                'expected; received "XXXX".',
            ),
            (
                "remittanceInformationUnstructured",
                "The bank's systems cannot process a character outside the basic multilingual plane, such as an emoji "
                "(U+1F600).",
            ),
            ("remittanceInformationStructured.reference", "This member is required."),
            ("remittanceInformationStructured.referenceType", "Text in quotes was expected; received the number 5."),
            (
                "remittanceInformationStructured",
                "Only one of remittanceInformationUnstructured and remittanceInformationStructured may be set in one "
                "request.",
            ),
        ],
        key=str,
    )


_TRANSACTION = '{"amount": 100, "currency": "NOK"}'
_SEPA = json.dumps(changed(SEPA, "creditorAddress.street", "Storgata\x7f"))


@cases(
    "shape_name, text",
    [
        ("payments:SepaTransfer", json.dumps(SEPA)),
        ("payments:SepaTransfer", json.dumps(SEPA, indent=2)),
        ("payments:SepaTransfer", json.dumps(SEPA, separators=(",", ":"))),
        ("payments:SepaTransfer", json.dumps(SEPA)[:-1] + ', "endToEndIdentification": "E2E-2"}'),
        ("payments:SepaTransfer", json.dumps({**SEPA, "endToEndIdentification": None})),
        ("payments:SepaTransfer", json.dumps({**SEPA, "purposeCode": "OTHR"})),
        ("payments:SepaTransfer", json.dumps(SEPA)[:-1]),
        ("payments:SepaTransfer", json.dumps(SEPA) + "1"),
        ("payments:SepaTransfer", " " + json.dumps(SEPA) + "\r\n"),
        ("payments:SepaTransfer", json.dumps(SEPA).replace("Rechnung", "Rech\\u0007nung")),
        ("payments:SepaTransfer", json.dumps(SEPA).replace("Rechnung", "Rech\\u006eung")),
        ("payments:SepaTransfer", json.dumps(SEPA).replace("100.00", "100.001")),
        ("payments:SepaTransfer", _SEPA),
        ("payments:InstantTransfer", json.dumps(INSTANT)),
        ("payments:BulkTransfer", json.dumps({**INSTANT, "x": "["})),
        ("payments:SigningBasket", "[" * 33 + "]" * 33),
        *(
            ("sandbox:PostedTransactions", _TRANSACTION.replace("100", number))
            for number in ("100", "1.5", "1.50", "1e2", "-0", "-0.0", "0.001", "0.00001", "1e16", "1" * 40, "NaN")
        ),
    ],
)
def test_a_body_is_read_the_same_whether_or_not_a_first_try_suffices(shape_name, text):
    def outcome(read):
        try:
            clean, warnings = read()
        except BankError as error:
            return error.messages
        return json.dumps(clean), warnings

    path, body = f"emulator.api.shapes.{shape_name}", text.encode()
    in_full = outcome(lambda: validate(path, *read_with_duplicates(body, Headers()), plain=is_plain(body)))
    assert outcome(lambda: read_and_validate(path, body, Headers())) == in_full


@cases("value", [None, [], "text", 5, True])
def test_a_body_that_is_no_object_has_a_mistake_without_a_path(value):
    assert [path for path, _ in mistakes("payments:SepaTransfer", value)] == [None]


def test_unknown_members_are_left_out_and_named_in_warnings():
    body = changed(changed(INSTANT, "instructedAmount.extra", [1]), "purposecode", "OTHR")
    clean, warnings = validate(INSTANT_SHAPE, body)
    assert clean == INSTANT
    text = "The bank does not know this member and has ignored it."
    assert warnings == [
        Message("FORMAT_ERROR", text, "instructedAmount.extra", "WARNING"),
        Message("FORMAT_ERROR", text, "purposecode", "WARNING"),
    ]
    assert body["purposecode"] == "OTHR"  # what was sent stays as it was sent


def test_unknown_members_are_no_mistake_beside_a_mistake():
    assert mistakes("payments:InstantTransfer", {**changed(INSTANT, "creditorName", 1), "unknown": 1}) == [
        ("creditorName", "Text in quotes was expected; received the number 1.")
    ]


def test_members_of_other_products_are_unknown():
    _, warnings = validate("emulator.api.shapes.payments:SepaTransfer", {**SEPA, "purposeCode": "OTHR"})
    assert [warning.path for warning in warnings] == ["purposeCode"]


def test_long_values_are_shortened_in_what_is_told():
    (problem,) = mistakes("payments:InstantTransfer", changed(INSTANT, "purposeCode", "x" * 10_000))
    assert len(problem[1]) < 250
    assert problem[1].endswith('xxx...".')


def test_a_flood_of_mistakes_and_warnings_is_cut():
    body = {"payments": [{}] * 500, "debtorAccount": {"bban": "1", "currency": "NOK"}}
    assert len(mistakes("payments:BulkTransfer", body)) == 1000
    _, warnings = validate(INSTANT_SHAPE, {**INSTANT, **{f"x{index}": 1 for index in range(3000)}})
    assert len(warnings) == 1000


@cases(
    "name, few, many",
    [
        ("sandbox:PostedTransactions", [{}] * 4000, [{}] * 40_000),
        ("sandbox:PostedTransactions", [1] * 4000, [1] * 40_000),
        ("payments:BulkTransfer", {"payments": [1] * 4000}, {"payments": [1] * 40_000}),
    ],
)
def test_ten_times_as_many_wrong_items_are_not_ten_times_the_work(name, few, many):
    shape(f"emulator.api.shapes.{name}")
    assert calls(lambda: mistakes(name, many)) < 4 * calls(lambda: mistakes(name, few))


def test_mistakes_far_into_a_long_list_are_told_with_their_place():
    items = [{"amount": 1}] * 20_000
    items[1500] = {"amount": "x", "unknown": 1}
    items[19_999] = {}
    assert [path for path, _ in mistakes("sandbox:PostedTransactions", items)] == ["[1500].amount", "[19999].amount"]


@cases("items", [1, 1001])
def test_a_list_in_the_place_of_an_object_is_one_mistake_however_long_it_is(items):
    assert mistakes("payments:InstantTransfer", [{}] * items) == [(None, "An object was expected; received a list.")]


def test_a_rule_over_several_members_reaches_the_end_of_a_long_list_with_unknown_members():
    items = [{"amount": 1, "unknown": 1}] * 12_000
    items[11_999] = {"amount": "1.234", "currency": "NOK"}
    [(path, problem)] = mistakes("sandbox:PostedTransactions", items)
    assert path == "[11999].amount"
    assert "NOK" in problem


def test_texts_are_the_banks_own_and_fit_a_message():
    for name, body in PAYMENTS.items():
        for path in body:
            for value in (None, 5, "", "x" * 200, [], {}, True, [{}], {"amount": {}}):
                for _, text in mistakes(f"payments:{name}", changed(body, path, value)):
                    assert len(text) <= 512
                    assert text.endswith(".")
                    assert "pydantic" not in text
                    assert "Another value" not in text


@cases("path", sorted({row.body for row in table() if isinstance(row.body, str)} | {INSTANT_SHAPE}))
def test_every_request_shape_refuses_nonsense_and_has_a_schema(path):
    with pytest.raises(BankError):
        validate(path, 5)
    schema = shape(path).types.json_schema()
    assert schema["type"] == "object"
    assert schema["description"]


@cases("path", sorted({path for row in table() for path in row.answers.values() if path}))
def test_every_answer_has_a_schema_that_json_can_write(path):
    schema = shape(path).types.json_schema()
    assert json.loads(json.dumps(schema)) == schema
    assert "additionalProperties" not in schema


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "1.00", "NOK", "2026-03-02", "x" * 150, "\n", "😀"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*INSTANT, "amount", "currency", "bban", "iban", "other", "payments", "reference"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=10,
)


@given(st.sampled_from(sorted(PAYMENTS)), JSON_VALUES, st.data())
def test_any_json_in_any_member_is_taken_or_refused_and_never_fails(name, value, data):
    body = PAYMENTS[name]
    path = data.draw(st.sampled_from(sorted(body)))
    for sent in (value, changed(body, path, value)):
        try:
            clean, _ = validate(f"emulator.api.shapes.payments:{name}", sent)
        except BankError as error:
            messages = error.messages
        else:
            assert set(clean) <= set(sent)
            continue
        assert messages
        assert all(message.code == "FORMAT_ERROR" for message in messages)


@cases("nested", [True, False])
def test_very_many_unknown_members_are_ignored(nested):
    entry = {"customer": "x", "account": {"iban": "NO2799911000012"}, "roles": ["VIEW"], "unknown": 1}
    sent = [dict(entry if nested else {"amount": 1, "unknown": 1}) for _ in range(MOST_MESSAGES + 1)]
    path, body = "PostedTransactions", sent
    if nested:
        path, body = "PostedAgreement", {"owner": "x", "name": "y", "engagements": sent}
    clean, warnings = validate(f"emulator.api.shapes.sandbox:{path}", body, (), plain=True)
    items = clean["engagements"] if nested else clean
    assert len(items) == MOST_MESSAGES + 1
    assert "unknown" not in items[-1]
    assert len(warnings) == MOST_MESSAGES


@cases("nested", [True, False])
def test_of_very_many_mistakes_the_first_are_told_and_the_others_cost_nothing(nested):
    """pydantic tells all of them in one call, in which no other request is answered."""
    listed, looked_at = [], []
    for size in (2000, 40_000):
        path, body = "PostedAgreement", {"owner": "x", "name": "y", "engagements": [1] * size}
        if not nested:
            path, body = "PostedTransactions", [{}] * size
        expected_shape = shape(f"emulator.api.shapes.sandbox:{path}")
        with pytest.raises(BankError) as refused:
            validate(f"emulator.api.shapes.sandbox:{path}", body, (), plain=True)
        listed.append([(message.path, message.text) for message in refused.value.messages])
        with pytest.raises(expected_shape.invalid) as invalid:
            expected_shape.check(body)
        looked_at.append(len(_details(expected_shape, body, invalid.value)))
    assert listed[0] == listed[1]
    assert len(listed[0]) == MOST_MESSAGES
    assert looked_at[0] == looked_at[1] < 20_000


GOOD = {"customer": "x", "account": {"iban": "NO2799911000012"}, "roles": ["VIEW"]}


def of_a_list(items, *, nested):
    if nested:
        return "emulator.api.shapes.sandbox:PostedAgreement", {"owner": "x", "name": "y", "engagements": items}
    return "emulator.api.shapes.sandbox:PostedTransactions", items


@cases("nested", [True, False])
def test_mistakes_among_very_many_unknown_members_are_all_told(nested):
    good = {**(GOOD if nested else {"amount": 1}), "unknown": 1}
    items = [dict(good) for _ in range(MOST_MESSAGES + 200)]
    for index in (3, MOST_MESSAGES + 100):
        items[index] = {**good, "roles" if nested else "amount": True}
    with pytest.raises(BankError) as refused:
        validate(*of_a_list(items, nested=nested), (), plain=True)
    assert [message.path.partition("[")[2].partition("]")[0] for message in refused.value.messages] == ["3", "1100"]


@cases("nested", [True, False])
def test_very_many_mistakes_cost_nothing_behind_very_many_good_entries_either(nested):
    items = [dict(GOOD if nested else {"amount": 1}) for _ in range(MOST_MESSAGES)] + [1] * 40_000
    path, body = of_a_list(items, nested=nested)
    with pytest.raises(shape(path).invalid) as invalid:
        shape(path).check(body)
    assert MOST_MESSAGES <= len(_details(shape(path), body, invalid.value)) < 20_000
