"""The death of the process, of the machine, or a failing call, at each single system call of the store."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from emulator.store import Document, Documents, Durability, StoreUnwritable, open_store
from emulator.store.check import verify
from emulator.store.disk import LOCK
from tests.unit.store.making import (
    BOOK,
    KINDS,
    NOTE,
    Crash,
    TroubledDisk,
    answers,
    at_call,
    book,
    copy_of,
    image_of,
    some_books,
)

State = dict[str, list[Document]]


class LosingDisk(TroubledDisk):
    """A disk of which a power cut leaves what was synced: file contents and directory names apart."""

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, object] = {}
        self._contents: dict[object, bytes] = {}
        self._synced_files: dict[str, object] = {}

    def open_to_append(self, path: Path) -> int:
        file = super().open_to_append(path)
        self._files.setdefault(path.name, object())
        return file

    def create(self, path: Path) -> int:
        file = super().create(path)
        self._files[path.name] = object()
        return file

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        self._files[new.name] = self._files.pop(old.name)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._files.pop(path.name, None)

    def sync(self, file: int) -> None:
        super().sync(file)
        path = Path(f"/proc/self/fd/{file}")
        name = path.readlink().name
        if name in self._files:
            self._contents[self._files[name]] = path.read_bytes()

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self._synced_files = self._files.copy()

    def after_power_cut(self, place: Path, *, names_survive: bool) -> Path:
        """A directory with what is left; names may have reached the medium without having been synced."""
        place.mkdir()
        for name, file in (self._files if names_survive else self._synced_files).items():
            (place / name).write_bytes(self._contents.get(file, b""))
        return place


class History:
    """A store's states by change number, as acknowledged."""

    def __init__(self, store: Documents) -> None:
        self.store = store
        self.states: dict[int, State] = {store.sequence: store.dump()}
        self.synced = store.log.synced

    def note(self) -> None:
        self.states[self.store.sequence] = self.store.dump()
        self.synced = self.store.log.synced

    def change(self, number: int) -> None:
        """Some change, acknowledged when this returns."""
        with self.store.transaction():
            self.store.put(BOOK, book(f"b{number % 3}", author=f"changed {number}", year=number))
            self.store.delete(BOOK, f"b{number % 4}")
            self.store.put(NOTE, {"id": f"n{number}"})
        self.note()

    def sync(self) -> None:
        self.store.log.sync()
        self.note()


def work(history: History) -> None:
    """Changes, a compaction with changes while it is under way, changes, a close: everything that writes."""
    store = history.store
    for number in range(3):
        history.change(number)
    history.sync()
    compaction = store.log.begin_compaction()
    history.change(10)
    compaction.run()
    history.change(11)
    store.log.finish_compaction(compaction)
    history.sync()
    history.change(20)
    history.sync()
    store.restore(image_of(KINDS, {BOOK: [book("b2", author="alone")]}))
    history.note()
    store.restore(store.image())
    with suppress(StoreUnwritable):
        store.log.compact()
    history.note()
    history.change(30)
    prepared = store.prepare(image_of(KINDS, {BOOK: some_books(4)}))
    history.change(31)
    with store.transaction():
        store.restore(prepared)
        store.put(NOTE, {"id": "with it"})
    history.note()
    history.change(32)
    store.prepare(store.image())  # nobody wants it: its file is removed
    compaction = store.log.begin_compaction()
    store.restore(store.prepare(store.image()))
    history.note()
    compaction.run()
    store.log.finish_compaction(compaction)
    history.change(33)
    history.sync()
    store.close()


def started(directory: Path, disk: TroubledDisk, durability: Durability) -> History:
    store = open_store(directory, KINDS, durability, disk=disk)
    for document in some_books(5):
        store.put(BOOK, document)
    store.log.sync()
    history = History(store)
    disk.watch()
    return history


def at_each_call(tmp_path: Path, check: Callable[[Path, int], bool]) -> int:
    """Run `check` with call number 0, 1, 2, ... until its trouble does not come any more; how often it came."""
    for number in count():
        place = tmp_path / f"at-{number}"
        place.mkdir()
        came = check(place, number)
        close_as_at_a_kill(place)
        if not came:
            return number
    raise AssertionError("there are more numbers than that")


def close_as_at_a_kill(place: Path) -> None:
    """Close the files of stores there that were not closed, as the system does: tests that follow may use select()."""
    gc.collect(1)  # journals
    locks = [lock.stat() for lock in place.rglob(LOCK)]
    for file in map(int, os.listdir("/dev/fd")):
        with suppress(OSError):  # it was that of this list
            if any(os.path.samestat(os.fstat(file), lock) for lock in locks):
                os.close(file)


def test_a_kill_at_each_system_call_loses_nothing_acknowledged(tmp_path: Path) -> None:
    def check(place: Path, number: int) -> bool:
        disk = TroubledDisk()
        history = started(place / "bank", disk, "process")
        disk.trouble = at_call(number, Crash(), once=False)
        try:
            work(history)
        except Crash:
            pass
        else:
            return False
        killed = copy_of(place / "bank")
        acknowledged = max(history.states)
        again = open_store(killed, KINDS)
        # the change under way may be whole or not at all
        assert again.sequence in (acknowledged, acknowledged + 1)
        if again.sequence == acknowledged:
            assert again.dump() == history.states[acknowledged]
        again.put(NOTE, {"id": "after"})
        after = answers(again)
        again.close()
        assert verify(killed, KINDS).sound
        once_more = open_store(killed, KINDS)
        assert answers(once_more) == after
        once_more.close()
        return True

    assert at_each_call(tmp_path, check) > 25


def test_a_power_cut_at_each_system_call_loses_nothing_that_was_synced(tmp_path: Path) -> None:
    def check(place: Path, number: int) -> bool:
        disk = LosingDisk()
        history = started(place / "bank", disk, "power")
        disk.trouble = at_call(number, Crash(), once=False)
        try:
            work(history)
        except Crash:
            pass
        else:
            return False
        for names_survive in (False, True):
            left = disk.after_power_cut(place / f"left-{names_survive}", names_survive=names_survive)
            again = open_store(left, KINDS, "power")
            assert again.sequence >= history.synced
            if again.sequence in history.states:
                assert again.dump() == history.states[again.sequence]
            again.close()
            assert verify(left, KINDS).sound
        return True

    assert at_each_call(tmp_path, check) > 25


@pytest.mark.parametrize(("durability", "once"), [("process", True), ("power", False)])
def test_a_failing_call_anywhere_leaves_the_store_true(tmp_path: Path, durability: Durability, once: bool) -> None:
    """Every call that fails: what was acknowledged stays, what was refused leaves no trace, memory equals disk."""

    def check(place: Path, number: int) -> bool:
        disk = TroubledDisk()
        history = started(place / "bank", disk, durability)
        store = history.store
        error = OSError(errno.EIO, "the disk fails")
        disk.trouble = at_call(number, error, once=once)
        refused = 0
        for step in range(12):
            try:
                if step == 4:
                    compaction = store.log.begin_compaction()
                    with suppress(StoreUnwritable):
                        history.change(step)
                    compaction.run()
                    store.log.finish_compaction(compaction)
                    history.synced = store.log.synced
                elif step == 8:
                    store.log.compact()
                    history.synced = store.log.synced
                elif step == 10:
                    store.restore(store.prepare(image_of(KINDS, {BOOK: some_books(3)})))
                    history.note()
                else:
                    history.change(step)
                history.sync()
            except StoreUnwritable:
                refused += 1
            if store.sequence in history.states:
                assert store.dump() == history.states[store.sequence]
        came = len(disk.calls) > number
        disk.trouble = lambda _: None
        killed = open_store(copy_of(place / "bank"), KINDS)
        assert killed.sequence >= history.synced
        if durability == "process":
            assert answers(killed) == answers(store)
        before = answers(store)
        store.close()
        again = open_store(place / "bank", KINDS)
        assert answers(again) == before
        again.close()
        return came

    assert at_each_call(tmp_path, check) > 15
