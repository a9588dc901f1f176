"""Named snapshots: in memory, and as contents of the log where the bank is kept on disk."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from emulator.assemble.storage import FolderStorage
from emulator.bank import clock, fixtures, snapshots
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.kinds import CUSTOMER, KINDS
from emulator.bank.snapshots import Snapshots
from emulator.bank.threads import run_to_end
from emulator.store import Image, StoreUnwritable, journal_log, memory_store, open_store
from emulator.store.check import repair
from emulator.store.snapshot import write_snapshot
from emulator.store.table import DocumentTable
from tests.unit.store.making import TroubledDisk, failing

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)


def save(saved: Snapshots, bank: Bank, name: str) -> None:
    for _ in saved.saving(bank, name):
        pass


def contents(folder: Path) -> list[Path]:
    return list(folder.glob("content-*.json"))


def names(saved: Snapshots) -> list[str]:
    return [entry["name"] for entry in saved.listing()]


@pytest.fixture(params=["in memory", "on disk"])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bank]:
    """The bank of a fixture; on disk as `tmp_path` has it."""
    documents = memory_store(KINDS) if request.param == "in memory" else open_store(tmp_path, KINDS)
    bank = Bank(documents)
    fixtures.reset(bank, "known-state", now=NOW, mode="frozen")
    yield bank
    documents.discard()


@pytest.fixture
def saved(bank: Bank) -> Snapshots:
    return Snapshots(bank.documents)


def reopened(bank: Bank, folder: Path) -> tuple[Bank, Snapshots]:
    """The bank as the next process finds it after a kill."""
    bank.documents.log.discard()
    again = Bank(open_store(folder, KINDS))
    return again, Snapshots(again.documents)


on_disk = pytest.mark.parametrize("bank", ["on disk"], indirect=True)


def test_a_snapshot_is_gone_back_to_as_often_as_one_likes(bank: Bank, saved: Snapshots) -> None:
    before = bank.documents.dump()
    save(saved, bank, "a")
    for _ in range(2):
        bank.change_settings({"calendar": "norway"})
        bank.documents.delete(CUSTOMER, before["customer"][0]["id"])
        saved.restore(bank, "a")
        assert bank.documents.dump() == before
        assert bank.settings.calendar == "always-open"
        assert names(saved) == ["a"]


@on_disk
@pytest.mark.parametrize("restarted", [False, True])
def test_a_live_clock_runs_on_from_the_moment_of_the_save(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    def real_time(at: datetime) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: int(at.timestamp()) * 10**9)
        monkeypatch.setattr(clock, "real_now", lambda: at)

    moment, stored = NOW + timedelta(days=30), Snapshots(bank.documents)
    real_time(moment)
    bank.clock.set(mode="live")
    before = bank.documents.dump()
    save(stored, bank, "a")
    assert bank.documents.dump() == before
    if restarted:
        bank, stored = reopened(bank, tmp_path)
    for days in (1, 2):
        real_time(moment + timedelta(days=days))
        stored.restore(bank, "a")
        assert (bank.clock.mode, bank.clock.now()) == ("live", NOW)
        real_time(moment + timedelta(days=days, hours=1))
        assert bank.clock.now() == NOW + timedelta(hours=1)
    bank.documents.discard()


@on_disk
def test_they_outlive_the_process_with_their_times_and_are_private(
    bank: Bank, saved: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "real_now", lambda: NOW)  # when saving begins; writing the file may take long
    save(saved, bank, "b.1")
    before = bank.documents.dump()
    [file] = contents(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    bank, again = reopened(bank, tmp_path)
    assert again.listing() == saved.listing() == [{"name": "b.1", "created": clock.date_time(NOW)}]
    bank.change_settings({"calendar": "norway"})
    again.restore(bank, "b.1")
    assert bank.documents.dump() == before
    again.delete("b.1")
    assert contents(tmp_path) == []
    bank, again = reopened(bank, tmp_path)
    assert again.listing() == []
    bank.documents.discard()


def test_they_are_listed_newest_first_and_replaced_by_name(bank: Bank, saved: Snapshots, tmp_path: Path) -> None:
    for name in ("a", "b", "c", "a"):
        save(saved, bank, name)
    assert names(saved) == ["a", "c", "b"]
    assert len(contents(tmp_path)) in (0, 3)


@on_disk
@pytest.mark.parametrize("damage", [b"", b"{", b'{"_":1}', b"\xff\xfe", None])
def test_a_file_that_cannot_be_read_changes_nothing(
    bank: Bank, saved: Snapshots, tmp_path: Path, damage: bytes | None
) -> None:
    save(saved, bank, "a")
    [file] = contents(tmp_path)
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    bank, saved = reopened(bank, tmp_path)
    before = bank.documents.dump()
    with pytest.raises(BankError, match="RESOURCE_UNKNOWN" if damage is None else "CONFLICT"):
        saved.restore(bank, "a")
    assert bank.documents.dump() == before
    bank.documents.discard()


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("call", ["create", "write", "sync", "sync_directory"])
def test_what_cannot_be_saved_is_as_it_was_for_the_process_and_for_the_next_one(
    tmp_path: Path, power: bool, call: str
) -> None:
    disk = TroubledDisk()
    bank = Bank(open_store(tmp_path, KINDS, "power" if power else "process", disk=disk))
    saved = Snapshots(bank.documents)
    fixtures.reset(bank, "known-state", now=NOW, mode="frozen")
    save(saved, bank, "old")
    bank.documents.log.sync()
    before, files = bank.documents.dump(), contents(tmp_path)
    bank.change_settings({"calendar": "norway"})
    bank.documents.log.sync()
    for name in ("new", "old") if power or call != "sync_directory" else ():
        disk.trouble = failing(call)
        with pytest.raises(StoreUnwritable):
            save(saved, bank, name)
        disk.trouble = lambda _: None
        assert (names(saved), contents(tmp_path)) == (["old"], files)
    for _ in range(2):
        saved.restore(bank, "old")
        assert bank.documents.dump() == before
        bank, saved = reopened(bank, tmp_path)
    bank.documents.discard()


@on_disk
def test_a_change_that_is_taken_back_takes_no_snapshot_with_it(bank: Bank, saved: Snapshots, tmp_path: Path) -> None:
    save(saved, bank, "a")
    before = bank.documents.dump()
    with suppress(LookupError), bank.documents.transaction():
        saved.clear()
        bank.documents.restore(Image({}))
        raise LookupError
    assert names(saved) == ["a"]
    assert len(contents(tmp_path)) == 1
    saved.restore(bank, "a")
    assert bank.documents.dump() == before


@on_disk
def test_where_undoing_fails_a_snapshot_keeps_its_content(
    bank: Bank, saved: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(saved, bank, "a")
    with monkeypatch.context() as patch, suppress(StoreUnwritable), bank.documents.transaction():
        saved.delete("a")
        bank.change_settings({"calendar": "norway"})  # which is undone first
        patch.setattr(DocumentTable, "place", failing_place)
        raise LookupError
    assert names(saved) == ["a"]
    assert len(contents(tmp_path)) == 1


def failing_place(*_: Any) -> None:
    raise MemoryError


@on_disk
def test_a_snapshot_that_is_saved_again_while_it_is_read_can_be_restored(
    bank: Bank, saved: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "LARGE", 0)
    save(saved, bank, "a")
    before, log = bank.documents.dump(), bank.documents.log
    first = log.content

    def later(file: str) -> Image:
        monkeypatch.setattr(log, "content", first)
        save(saved, bank, "a")
        return first(file)

    monkeypatch.setattr(log, "content", later)
    content = run_to_end(saved.prepare(bank, "a", lambda _done, _total: None))
    saved.restore(bank, "a", content)
    assert bank.documents.dump() == before


@on_disk
def test_snapshots_that_change_before_a_large_content_are_stored(bank: Bank, saved: Snapshots, tmp_path: Path) -> None:
    save(saved, bank, "first")
    other = bank.documents.prepare(bank.documents.image())
    with bank.documents.transaction():
        bank.documents.put(snapshots.SNAPSHOTS, snapshots.named("second", NOW, contents(tmp_path)[0].name))
        bank.documents.delete(snapshots.SNAPSHOTS, "first")
        bank.documents.restore(other)
    bank, saved = reopened(bank, tmp_path)
    assert names(saved) == ["second"]
    bank.documents.discard()


@on_disk
def test_a_repair_that_cuts_off_a_save_leaves_a_copy_of_what_was_saved(
    bank: Bank, saved: Snapshots, tmp_path: Path
) -> None:
    bank.change_settings({"calendar": "norway"})
    [journal] = tmp_path.glob("journal-*.jsonl")
    at = journal.stat().st_size
    bank.change_settings({"calendar": "always-open"})
    save(saved, bank, "a")
    bank.documents.log.discard()
    data = bytearray(journal.read_bytes())
    data[at + 20] ^= 1
    journal.write_bytes(data)
    [file] = contents(tmp_path)
    body = file.read_bytes()
    assert repair(tmp_path, KINDS).sound
    open_store(tmp_path, KINDS).log.discard()
    assert contents(tmp_path) == []
    assert (tmp_path / "damaged-1" / file.name).read_bytes() == body


@on_disk
def test_those_in_the_folder_of_an_earlier_version_are_taken_over(bank: Bank, tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path / "banks")
    former = tmp_path / "banks" / "x" / "snapshots"
    former.mkdir(parents=True)
    write_snapshot(journal_log.Disk(), former / "a.snapshot.json", bank.documents.image().rows, 0)
    os.utime(former / "a.snapshot.json", (NOW.timestamp(), NOW.timestamp()))
    before = bank.documents.dump()
    for _ in range(2):
        again = Bank(storage.open("x"))
        assert Snapshots(again.documents).listing() == [{"name": "a", "created": clock.date_time(NOW)}]
        Snapshots(again.documents).restore(again, "a")
        assert again.documents.dump() == before
        again.documents.log.close()
        assert not former.exists()


@on_disk
def test_those_of_an_earlier_version_stay_where_they_are_until_they_last_and_need_no_space(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, former = FolderStorage(tmp_path / "banks", power=True), tmp_path / "banks" / "x" / "snapshots"
    former.mkdir(parents=True)
    write_snapshot(journal_log.Disk(), former / "a.snapshot.json", bank.documents.image().rows, 0)
    number = (former / "a.snapshot.json").stat().st_ino
    with monkeypatch.context() as patch:
        patch.setattr(journal_log.Disk, "sync", refused_sync)
        with pytest.raises(StoreUnwritable):
            storage.open("x")
    assert (former / "a.snapshot.json").exists()
    storage.open("x").log.close()
    [file] = contents(former.parent)
    assert file.stat().st_ino == number
    assert not former.exists()


def refused_sync(_: int) -> None:
    raise OSError("no fsync")


@pytest.fixture
def may_write(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Every snapshot is large, and none is written before this is set."""
    event = Event()

    def later(*args: Any) -> Any:
        event.wait()
        return write_snapshot(*args)

    monkeypatch.setattr(snapshots, "LARGE", 0)
    monkeypatch.setattr(journal_log, "write_snapshot", later)
    return event


@on_disk
def test_a_large_one_is_saved_beside_other_work_as_the_bank_was_at_first(
    bank: Bank, saved: Snapshots, may_write: Event
) -> None:
    before = bank.documents.dump()
    saving = saved.saving(bank, "a")
    next(saving)
    bank.documents.delete(CUSTOMER, before["customer"][0]["id"])
    may_write.set()
    list(saving)
    assert names(saved) == ["a"]
    saved.restore(bank, "a")
    assert bank.documents.dump() == before


@on_disk
def test_one_that_is_deleted_while_it_is_read_can_be_restored(
    bank: Bank, saved: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "LARGE", 0)
    save(saved, bank, "a")
    before = bank.documents.dump()
    content = run_to_end(saved.prepare(bank, "a", lambda _done, _of: None))
    saved.delete("a")
    assert saved.listing() == []
    bank.documents.delete(CUSTOMER, before["customer"][0]["id"])
    with bank.documents.transaction():
        bank.documents.restore(content)
    assert bank.documents.dump() == before


@on_disk
def test_one_that_is_being_saved_goes_with_the_others(
    bank: Bank, saved: Snapshots, may_write: Event, tmp_path: Path
) -> None:
    saving = saved.saving(bank, "a")
    next(saving)
    next(saving)
    with bank.documents.transaction():
        bank.make_anew()
        saved.clear()
    may_write.set()
    with pytest.raises(BankError, match="replaced or deleted"):
        list(saving)
    del saving
    assert (saved.listing(), contents(tmp_path)) == ([], [])
