"""What is published with a change reaches the listeners when the change is kept, and goes with it when it is undone."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from emulator.store import Documents, Event, StoreUnwritable, WriteGroup, memory_store, open_store
from tests.unit.store.making import BOOK, KINDS, TroubledDisk, book, failing

A, B, C = ({"type": name} for name in "abc")


def listened(store: Documents) -> list[Event]:
    heard: list[Event] = []
    store.listen(heard.append)
    return heard


def test_an_event_leaves_when_its_transaction_is_kept_with_or_without_a_change() -> None:
    store = memory_store(KINDS)
    heard = listened(store)
    with store.transaction():
        store.put(BOOK, book("b1"))
        store.publish(A)
        with store.transaction():
            store.publish(B)
        assert heard == []
    assert heard == [A, B]
    store.publish(C)
    assert heard == [A, B, C]
    with store.transaction():
        store.publish(A)
        assert heard == [A, B, C]
    assert heard == [A, B, C, A]


def test_a_block_that_is_undone_takes_its_own_events_along_and_no_others() -> None:
    store = memory_store(KINDS)
    heard = listened(store)
    with store.transaction():
        store.put(BOOK, book("b1"))
        store.publish(A)
        with suppress(ZeroDivisionError), store.transaction():
            store.put(BOOK, book("b2"))
            store.publish(B)
            raise ZeroDivisionError
        store.publish(C)
    assert heard == [A, C]
    with suppress(ZeroDivisionError), store.transaction():
        store.put(BOOK, book("b3"))
        store.publish(A)
        raise ZeroDivisionError
    store.publish(B)
    assert heard == [A, C, B]


def test_a_full_disk_lets_no_event_out(tmp_path: Path, disk: TroubledDisk) -> None:
    store = open_store(tmp_path, KINDS, disk=disk)
    heard = listened(store)
    disk.trouble = failing("write")
    with suppress(StoreUnwritable), store.transaction():
        store.put(BOOK, book("b1"))
        store.publish(A)
    disk.trouble = lambda _: None
    with store.transaction():
        store.put(BOOK, book("b1"))
        store.publish(B)
    assert heard == [B]
    store.close()


@pytest.mark.parametrize("full", [False, True])
def test_the_events_of_a_turn_wait_for_its_write(tmp_path: Path, disk: TroubledDisk, full: bool) -> None:
    store, group = open_store(tmp_path, KINDS, disk=disk), WriteGroup()
    heard = listened(store)
    store.join(group)
    group.open = True
    store.put(BOOK, book("b1"))
    store.publish(A)
    with suppress(ZeroDivisionError), store.transaction():
        store.put(BOOK, book("b2"))
        store.publish(B)
        raise ZeroDivisionError
    store.publish(C)
    assert heard == []
    if full:
        disk.trouble = failing("write")
        with pytest.raises(StoreUnwritable):
            store.flush()
    else:
        store.flush()
    assert heard == ([] if full else [A, C])
    disk.trouble = lambda _: None
    store.close()


@pytest.mark.parametrize("fails", [False, True])
def test_with_power_events_wait_for_the_fsync(tmp_path: Path, disk: TroubledDisk, fails: bool) -> None:
    store = open_store(tmp_path, KINDS, "power", disk=disk)
    heard = listened(store)
    with store.transaction():
        store.put(BOOK, book("b1"))
        store.publish(A)
    ticket = store.log.begin_sync()
    with store.transaction():
        store.put(BOOK, book("b2"))
        store.publish(B)
    store.publish(C)
    assert heard == []
    if fails:
        disk.trouble = failing("sync")
        ticket.run()
        with pytest.raises(StoreUnwritable):
            store.log.finish_sync(ticket)
        assert (heard, store.count(BOOK), store.sequence) == ([], 0, 0)
    else:
        ticket.run()
        store.log.finish_sync(ticket)
        assert heard == [A]
        store.log.sync()
        assert heard == [A, B, C]
    disk.trouble = lambda _: None
    store.close()


def test_a_listener_that_fails_harms_neither_the_change_nor_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store = memory_store(KINDS)

    def broken(event: Event) -> None:
        raise ZeroDivisionError

    store.listen(broken)
    heard = listened(store)
    with store.transaction():
        store.put(BOOK, book("b1"))
        store.publish(A)
    assert (heard, store.count(BOOK)) == ([A], 1)
    assert "could not be delivered" in caplog.text
