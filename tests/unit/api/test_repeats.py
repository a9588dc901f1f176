"""Repeated creations: what comes back is what went out, and nothing is kept for ever."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.certificates import AuthenticatedTpp
from emulator.api.gates import SWEEP, WINDOW, once
from emulator.api.headers import Headers
from emulator.api.messages import Request
from emulator.api.operation import Call, Operation, Reply, Route
from emulator.api.render import encode
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.kinds import KINDS, REPEAT
from emulator.store import memory_store

NOBODY = ("", "")
NEVER = Reply(500, None)
ANSWERS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def bank() -> Bank:
    return Bank(memory_store(KINDS))


def asked(body: bytes = b"{}", *, method: str = "POST", target: str = "/v1/payments/x") -> Request:
    return Request(method, target, (), body, "http://127.0.0.1")


def create(
    bank: Bank,
    request_id: str,
    answer: Reply,
    request: Request | None = None,
    psu: tuple[str, str] = NOBODY,
    tpp: str = "TPP",
) -> Reply:
    """What the creation is answered, where its handler gives `answer`."""
    row = Operation("make", "POST", "/v1/things", "", "", lambda _: answer, "details", {}, remembers=True)
    route = Route.of(row, {})
    headers = Headers((("X-Request-ID", request_id), ("PSU-ID", psu[0]), ("PSU-Corporate-ID", psu[1])))
    call = Call(bank, request or asked(), route, row, {}, headers, "", "", tpp=AuthenticatedTpp(tpp, tpp, frozenset()))
    return once(call)


@given(body=ANSWERS)
def test_the_stored_answer_is_the_first_one_byte_for_byte(body: Any) -> None:
    bank = Bank(memory_store(KINDS))
    headers = (("Location", "/v1/payments/x/1"), ("X-Other", "ø"))
    first = create(bank, "one", Reply(201, body, headers))
    again = create(bank, "one", NEVER)
    assert first.body == again.body == encode(body)
    assert (again.status, again.headers) == (201, headers)


@pytest.mark.parametrize(
    ("request_now", "psu"),
    [
        (asked(b"{ }"), NOBODY),
        (asked(target="/v1/payments/x?a=b"), NOBODY),
        (asked(method="PUT"), NOBODY),
        (asked(), ("someone", "")),
        (asked(), ("", "someone")),
        (asked(target="/v1/payments/x\udcff"), NOBODY),
    ],
)
def test_another_request_under_the_same_id_is_a_conflict(
    bank: Bank, request_now: Request, psu: tuple[str, str]
) -> None:
    create(bank, "one", Reply(201, {}))
    with pytest.raises(BankError) as refused:
        create(bank, "one", NEVER, request_now, psu)
    assert refused.value.code == "CONFLICT"


def test_what_was_refused_is_not_remembered(bank: Bank) -> None:
    create(bank, "one", Reply(202, {"first": True}))
    assert create(bank, "one", Reply(201, {})).body == b"{}"


def test_each_tpp_has_request_ids_of_its_own(bank: Bank) -> None:
    create(bank, "one", Reply(201, {"first": True}))
    create(bank, "S|1", Reply(201, {"first": True}), tpp="TPP")
    for tpp in ("TPP|S", "TPP%7CS"):
        assert create(bank, "1", Reply(201, {"tpp": tpp}), tpp=tpp).body == encode({"tpp": tpp})
    assert create(bank, "one", Reply(201, {"first": False}), tpp="OTHER").body == b'{"first":false}'


def test_what_is_older_than_a_day_goes_as_others_come(bank: Bank) -> None:
    for number in range(3 * SWEEP):
        create(bank, f"old {number}", Reply(201, {}))
    bank.clock.advance(WINDOW + timedelta(seconds=1))
    for number in range(2 * SWEEP):
        create(bank, f"new {number}", Reply(201, {}))
    ids = [document["id"] for document in bank.documents.all(REPEAT)]
    assert ids == [f"TPP|new {number}" for number in range(2 * SWEEP)]


def test_what_is_not_a_day_old_stays(bank: Bank) -> None:
    for number in range(4 * SWEEP):
        create(bank, str(number), Reply(201, {}))
    assert bank.documents.count(REPEAT) == 4 * SWEEP


def test_an_id_that_is_free_again_does_not_keep_others_from_going(bank: Bank) -> None:
    """What is stored again becomes the newest; otherwise the oldest behind it would never be deleted."""
    bank.clock.set(now=bank.clock.now(), mode="frozen")
    create(bank, "one", Reply(201, {"first": True}))
    create(bank, "two", Reply(201, {}))
    bank.clock.advance(WINDOW - timedelta(seconds=1))
    assert create(bank, "one", NEVER).body == b'{"first":true}'
    bank.clock.advance(timedelta(seconds=1))
    assert create(bank, "one", Reply(201, {"first": False})).body == b'{"first":false}'
    assert [document["id"] for document in bank.documents.range(REPEAT, "created")] == ["TPP|two", "TPP|one"]
