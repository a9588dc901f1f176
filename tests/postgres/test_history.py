"""The checker finds what it must, and nothing else: against histories of a simulated bank, whole and broken."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.postgres.history import (
    REFUSED,
    Creation,
    Operation,
    judge_creations,
    judge_money,
    judge_payments,
    judge_positions,
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
    (text,) = judge_payments([*history, op("create", 0, 1, "RCVD", "another")])
    assert text.startswith("payment p is not linearizable")


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
    found = " | ".join(judge_creations([*wanted, Creation("e", ("8", "9"))], {"2": "b", "3": "c", "4": "c", "5": "x"}))
    assert "a: acknowledged as 1, and lost" in found
    assert "c: stored 2 times: 3, 4" in found
    assert "e: repeats were answered with several payments: 8, 9" in found
    assert "x: nobody asked for it, stored as 5" in found
    assert list(judge_creations([Creation("a", ("1",))], {"2": "a"})) == ["a: acknowledged as 1, stored as 2"]


def test_money_that_comes_or_goes_is_found() -> None:
    whole = (1.0, True, {"NOK": "5.00"})
    assert list(judge_money([whole, (2.0, True, {"NOK": "5.0"})])) == []
    assert list(judge_money([whole, (2.0, False, {"NOK": "5.00"})])) == ["the ledger read at 2.000 is not balanced"]
    assert "has {'NOK': '4.99'}" in next(judge_money([whole, (2.0, True, {"NOK": "4.99"})]))


def test_a_gap_and_a_repeat_are_found() -> None:
    assert list(judge_positions("events", [4, 5, 6])) == []
    assert list(judge_positions("events", [4, 6, 6, 7])) == ["events: 6 follows 4", "events: 6 follows 6"]
