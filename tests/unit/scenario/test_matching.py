"""Which requests a rule means: what is known of one is found by its name."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.api.messages import Request
from emulator.api.operations import operation_ids
from emulator.bank.validation import validate
from emulator.scenario.matching import Facts, When
from tests.cases import cases
from tests.unit.effort import calls
from tests.unit.scenario.reading import conditions

HEADERS = (("X-One", "1"), ("x-two", "2"), ("X-ONE", "3"))
TARGET = "/v1/accounts?a=1&b=2&a=3&empty="


@cases(
    "when, fits",
    [
        ({"headers": {"x-one": "1"}}, True),
        ({"headers": {"X-One": "3"}}, True),
        ({"headers": {"x-one": "2"}}, False),
        ({"headers": {"x-three": {"absent": True}, "X-TWO": {"absent": False}}}, True),
        ({"query": {"a": "3", "b": "2"}}, True),
        ({"query": {"A": "3"}}, False),
        ({"query": {"empty": ""}}, True),
        ({"headers": {"x-one": {"not": "2"}, "x-three": {"not": "2"}}}, True),
        ({"headers": {"x-one": {"not": "3"}}}, False),
        ({"query": {"a": {"not": {"in": ["2", "3"]}}}}, False),
        ({"path": {"not": "/v1/accounts"}}, False),
        ({"method": {"not": "GET"}}, False),
    ],
)
def test_any_value_of_a_name_may_fit(when: dict[str, object], fits: bool) -> None:
    assert conditions(when).fits(Facts(Request("GET", TARGET, HEADERS), None)) is fits


@cases("content_type", [(), ("text/plain",), ("application/json; charset=ISO-8859-1",)])
def test_a_body_is_read_in_the_charset_in_which_the_bank_reads_it(content_type: tuple[str, ...]) -> None:
    named = conditions({"body": {"creditorName": "Bjørn*"}})
    body = '{"creditorName": "Bjørn Ås"}'.encode("latin-1" if "8859" in str(content_type) else "utf-8")
    request = Request("POST", "/v1/payments/x", tuple(("Content-Type", value) for value in content_type), body)
    assert named.fits(Facts(request, None))


PERSON = "3f1c9a52-6c7b-4a0e-8f43-0d9a1c2b3e4f"


@cases(
    "stated, fits",
    [
        (PERSON, True),
        (PERSON.upper(), True),
        ({"in": ["x", PERSON.upper()]}, True),
        ({"not": PERSON.upper()}, False),
        ({"not": {"in": ["x", PERSON.upper()]}}, False),
    ],
)
def test_an_id_is_compared_without_regard_to_case_under_not_too(stated: object, fits: bool) -> None:
    sent = Facts(Request("GET", TARGET, (("PSU-ID", PERSON.upper()),)), None)
    assert conditions({"headers": {"PSU-ID": stated}}).fits(sent) is fits
    assert conditions({"psu": stated}).fits(sent) is fits


@cases(
    "when, problem",
    [
        (
            {"operation": {"not": "createPaymnt"}},
            "operation.not: There is no operation 'createPaymnt'; did you mean createPayment?",
        ),
        ({"product": {"not": {"in": ["sepa"]}}}, "product.not.in[0]: There is no product 'sepa'"),
        (
            {"operation": "createPayment", "method": {"not": "POST"}},
            "method: No request meets this condition and the others.",
        ),
        ({"operation": {"not": "*"}}, "operation: No request meets this condition."),
        ({"path": {"not": "*"}}, "path: No request meets this condition."),
        (
            {"operation": "getPayment", "payment": {"not": {"absent": False}}},
            "payment: No request meets this condition and the others.",
        ),
    ],
)
def test_a_rule_that_no_request_meets_is_refused_under_not_too(when: dict[str, object], problem: str) -> None:
    _, (first, *_) = validate(When, when)
    assert f"{first.where()}: {first.text}".startswith(problem)


class Counted(tuple[tuple[str, str], ...]):
    """Headers that count how often they are gone through."""

    times = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        self.times += 1
        return super().__iter__()


def test_the_headers_are_gone_through_once_however_many_are_asked_for() -> None:
    sent = Counted(HEADERS)
    named = conditions({"headers": {f"x{n}": {"absent": True} for n in range(50)}})
    assert named.fits(Facts(Request("GET", TARGET, sent), None))
    assert sent.times == 1


def test_an_operation_is_not_compared_with_each_word_of_a_long_list() -> None:
    def meant(named: list[str]) -> frozenset[str]:
        return When.model_validate({"operation": {"in": named}}).operations

    known = list(operation_ids())
    assert meant(["createPayment", "getUser*"]) == {"createPayment", "getUser", "getUsers"}
    assert calls(lambda: meant(known * 10)) < 10 * len(known) * 10
