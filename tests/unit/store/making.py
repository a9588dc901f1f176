"""Kinds, documents and troublesome disks for the tests of the store."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from emulator.store import Document, Documents, Image, Kind, Ordered, memory_store, open_store
from emulator.store.disk import Disk
from emulator.store.journal import unsealed
from emulator.store.kinds import by_name, decoded
from emulator.store.snapshot import load
from emulator.store.table import DocumentTable

BOOK = Kind[Document](
    "book",
    indexes=("author", "tags"),
    ordered={"year": Ordered(by="year"), "shelf": Ordered(by="title", group="shelf")},
)
NOTE = Kind[Document]("note", arrival="came")
KINDS = (BOOK, NOTE)


def book(identity: str, **members: Any) -> Document:
    """A document of the kind `book`."""
    return {"id": identity, **members}


def some_books(count: int = 5) -> list[Document]:
    """Books with all that indexes and orders look at."""
    return [
        book(
            f"b{number}",
            author=f"author {number % 2}",
            tags=["all", f"tag {number % 3}"],
            year=2000 - number,
            shelf="left" if number % 2 else "right",
            title=f"Title {number:03d}",
        )
        for number in range(count)
    ]


def image_of(kinds: Sequence[Kind[Any]], documents: Mapping[Kind[Any], Iterable[Document]]) -> Image:
    """The image with exactly these documents, in this order."""
    store = memory_store(kinds)
    for kind, several in documents.items():
        for document in several:
            store.put(kind, document)
    return store.image()


def image_from_bytes(data: bytes, kinds: Sequence[Kind[Any]], *, file: Path = Path("image")) -> Image:
    """The image in a whole snapshot file."""
    return load(iter([data]), file, by_name(kinds))[1]


def with_books(directory: Path, **options: Any) -> Documents:
    """A store in the directory, with five books in its journal."""
    store = open_store(directory, KINDS, **options)
    for document in some_books():
        store.put(BOOK, document)
    return store


def copy_of(directory: Path) -> Path:
    """The directory as a kill at this moment would leave it."""
    for number in count(1):
        other = directory.with_name(f"{directory.name}-killed-{number}")
        if not other.exists():
            shutil.copytree(directory, other)
            return other
    raise AssertionError("there are more numbers than that")


def answers(store: Documents) -> dict[str, Any]:
    """Everything that can be asked about books, to compare two stores by."""
    books = list(store.all(BOOK))
    authors = sorted({b["author"] for b in books if "author" in b})
    tags = sorted({tag for b in books for tag in b.get("tags", ())})
    shelves = sorted({b["shelf"] for b in books if "shelf" in b})
    return {
        "dump": store.dump(),
        "author": {author: store.find(BOOK, author=author) for author in authors},
        "tags": {tag: store.find(BOOK, tags=tag, newest_first=True) for tag in tags},
        "year": store.range(BOOK, "year"),
        "shelf": {shelf: store.range(BOOK, "shelf", group=shelf) for shelf in shelves},
        "first": store.first_key("year", BOOK),
    }


def records(data: bytes) -> list[tuple[int, bytes]]:
    """The valid records at the beginning of a journal: the offset of each, and its change."""
    read: list[tuple[int, bytes]] = []
    end = 0
    while (record := unsealed(data, end)) is not None:
        read.append((end, record[0]))
        end = record[1]
    return read


def disagreement(table: DocumentTable) -> str | None:
    """How the ids, indexes or orders of a table disagree with its documents; None if they agree."""
    again = DocumentTable(table.kind)
    for number, raw in table.sorted_rows().items():
        document = decoded(raw)
        again.place(document["id"], number, raw, document)
    if again.numbers != table.numbers:
        return "the ids do not match the documents"
    ours, theirs = again.keys, table.keys
    same = ours.indexes == theirs.indexes and ours.orders == theirs.orders
    return None if same else "the indexes do not match the documents"


class Crash(BaseException):
    """The process is dead; nothing catches this."""


class TroubledDisk(Disk):
    """A disk whose calls can fail: `trouble(name)` is asked before each call and raises, or returns.

    `calls` has the names of all calls that change something since `watch`.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.trouble: Callable[[str], None] = lambda _: None
        self.write_at_most: int | None = None

    def watch(self) -> None:
        self.calls.clear()

    def _about_to(self, name: str) -> None:
        self.calls.append(name)
        self.trouble(name)

    def open_to_append(self, path: Path) -> int:
        self._about_to("open_to_append")
        return super().open_to_append(path)

    def create(self, path: Path) -> int:
        self._about_to("create")
        return super().create(path)

    def write(self, file: int, data: bytes | memoryview) -> int:
        try:
            self._about_to("write")
        except (Crash, OSError):
            # part of it may have been written
            os.write(file, data[: len(data) // 2])
            raise
        if self.write_at_most is not None:
            data = data[: self.write_at_most]
        return super().write(file, data)

    def write_at(self, file: int, data: bytes, offset: int) -> int:
        self._about_to("write_at")
        return super().write_at(file, data, offset)

    def cut(self, file: int, size: int) -> None:
        self._about_to("cut")
        super().cut(file, size)

    def sync(self, file: int) -> None:
        self._about_to("sync")
        super().sync(file)

    def sync_directory(self, path: Path) -> None:
        self._about_to("sync_directory")
        super().sync_directory(path)

    def rename(self, old: Path, new: Path) -> None:
        self._about_to("rename")
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        try:
            self._about_to("remove")
        except Crash:  # at the next call: a `__del__` cannot raise
            return
        super().remove(path)


def failing(*names: str, error: int = errno.ENOSPC) -> Callable[[str], None]:
    """A trouble: these calls fail."""

    def trouble(name: str) -> None:
        if name in names:
            raise OSError(error, os.strerror(error))

    return trouble


def at_call(number: int, error: BaseException, *, once: bool) -> Callable[[str], None]:
    """A trouble: the call with this number (from 0) fails, and unless `once` every later one."""
    calls = count()

    def trouble(name: str) -> None:
        now = next(calls)
        if now == number or (now > number and not once):
            raise type(error)(*error.args)  # another one, so that none has the frames of several calls

    return trouble
