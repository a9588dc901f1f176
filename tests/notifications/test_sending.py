"""What is queued, claimed and settled, without sockets: what is undone, who sends, and who waits for whom."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.bank import notifications
from emulator.bank.bank import Bank
from emulator.bank.kinds import KINDS, NOTIFICATION
from emulator.bank.notifications import DeliveryResult
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


def claim(bank: Bank, *, by: str = "one", each: int = 100, **room: int) -> list[str]:
    claimed = notifications.claim(bank, by=by, until=100.0, room=room, most=100, each=each)
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


def test_one_of_a_lane_is_sent_at_a_time(bank: Bank) -> None:
    subscribe(bank, "p")
    for status in ("ACTC", "ACSP"):
        notifications.status_changed(bank, "p", status)
    (first,) = claim(bank)
    assert claim(bank) == []
    notifications.settle(bank, first, DELIVERED, by="one")
    (second,) = claim(bank)
    assert [status_of(bank, one) for one in (first, second)] == ["ACTC", "ACSP"]


def test_no_two_processes_send_the_same(bank: Bank) -> None:
    for target in "pqr":
        subscribe(bank, target)
        notifications.status_changed(bank, target, "ACTC")
    one, two = claim(bank, by="one"), claim(bank, by="two")
    assert (len(one), len(two)) == (3, 0)
    assert notifications.is_claimed(bank, one[0], "one")
    assert not notifications.is_claimed(bank, one[0], "two")


def test_an_outcome_of_a_process_that_has_lost_its_claim_says_nothing(bank: Bank) -> None:
    subscribe(bank, "p")
    notifications.status_changed(bank, "p", "ACTC")
    (identity,) = claim(bank, by="one")
    for abandoned in notifications.abandoned(bank, by="two", sending=(), now=101.0):
        notifications.release(bank, abandoned)
    assert claim(bank, by="two") == [identity]
    notifications.settle(bank, identity, FAILED, by="one")
    assert states(bank) == ["sending"]
    notifications.settle(bank, identity, DELIVERED, by="two")
    assert states(bank) == ["delivered"]


def test_a_claim_is_void_when_its_time_is_over_or_its_process_knows_nothing_of_it(bank: Bank) -> None:
    subscribe(bank, "p")
    notifications.status_changed(bank, "p", "ACTC")
    (identity,) = claim(bank, by="one")
    assert notifications.abandoned(bank, by="two", sending=(), now=99.0) == []
    assert len(notifications.abandoned(bank, by="two", sending=(), now=101.0)) == 1
    assert notifications.abandoned(bank, by="one", sending={identity}, now=101.0) == []
    assert len(notifications.abandoned(bank, by="one", sending=(), now=99.0)) == 1


def test_a_tpp_whose_receiver_is_slow_does_not_hold_up_others(bank: Bank) -> None:
    for number in range(20):
        subscribe(bank, f"slow-{number}", tpp="slow")
        notifications.status_changed(bank, f"slow-{number}", "ACTC")
    subscribe(bank, "quick", tpp="quick")
    notifications.status_changed(bank, "quick", "ACTC")
    claimed = [bank.documents.get(NOTIFICATION, one) for one in claim(bank, each=4)]
    assert [one["tpp"] for one in claimed if one is not None] == ["slow"] * 4 + ["quick"]
    assert claim(bank, each=4, slow=4) == []


def test_nothing_is_due_while_the_setting_is_off(bank: Bank) -> None:
    subscribe(bank, "p")
    notifications.status_changed(bank, "p", "ACTC")
    assert notifications.next_due(bank) is not None
    bank.change_settings({"notifications": False})
    assert notifications.next_due(bank) is None


def test_old_ones_that_are_over_are_dropped_and_none_that_waits(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "MOST_FINISHED", 3)
    subscribe(bank, "p")
    for status in ("ACTC", "PDNG", "ACSP", "ACWP", "ACSC"):
        notifications.status_changed(bank, "p", status)
    for _ in range(4):
        (identity,) = claim(bank)
        notifications.settle(bank, identity, DELIVERED, by="one")
    assert states(bank) == ["delivered"] * 3 + ["waiting"]


def test_a_failing_one_that_comes_twice_is_tried_until_it_was_delivered_twice(bank: Bank) -> None:
    subscribe(bank, "p", script=("twice", 0.0))
    notifications.status_changed(bank, "p", "ACTC")
    for outcome in (FAILED, DELIVERED, FAILED, DELIVERED):
        (identity,) = claim(bank)
        notifications.settle(bank, identity, outcome, by="one")
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
            notifications.settle(bank, claimed[0], DELIVERED, by="one")
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
