"""Wherever a change fails, it is undone whole, or nothing is read or written until it is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import Mock

import pytest

from emulator import store as package
from emulator.store import (
    Change,
    Documents,
    Durability,
    Log,
    StoreUnwritable,
    WriteGroup,
    documents,
    kinds,
    memory_store,
    open_store,
    table,
)
from emulator.store.kinds import Keys
from emulator.store.table import DocumentTable
from tests.unit.store.making import BOOK, KINDS, NOTE, answers, book, copy_of, disagreement, some_books

CODE = str(Path(package.__file__).parent)


class Tape(Log):
    """A log in memory, and what to do once a change is stored."""

    def __init__(self, confirms: bool) -> None:
        self.confirms = confirms
        self.stored: list[bytes] = []
        self.told: Callable[[], None] = lambda: None

    def append(self, change: Change) -> None:
        self.stored.append(change.payload)
        self.told()

    def load(self, documents: Documents) -> None:
        for payload in self.stored:
            documents.apply(payload)


def nested(store: Documents) -> None:
    with store.transaction():
        store.put(BOOK, book("b3", author="outer", year=7, tags=["all"]))
        with suppress(MemoryError), store.transaction():
            store.delete(BOOK, "b3")
            store.put(BOOK, book("b3", author="inner"))
            store.restore(memory_store(KINDS).image())
        store.put(NOTE, {"id": "with it"})


def refused(store: Documents) -> None:
    with suppress(ZeroDivisionError), store.transaction():
        store.put(BOOK, book("never", author="author 1", year=3, tags=["all", "tag 2"]))
        store.delete(BOOK, "b4")
        store.put(BOOK, book("b5", shelf="left", title="Title 9"))
        store.delete_several(BOOK, [f"b{number}" for number in range(5, 9)])
        raise ZeroDivisionError


CHANGES: dict[str, Callable[[Documents], object]] = {
    "insert": lambda store: store.put(BOOK, book("new", author="author 1", year=5, tags=["all"], shelf="a", title="x")),
    "replace": lambda store: store.put(BOOK, book("b7", author="other", year=5, tags=["tag 1"], shelf="a", title="x")),
    "delete": lambda store: store.delete(BOOK, "b2"),
    "delete several": lambda store: store.delete_several(BOOK, [f"b{number}" for number in range(3)]),
    "delete most": lambda store: store.delete_several(BOOK, [f"b{number}" for number in range(7)]),
    "restore": lambda store: store.restore(memory_store(KINDS).image()),
    "nested": nested,
    "refused": refused,
    "TinyDB": lambda store: store.tables["book"].update({"author": "another"}),
}


def filled(confirms: bool = False) -> tuple[Documents, Tape]:
    tape = Tape(confirms)
    store = Documents(tape, KINDS)
    with store.transaction():
        for document in some_books(9):
            store.put(BOOK, document)
    store.put(NOTE, {"id": "n"})
    store.confirm(store.sequence)
    return store, tape


def dump(store: Documents) -> dict[str, Any]:
    return {kind.name: list(store.all(kind)) for kind in KINDS}


def check(store: Documents, tape: Tape, allowed: list[dict[str, Any]]) -> None:
    """The bank is as it was before or after the change, and so is what its log says after one more change."""
    assert dump(store) in allowed
    for kind in KINDS:
        assert disagreement(store.tables[kind.name]) is None
    store.put(NOTE, {"id": "later"})
    again = memory_store(KINDS)
    for payload in tape.stored:
        again.apply(payload)
    assert dump(again) == dump(store)


def outcomes(change: Callable[[Documents], object], confirms: bool = False) -> list[dict[str, Any]]:
    store, _ = filled(confirms)
    before = dump(store)
    change(store)
    return [before, dump(store)]


@contextmanager
def failing_at_line(number: int, tape: Tape) -> Iterator[Callable[[], bool]]:
    """One line of the store's code fails; not where a block ends or a change is stored: nothing there needs memory."""
    lines, failed = count(), False

    def line(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal failed
        text = getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not text.lstrip().startswith(("with ", "try:")) and next(lines) == number:
            failed = True
            raise MemoryError
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        return line if code.co_filename.startswith(CODE) and code.co_name not in ("__exit__", "__del__") else None

    before = sys.gettrace()
    tape.told = lambda: sys.settrace(before)
    gc.disable()  # what other tests have left is not to fail
    sys.settrace(call)
    try:
        yield lambda: failed
    finally:
        sys.settrace(before)
        gc.enable()
        tape.told = lambda: None


@pytest.mark.parametrize(
    ("name", "confirms"),
    [*((name, False) for name in ("replace", "delete several", "restore", "nested", "refused")), ("nested", True)],
)
def test_whatever_line_fails_all_of_a_change_is_there_or_nothing(name: str, confirms: bool) -> None:
    change = CHANGES[name]
    allowed = outcomes(change, confirms)
    if name == "nested":  # the inner block alone may fail
        allowed.append(allowed[1])
    for number in count(0, 3 if name == "replace" else 13):
        store, tape = filled(confirms)
        with failing_at_line(number, tape) as failed, suppress(MemoryError, StoreUnwritable):
            change(store)
        assert store.depth == 0
        if name == "nested" and store.exists(NOTE, "with it") and store.exists(BOOK, "b3"):
            allowed[2] = dump(store)
        check(store, tape, allowed)
        if not failed():
            break
    assert number > 20


STEPS: list[tuple[Any, str]] = [
    (DocumentTable, "place"),
    (Keys, "change"),
    (Keys, "of"),
    (kinds, "_add"),
    (kinds, "_remove"),
    (table, "decoded"),
    (documents, "difference"),
    (DocumentTable, "changed"),
]


class FailingSteps:
    """The steps from `first` on fail, so many one after the other."""

    def __init__(self, first: int, lasting: int) -> None:
        self.failing = range(first, first + lasting)
        self.calls = count()
        self.failed = 0

    def replace(self, patch: pytest.MonkeyPatch) -> None:
        for owner, name in STEPS:
            patch.setattr(owner, name, self.tried(getattr(owner, name)))

    def tried(self, function: Any) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            if next(self.calls) in self.failing:
                self.failed += 1
                raise MemoryError
            return function(*given, **named)

        return step


@pytest.mark.parametrize(
    ("name", "lasting"),
    [*((name, 1) for name in CHANGES), *((name, 1000) for name in ("replace", "delete several", "restore", "nested"))],
)
def test_however_long_a_failure_lasts_no_part_of_a_change_is_read_or_stored(
    name: str, lasting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = CHANGES[name]
    allowed = outcomes(change)
    for number in count():
        store, tape = filled()
        steps = FailingSteps(number, lasting)
        with monkeypatch.context() as patch:
            steps.replace(patch)
            with suppress(MemoryError, StoreUnwritable):
                change(store)
            stored = len(tape.stored)
            with suppress(MemoryError, StoreUnwritable):
                assert dump(store) in allowed or name == "nested"
            with suppress(MemoryError, StoreUnwritable):
                store.put(NOTE, {"id": "early"})
        if not steps.failed:
            break
        if store.exists(NOTE, "early"):
            store.delete(NOTE, "early")
        assert len(tape.stored) <= stored + 2
        check(store, tape, [*allowed, dump(store)] if name == "nested" else allowed)
    assert number > 3


def test_a_failed_undo_takes_what_waits_of_the_turn_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store, tape = filled()
    before, stored, group = dump(store), len(tape.stored), WriteGroup()
    store.join(group)
    group.open = True
    store.put(NOTE, {"id": "first request"})
    place = DocumentTable.place
    with monkeypatch.context() as patch:

        def block() -> None:
            with store.transaction():
                store.delete(BOOK, "b1")
                store.delete(BOOK, "b2")
                patch.setattr(DocumentTable, "place", lambda *_: 1 / 0)
                raise MemoryError

        with pytest.raises(StoreUnwritable, match="could not be undone"):
            block()
        with pytest.raises(StoreUnwritable):
            store.get(BOOK, "b1")
        group.open = False
        with pytest.raises(StoreUnwritable):
            store.flush()
        patch.setattr(DocumentTable, "place", place)
    assert dump(store) == before
    assert len(tape.stored) == stored
    check(store, tape, [before])


def test_reverted_changes_that_cannot_be_undone_at_once_are_undone_later(monkeypatch: pytest.MonkeyPatch) -> None:
    store, tape = filled(confirms=True)
    before, sequence = dump(store), store.sequence
    store.delete(BOOK, "b1")
    store.restore(memory_store(KINDS).image())
    store.put(BOOK, book("after it"))
    del tape.stored[sequence:]
    with monkeypatch.context() as patch:
        patch.setattr(DocumentTable, "place", lambda *_: 1 / 0)
        store.revert(sequence, StoreUnwritable("the disk failed"))
        with pytest.raises(StoreUnwritable, match="cannot be loaded anew"):
            store.put(NOTE, {"id": "too early"})
    assert dump(store) == before
    assert store.sequence == sequence
    check(store, tape, [before])


def test_a_follower_may_read_while_a_change_is_undone() -> None:
    store, tape = filled()
    before, seen = dump(store), []
    store.follow(BOOK, lambda: seen.append(store.get(BOOK, "b1")))
    refused(store)
    assert seen[-1] == before["book"][1]
    check(store, tape, [before])


@pytest.mark.parametrize("name", ["delete", "nested", "refused"])
def test_a_block_whose_end_does_not_even_begin_is_undone(name: str) -> None:
    """A frame for its `__exit__` needs memory, too."""
    change = CHANGES[name]
    allowed = outcomes(change)
    for number in count():
        store, tape = filled()
        ends, before = count(), sys.gettrace()

        def call(frame: FrameType, event: str, _argument: Any, number: int = number, ends: Any = ends) -> None:
            code = frame.f_code
            if code.co_name == "__exit__" and code.co_filename.startswith(CODE) and next(ends) == number:
                raise MemoryError

        sys.settrace(call)
        try:
            with suppress(MemoryError, StoreUnwritable):
                change(store)
        finally:
            sys.settrace(before)
        assert store.depth == 0
        with_it = [dump(store)] if store.exists(NOTE, "with it") and store.exists(BOOK, "b3") else []
        check(store, tape, [*allowed, *with_it])
        if next(ends) <= number:
            break
    assert number > 0


def spoil(store: Documents, patch: pytest.MonkeyPatch) -> None:
    """Begin a change of books, and undo it in vain, now and later."""
    books = store.tables["book"]

    def change() -> None:
        with store.transaction():
            store.delete(BOOK, "b1")
            store.put(NOTE, {"id": "with it"})
            patch.setattr(books, "place", lambda *_: 1 / 0)
            raise MemoryError

    with pytest.raises(StoreUnwritable, match="could not be undone"):
        change()


@pytest.mark.parametrize("durability", ["process", "power"])
def test_what_can_never_be_undone_is_loaded_anew_from_the_log(
    directory: Path, durability: Durability, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, events = open_store(directory, KINDS, durability), list[Any]()
    store.listen(events.append)
    for document in some_books(9):
        store.put(BOOK, document)
    with store.transaction():
        store.put(NOTE, {"id": "n"})
        store.publish({"type": "n"})
    before, sequence, content = answers(store), store.sequence, store.content()
    with monkeypatch.context() as patch:
        spoil(store, patch)
        with store.transaction():  # also where it is the first to come
            assert answers(store) == before
    assert (store.sequence, events) == (sequence, [{"type": "n"}])
    assert store.content() is not content, "whoever goes through them begins anew"
    assert not store.log.sync_needed
    store.put(BOOK, book("b1", author="changed"))
    store.log.sync()
    again = open_store(copy_of(directory), KINDS)
    assert (answers(again), again.sequence) == (answers(store), sequence + 1)
    store.close()


def test_what_is_in_memory_only_and_can_never_be_undone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory_store(KINDS)
    store.put(BOOK, book("b1"))
    with monkeypatch.context() as patch:
        spoil(store, patch)
        for access in (lambda: store.get(BOOK, "b1"), lambda: store.put(NOTE, {"id": "n"})):
            with pytest.raises(StoreUnwritable, match="in memory only"):
                access()


def test_changes_that_wait_and_find_no_memory_are_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    (store, tape), group = filled(), WriteGroup()
    store.join(group)
    group.open = True
    store.put(NOTE, {"id": "waiting"})
    with monkeypatch.context() as patch:
        patch.setattr(tape, "append", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            store.write_waiting()
    with pytest.raises(StoreUnwritable, match="not enough memory"):
        store.flush()
    assert not store.exists(NOTE, "waiting")


def test_a_change_that_fails_before_it_begins_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory_store(KINDS)
    store.put(BOOK, book("b1", author="first"))
    with monkeypatch.context() as patch:
        patch.setattr(table, "decoded", Mock(side_effect=MemoryError))
        for change in (lambda: store.put(BOOK, book("b1", author="second")), lambda: store.delete(BOOK, "b1")):
            with pytest.raises(MemoryError):
                change()
    assert store.find(BOOK, author="first") == [book("b1", author="first")]
    store.put(NOTE, {"id": "n"})
