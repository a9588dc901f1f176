"""The checker finds what it must, and nothing else: against histories of a simulated bank, whole and broken."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.postgres.history import (
    REFUSED,
    Creation,
    EventStream,
    Operation,
    Walk,
    judge_creations,
    judge_events,
    judge_money,
    judge_payments,
    judge_walks,
    linearizable,
    step,
    unexplained,
)


def op(kind: str, began: float, ended: float, result: str | None, payment: str = "p") -> Operation:
    return Operation(kind, payment, began, ended, result)


CREATED = op("create", 0, 1, "RCVD")


@pytest.mark.parametrize(
    "history",
    [
        [],
        [CREATED, op("read", 2, 3, "RCVD")],
        [CREATED, op("approve", 2, 3, "ACTC"), op("advance", 4, 5, "ACSP"), op("read", 6, 7, "ACSP")],
        # Two at once: either may have been first.
        [CREATED, op("approve", 2, 5, "ACTC"), op("read", 3, 4, "RCVD")],
        [CREATED, op("approve", 2, 5, "ACTC"), op("read", 3, 4, "ACTC")],
        [CREATED, op("cancel", 2, 5, "CANC"), op("approve", 2, 5, REFUSED)],
        # No answer: it may have acted, late or never.
        [CREATED, op("approve", 2, 3, None), op("read", 4, 5, "RCVD")],
        [CREATED, op("approve", 2, 3, None), op("read", 4, 5, "ACTC")],
        [CREATED, op("approve", 2, 3, None), op("read", 4, 5, "RCVD"), op("read", 6, 7, "ACTC")],
        [op("create", 0, 1, None), op("read", 2, 3, "RCVD")],
        [CREATED, op("read", 2, 3, None)],
    ],
)
def test_what_one_bank_could_have_answered_is_fine(history: list[Operation]) -> None:
    assert linearizable(history)
    assert unexplained(history) is None
    assert list(judge_payments(history)) == []


@pytest.mark.parametrize(
    "history, marked",
    [
        # A stale read: the answer of the approval was there before.
        ([CREATED, op("approve", 2, 3, "ACTC"), op("read", 4, 5, "RCVD")], 2),
        # A read that goes back.
        ([CREATED, op("approve", 2, 9, "ACTC"), op("read", 3, 4, "ACTC"), op("read", 5, 6, "RCVD")], 3),
        # A skipped lock: both acted.
        ([CREATED, op("approve", 2, 5, "ACTC"), op("cancel", 2, 5, "CANC")], 2),
        ([CREATED, op("advance", 2, 5, "ACTC"), op("advance", 2, 6, "ACTC")], 2),
        # A write that was answered, and lost.
        ([CREATED, op("read", 2, 3, REFUSED)], 1),
        ([CREATED, op("approve", 2, 3, "ACTC"), op("advance", 4, 5, "ACTC")], 2),
        # It acted before anybody asked.
        ([CREATED, op("read", 2, 3, "ACTC"), op("approve", 4, 5, "ACTC")], 1),
        # What was refused has changed nothing (REFUSED is an answer too).
        ([CREATED, op("approve", 2, 3, REFUSED), op("read", 4, 5, "RCVD")], 1),
        # Without an answer, but it cannot act twice.
        ([CREATED, op("advance", 2, 3, None), op("read", 4, 5, "ACTC"), op("read", 6, 7, "ACSP")], 3),
    ],
)
def test_what_no_bank_could_have_answered_is_found(history: list[Operation], marked: int) -> None:
    assert not linearizable(history)
    assert unexplained(history) == history[marked]
    (problem,) = judge_payments([*history, op("create", 0, 1, "RCVD", "another")])
    assert problem.kind == "history"
    assert problem.text.startswith("payment p is not linearizable")


KINDS = ("read", "approve", "advance", "cancel")


def simulated(chooser: random.Random, *, stale: bool = False) -> list[Operation]:
    """A history of concurrent clients of one payment, each operation acting at a moment within its time.

    With `stale` one read, which began after the last change was answered, shows what was before that change.
    """
    moments = sorted((chooser.uniform(1, 20), chooser.choice(KINDS)) for _ in range(chooser.randrange(2, 14)))
    status: str | None = "RCVD"
    history = [op("create", 0, 0.5, "RCVD")]
    before = status
    for at, kind in moments:
        after, answer = step(status, kind)
        if after != status:
            before = status
        status = after
        lost = chooser.random() < 0.1
        history.append(op(kind, at - chooser.uniform(0, 3), at + chooser.uniform(0, 3), None if lost else answer))
    if stale:
        history.append(op("read", 30, 31, before))
    chooser.shuffle(history)
    return history


@given(st.randoms(use_true_random=False))
def test_every_history_of_a_bank_that_is_right_is_fine(chooser: random.Random) -> None:
    assert linearizable(simulated(chooser))


@given(st.randoms(use_true_random=False))
def test_a_stale_read_is_found_wherever_something_changed_with_an_answer(chooser: random.Random) -> None:
    history = simulated(chooser, stale=True)
    late = next(one for one in history if one.began == 30)
    answered = [one for one in history if one.result not in (None, REFUSED, "RCVD") and one.kind != "read"]
    # A change that nobody had an answer to may be the last one, and may not have happened yet.
    if late.result == "RCVD" and answered:
        assert unexplained(history) == late


def test_what_is_lost_doubled_or_made_up_is_found() -> None:
    wanted = [Creation("a", ("1",)), Creation("b", ("2", "2")), Creation("c", ()), Creation("d", ())]
    assert list(judge_creations(wanted, {"1": "a", "2": "b", "3": "c"})) == []
    creations = [*wanted, Creation("e", ("8", "9"))]
    problems = list(map(str, judge_creations(creations, {"2": "b", "3": "c", "4": "c", "5": "x"})))
    assert problems == [
        "lost: a: acknowledged as 1, and lost",
        "doubled: c: stored 2 times: 3, 4",
        "doubled: e: repeats were answered with several payments: 8, 9",
        "lost: e: acknowledged as 8, and lost",
        "invented: x: nobody asked for it, stored as 5",
    ]
    (problem,) = judge_creations([Creation("a", ("1",))], {"2": "a"})
    assert str(problem) == "lost: a: acknowledged as 1, stored as 2"


def test_money_that_comes_or_goes_is_found() -> None:
    whole = (1.0, True, {"NOK": "5.00"})
    assert list(judge_money([whole, (2.0, True, {"NOK": "5.0"})])) == []
    (problem,) = judge_money([whole, (2.0, False, {"NOK": "5.00"})])
    assert str(problem) == "money: the ledger read at 2.000 is not balanced"
    (problem,) = judge_money([whole, (2.0, True, {"NOK": "4.99"})])
    assert "has {'NOK': '4.99'}" in problem.text


CHANGES = [
    op("create", 1, 2, "RCVD", "p"),
    op("approve", 3, 4, "ACTC", "p"),
    op("create", 5, 6, "RCVD", "q"),
    op("read", 6, 7, "RCVD", "q"),
    op("cancel", 8, 9, "CANC", "q"),
]


@pytest.mark.parametrize(
    "began, seen, complete",
    [
        (0, ["p RCVD", "p ACTC", "q RCVD", "q CANC"], True),
        (0, ["p RCVD", "p ACTC"], False),  # it broke
        (0, [], False),
        (2.5, ["p ACTC", "q RCVD"], False),
        (1.5, ["p RCVD", "p ACTC", "q RCVD", "q CANC"], True),  # it may show what was asked for before it began
        (0, ["p RCVD", "p ACTC", "q RCVD", "silent RCVD", "q CANC"], True),
    ],
)
def test_a_stream_that_shows_every_change_in_order_is_fine(began: float, seen: list[str], complete: bool) -> None:
    shown = [(one.split()[0], one.split()[1]) for one in seen]
    assert list(judge_events(EventStream("s", began, shown, complete), CHANGES)) == []


@pytest.mark.parametrize(
    "seen, complete, text",
    [
        (["p RCVD", "p ACTC", "q RCVD"], True, "q CANC is missing"),
        (["p RCVD", "q RCVD", "q CANC"], False, "p ACTC is missing"),
        (["q RCVD", "q CANC"], False, "p RCVD is missing"),
        (["p RCVD", "p ACTC", "p ACTC", "q RCVD"], False, "payment p goes through"),
        (["p ACTC", "p RCVD"], False, "payment p goes through"),
        (["p RCVD", "q RCVD", "p ACTC"], False, "p ACTC follows a change that was asked for after its answer"),
    ],
)
def test_a_change_that_is_missing_doubled_or_late_in_a_stream_is_found(
    seen: list[str], complete: bool, text: str
) -> None:
    shown = [(one.split()[0], one.split()[1]) for one in seen]
    problems = list(judge_events(EventStream("s", 0, shown, complete), CHANGES))
    assert {problem.kind for problem in problems} == {"events"}
    assert any(text in problem.text for problem in problems)


def test_a_list_may_repeat_items_on_the_next_page_but_lacks_and_doubles_none() -> None:
    booked = {"a": 1.0, "b": 2.0, "c": 9.0}
    walk = Walk(3.0, [[("1", "b")], [("1", "b"), ("2", "a")]])
    assert list(judge_walks([walk, Walk(9.5, [[("3", "c"), ("1", "b"), ("2", "a")]])], booked, "abc")) == []


@pytest.mark.parametrize(
    "pages, text",
    [
        ([[("1", "b")]], "pages: the walk begun at 3.000 lacks a, booked at 1.000"),
        ([[("1", "b"), ("1", "b"), ("2", "a")]], "doubled: the walk begun at 3.000 shows a transaction twice"),
        ([[("1", "b"), ("2", "a")], [("3", "a")]], "doubled: the walk begun at 3.000 shows a as 3, another one as 2"),
        ([[("1", "b"), ("2", "a"), ("3", "x")]], "invented: the walk begun at 3.000 shows x, which nobody has paid"),
    ],
)
def test_an_item_that_is_missing_doubled_or_invented_in_a_list_is_found(
    pages: list[list[tuple[str, str]]], text: str
) -> None:
    (problem,) = judge_walks([Walk(3.0, pages)], {"a": 1.0, "b": 2.0, "c": 9.0}, "abc")
    assert str(problem).startswith(text)
