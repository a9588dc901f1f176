"""Which requests a rule means: what is known of one is found by its name."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.api.messages import Request
from emulator.api.operations import operation_ids
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
