"""Named snapshots: in memory, and as files where the bank is kept on disk."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from emulator.assemble import storage
from emulator.assemble.storage import FileSnapshots
from emulator.bank import clock, fixtures, snapshots
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.kinds import CUSTOMER, KINDS
from emulator.bank.snapshots import Snapshots
from emulator.bank.threads import run_to_end
from emulator.store import Image, StoreUnwritable, memory_store
from emulator.store.snapshot import snapshot_bytes

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)


def save(snapshots: Snapshots, bank: Bank, name: str) -> None:
    for _ in snapshots.saving(bank, name):
        pass


@pytest.fixture
def bank() -> Bank:
    bank = Bank(memory_store(KINDS))
    fixtures.reset(bank, "known-state", now=NOW, mode="frozen")
    return bank


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_snapshot_is_gone_back_to_as_often_as_one_likes(bank: Bank, tmp_path: Path, on_disk: bool) -> None:
    saved = FileSnapshots(tmp_path / "snapshots") if on_disk else Snapshots()
    before = bank.documents.dump()
    save(saved, bank, "a")
    for _ in range(2):
        bank.change_settings({"calendar": "norway"})
        bank.documents.delete(CUSTOMER, before["customer"][0]["id"])
        saved.restore(bank, "a")
        assert bank.documents.dump() == before
        assert bank.settings.calendar == "always-open"


@pytest.mark.parametrize("restarted", [False, True])
def test_a_live_clock_runs_on_from_the_moment_of_the_save(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    def real_time(at: datetime) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: int(at.timestamp()) * 10**9)
        monkeypatch.setattr(clock, "real_now", lambda: at)

    saved = NOW + timedelta(days=30)
    real_time(saved)
    bank.clock.set(mode="live")
    stored = FileSnapshots(tmp_path)
    before = bank.documents.dump()
    save(stored, bank, "a")
    assert bank.documents.dump() == before
    if restarted:
        stored = FileSnapshots(tmp_path)
    for days in (1, 2):
        real_time(saved + timedelta(days=days))
        stored.restore(bank, "a")
        assert (bank.clock.mode, bank.clock.now()) == ("live", NOW)
        real_time(saved + timedelta(days=days, hours=1))
        assert bank.clock.now() == NOW + timedelta(hours=1)


def test_files_outlive_the_process_with_their_times_and_are_private(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bank" / "snapshots"
    saved = FileSnapshots(folder)
    monkeypatch.setattr(snapshots, "real_now", lambda: NOW)  # when saving begins; writing the file may take long
    save(saved, bank, "b.1")
    before = bank.documents.dump()
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    again = FileSnapshots(folder)
    assert again.listing() == saved.listing() == [{"name": "b.1", "created": clock.date_time(NOW)}]
    bank.change_settings({"calendar": "norway"})
    again.restore(bank, "b.1")
    assert bank.documents.dump() == before
    list(again.deleting("b.1"))
    assert list(folder.iterdir()) == []
    assert FileSnapshots(folder).listing() == []


def test_they_are_listed_newest_first_and_replaced_by_name(bank: Bank) -> None:
    saved = Snapshots()
    for name in ("a", "b", "c", "a"):
        save(saved, bank, name)
    assert [entry["name"] for entry in saved.listing()] == ["a", "c", "b"]


@pytest.mark.parametrize("damage", [b"", b"{", b'{"_":1}', b"\xff\xfe"])
def test_a_file_that_cannot_be_read_changes_nothing(bank: Bank, tmp_path: Path, damage: bytes) -> None:
    save(FileSnapshots(tmp_path), bank, "a")
    (tmp_path / "a.snapshot.json").write_bytes(damage)
    before = bank.documents.dump()
    with pytest.raises(BankError, match="CONFLICT"):
        FileSnapshots(tmp_path).restore(bank, "a")
    assert bank.documents.dump() == before


def test_a_file_that_is_gone_is_unknown(bank: Bank, tmp_path: Path) -> None:
    save(FileSnapshots(tmp_path), bank, "a")
    saved = FileSnapshots(tmp_path)
    (tmp_path / "a.snapshot.json").unlink()
    with pytest.raises(BankError, match="RESOURCE_UNKNOWN"):
        saved.restore(bank, "a")
    assert saved.listing() == []


def test_a_disk_that_takes_nothing_is_told_and_nothing_is_kept(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    saved = FileSnapshots(tmp_path)
    save(saved, bank, "a")
    content = (tmp_path / "a.snapshot.json").read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreUnwritable, match="No space left"):
        save(saved, bank, "a")
    with pytest.raises(StoreUnwritable):
        save(saved, bank, "b")
    assert [entry["name"] for entry in saved.listing()] == ["a"]
    assert (tmp_path / "a.snapshot.json").read_bytes() == content


def test_there_is_an_end_to_how_many(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MOST", 2)
    saved = Snapshots()
    for name in ("a", "b", "a"):
        save(saved, bank, name)
    with pytest.raises(BankError, match="delete one first"):
        save(saved, bank, "c")


def test_files_whose_names_nobody_can_ask_for_are_not_listed(bank: Bank, tmp_path: Path) -> None:
    save(FileSnapshots(tmp_path), bank, "a")
    for name in ("a b", ".hid", "x" * 64):
        (tmp_path / f"{name}.snapshot.json").write_bytes((tmp_path / "a.snapshot.json").read_bytes())
    (tmp_path / "folder.snapshot.json").mkdir()
    saved = FileSnapshots(tmp_path)
    assert [entry["name"] for entry in saved.listing()] == ["a"]
    with pytest.raises(BankError, match="RESOURCE_UNKNOWN"):
        list(saved.deleting("folder"))


def test_half_a_file_is_removed(bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".killed.snapshot.json.0123456789ab").write_text("half")
    (tmp_path / ".mine.new").write_text("")
    saved = FileSnapshots(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreUnwritable):
        save(saved, bank, "a")
    assert [path.name for path in tmp_path.iterdir()] == [".mine.new"]


@pytest.mark.parametrize("power", [False, True])
def test_with_power_names_are_on_the_medium(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, power: bool
) -> None:
    synced: list[tuple[str, list[str]]] = []
    fsync = os.fsync

    def sync(file: int) -> None:
        for path in (tmp_path, tmp_path / "snapshots"):
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                synced.append((path.name, sorted(one.name for one in path.iterdir() if one.name[0] != ".")))
        fsync(file)

    monkeypatch.setattr(os, "fsync", sync)
    saved = FileSnapshots(tmp_path / "snapshots", power=power)
    save(saved, bank, "a")
    save(saved, bank, "a")
    list(saved.deleting("a"))
    expected = [(tmp_path.name, ["snapshots"]), *[("snapshots", ["a.snapshot.json"])] * 2, ("snapshots", [])]
    assert synced == (expected if power else [])


@pytest.mark.parametrize(
    ("call", "changes"),
    [
        ("os.fsync", ("new", "replaced", "deleted")),
        ("os.replace", ("new", "replaced")),
        ("pathlib.Path.rename", ("deleted",)),
    ],
)
def test_what_cannot_be_saved_or_deleted_is_as_it_was_for_the_process_and_for_the_next_one(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, changes: Sequence[str]
) -> None:
    """As the names in the folder cannot be synced, and as a file gets or loses its name."""

    def content(saved: Snapshots) -> dict[str, Any]:
        now, contents = bank.documents.image(), {}
        for entry in saved.listing():
            saved.restore(bank, entry["name"])
            contents[entry["name"]] = bank.documents.dump()
        bank.documents.restore(now)
        return contents

    fsync = os.fsync

    def broken(*arguments: Any) -> None:
        if call != "os.fsync" or stat.S_ISDIR(os.fstat(arguments[0]).st_mode):
            raise OSError(5, "Input/output error")
        fsync(*arguments)

    saved = FileSnapshots(tmp_path, power=True)
    save(saved, bank, "old")
    before = content(saved)
    bank.change_settings({"calendar": "norway"})
    ways: dict[str, Callable[[], object]] = {
        "new": lambda: save(saved, bank, "new"),
        "replaced": lambda: save(saved, bank, "old"),
        "deleted": lambda: list(saved.deleting("old")),
    }
    for change in changes:
        with monkeypatch.context() as patch:
            patch.setattr(call, broken)
            with pytest.raises(StoreUnwritable, match="Input/output"):
                ways[change]()
        assert content(saved) == content(FileSnapshots(tmp_path)) == before
    list(saved.deleting("old"))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def may_write(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Every snapshot is large, and none is written before this is set."""
    event = Event()
    monkeypatch.setattr(snapshots, "LARGE", 0)
    monkeypatch.setattr(storage, "snapshot_bytes", lambda *args: event.wait() and snapshot_bytes(*args))
    return event


def test_a_large_one_is_saved_beside_other_work_as_the_bank_was_at_first(
    bank: Bank, tmp_path: Path, may_write: Event
) -> None:
    stored = FileSnapshots(tmp_path)
    before = bank.documents.dump()
    saving = stored.saving(bank, "a")
    next(saving)
    bank.documents.delete(CUSTOMER, before["customer"][0]["id"])
    with pytest.raises(BankError, match="being saved"):
        save(stored, bank, "a")
    may_write.set()
    list(saving)
    assert [saved["name"] for saved in stored.listing()] == ["a"]
    stored.restore(bank, "a")
    assert bank.documents.dump() == before


def test_a_large_one_that_cannot_be_written_is_not_listed(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "LARGE", 0)
    (tmp_path / "file").write_text("x")
    saved = FileSnapshots(tmp_path / "file" / "snapshots")
    with pytest.raises(StoreUnwritable):
        save(saved, bank, "a")
    assert saved.listing() == []


def test_one_that_is_deleted_while_it_is_read_can_be_restored(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(FileSnapshots(tmp_path), bank, "a")
    before, saved, read = bank.documents.dump(), FileSnapshots(tmp_path), FileSnapshots._read

    def meanwhile(self: FileSnapshots, name: str) -> Image:
        image = read(self, name)
        list(self.deleting(name))
        return image

    monkeypatch.setattr(FileSnapshots, "_read", meanwhile)
    content = run_to_end(saved.prepare(bank, "a", lambda _done, _of: None))
    assert saved.listing() == []
    bank.documents.delete(CUSTOMER, before["customer"][0]["id"])
    with bank.documents.transaction():
        bank.documents.restore(content)
    assert bank.documents.dump() == before


@pytest.mark.parametrize("power", [False, True])
def test_one_that_is_being_saved_goes_with_the_others(
    bank: Bank, tmp_path: Path, may_write: Event, power: bool
) -> None:
    saved = FileSnapshots(tmp_path / "none yet", power=power)
    saving = saved.saving(bank, "a")
    next(saving)
    list(saved.clearing())
    may_write.set()
    with pytest.raises(BankError, match="deleted meanwhile"):
        list(saving)
    assert (saved.listing(), list(tmp_path.rglob("*.json"))) == ([], [])


def test_one_that_is_stored_while_the_others_are_deleted_goes_with_them(
    bank: Bank, tmp_path: Path, may_write: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In PostgreSQL a deletion takes a step of its own; until the saving ends its name can be used by no other."""
    saved, drop = FileSnapshots(tmp_path), FileSnapshots._drop

    def in_steps(self: FileSnapshots, names: Sequence[str]) -> Iterator[object]:
        yield None
        yield from drop(self, names)

    monkeypatch.setattr(FileSnapshots, "_drop", in_steps)
    may_write.set()
    list(saved.saving(bank, "old"))
    saving, clearing = saved.saving(bank, "a"), saved.clearing()
    next(saving)
    next(clearing)
    next(clearing)  # the old one is being deleted
    with pytest.raises(BankError, match="being saved or deleted"):
        next(saved.saving(bank, "a"))
    with pytest.raises(BankError, match="deleted meanwhile"):
        list(saving)
    list(clearing)
    assert (saved.listing(), list(tmp_path.iterdir())) == ([], [])
    list(saved.saving(bank, "a"))
    assert [one["name"] for one in saved.listing()] == ["a"]
