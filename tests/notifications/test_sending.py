"""What is queued, claimed and settled, without sockets: what is undone, who sends, and who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from emulator.bank import notifications
from emulator.bank.bank import Bank
from emulator.bank.kinds import KINDS, NOTIFICATION
from emulator.bank.notifications import DeliveryResult, Parties
from emulator.store import memory_store

DELIVERED, FAILED = DeliveryResult(status=204), DeliveryResult(status=500)


@pytest.fixture
def bank() -> Bank:
    bank = Bank(memory_store(KINDS), seed=1)
    bank.clock.set(mode="frozen")
    bank.change_settings({"notifications": True})
    return bank


def subscribe(bank: Bank, target: str, *, tpp: str = "a", script: tuple[str, float] | None = None) -> None:
    uri = f"https://{tpp}.example/"
    notifications.subscribe(bank, target, "payment", tpp=tpp, uri=uri, content=("PROCESS",), script=script)


def claim(bank: Bank, *, each: int = 100, sending: Sequence[Parties] = ()) -> list[str]:
    claimed = notifications.claim(bank, sending=sending, most=100, each=each)
    return [one["id"] for one in claimed]


def status_of(bank: Bank, identity: str) -> str:
    notification = bank.documents.get(NOTIFICATION, identity)
    assert notification is not None
    return notification["body"]["transactionStatus"]


def states(bank: Bank) -> list[str]:
    return [one["state"] for one in notifications.listing(bank)[::-1]]


def change_and_fail(bank: Bank) -> None:
    with bank.documents.transaction():
        notifications.status_changed(bank, "p", "ACTC")
        raise RuntimeError("the change cannot be kept")


def test_what_is_undone_is_not_queued(bank: Bank) -> None:
    subscribe(bank, "p")
    events: list[Any] = []
    bank.watch(events.append)
    with pytest.raises(RuntimeError):
        change_and_fail(bank)
    assert states(bank) == []
    assert events == []


def test_what_a_killed_process_was_sending_is_sent_again_and_nothing_else_is(bank: Bank) -> None:
    for target in "pq":
        subscribe(bank, target)
        notifications.status_changed(bank, target, "ACTC")
    left, sending = claim(bank)
    assert notifications.is_claimed(bank, left)
    notifications.release_abandoned(bank, sending={sending})
    assert not notifications.is_claimed(bank, left)
    notifications.settle(bank, left, FAILED)
    assert sorted(states(bank)) == ["sending", "waiting"], "an outcome of what is not being sent says nothing"
    assert claim(bank) == [left]
    notifications.settle(bank, left, DELIVERED)
    assert sorted(states(bank)) == ["delivered", "sending"]


def test_a_tpp_whose_receiver_is_slow_does_not_hold_up_others(bank: Bank) -> None:
    for number in range(20):
        subscribe(bank, f"slow-{number}", tpp="slow")
        notifications.status_changed(bank, f"slow-{number}", "ACTC")
    subscribe(bank, "quick", tpp="quick")
    notifications.status_changed(bank, "quick", "ACTC")
    claimed = [bank.documents.get(NOTIFICATION, one) for one in claim(bank, each=4)]
    assert [one["tpp"] for one in claimed if one is not None] == ["slow"] * 4 + ["quick"]
    assert claim(bank, each=4, sending=[Parties("slow", "slow.example")] * 4) == []


def test_a_tpp_with_many_slow_receivers_does_not_hold_up_others(bank: Bank) -> None:
    for number in range(20):
        uri = f"https://slow-{number}.example/"
        notifications.subscribe(bank, f"slow-{number}", "payment", tpp="slow", uri=uri, content=("PROCESS",))
        notifications.status_changed(bank, f"slow-{number}", "ACTC")
    subscribe(bank, "quick", tpp="quick")
    notifications.status_changed(bank, "quick", "ACTC")
    claimed = notifications.claim(bank, most=16, each=4)
    assert sorted(one["tpp"] for one in claimed) == ["quick"] + ["slow"] * 8


def test_old_ones_that_are_over_are_dropped_and_none_that_waits(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "MOST_FINISHED", 3)
    subscribe(bank, "p")
    for status in ("ACTC", "PDNG", "ACSP", "ACWP", "ACSC"):
        notifications.status_changed(bank, "p", status)
    for _ in range(4):
        (identity,) = claim(bank)
        notifications.settle(bank, identity, DELIVERED)
    assert states(bank) == ["delivered"] * 3 + ["waiting"]


def test_a_failing_one_that_comes_twice_is_tried_until_it_was_delivered_twice(bank: Bank) -> None:
    subscribe(bank, "p", script=("twice", 0.0))
    notifications.status_changed(bank, "p", "ACTC")
    for outcome in (FAILED, DELIVERED, FAILED, DELIVERED):
        (identity,) = claim(bank)
        notifications.settle(bank, identity, outcome)
        bank.clock.advance(notifications.GAPS[1])
    assert states(bank) == ["delivered"]
    assert claim(bank) == []


def test_every_second_one_overtakes_its_predecessor(bank: Bank) -> None:
    subscribe(bank, "p", script=("reordered", 0.0))
    sent = []
    for status in ("ACTC", "PDNG", "ACSP", "ACWP", "ACSC"):
        notifications.status_changed(bank, "p", status)
        while claimed := claim(bank):
            sent.append(status_of(bank, claimed[0]))
            notifications.settle(bank, claimed[0], DELIVERED)
    bank.clock.advance(notifications.HELD)
    sent += [status_of(bank, one) for one in claim(bank)]
    assert sent == ["PDNG", "ACTC", "ACWP", "ACSP", "ACSC"]


def test_a_later_request_moves_the_address_and_keeps_the_order(bank: Bank) -> None:
    subscribe(bank, "p")
    notifications.status_changed(bank, "p", "ACTC")
    subscribe(bank, "p", tpp="b")
    notifications.status_changed(bank, "p", "ACSC")
    sent = notifications.listing(bank, target="p")[::-1]
    assert [(one["place"], one["uri"]) for one in sent] == [(1, "https://a.example/"), (2, "https://b.example/")]
