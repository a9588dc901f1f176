"""Copies a whole service from a state directory or a PostgreSQL to another one, and a directory as such a place.

A service on its way is the files of a state directory: the sandbox CA with all TPPs, every bank's documents as of its
last change, its snapshots. The request log and the counters of rules stay behind, which a directory does not keep
either.

The content of a directory is replaced atomically, also when killed: one rename makes the new content its own, and what
is left to do after that (deleting the old, moving the new to its place) is repeated by whoever opens it next.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple, Protocol

from emulator.assemble.storage import FolderStorage
from emulator.bank.kinds import KINDS
from emulator.ca.files import ca_file, check_plain, check_private, make_private, write_private
from emulator.store import LoadedDocuments, StoreError
from emulator.store.disk import shared_lock
from emulator.store.journal import SNAPSHOT, Recovered
from emulator.store.snapshot import snapshot_bytes

CA_FILES = ("ca.pem", "ca-key.pem")
CERTIFICATE = "certificate.pem"


def not_empty(target: object, banks: list[str]) -> StoreError:
    """The refusal of a target that is not empty."""
    what = f"banks ({', '.join(banks)})" if banks else "a sandbox CA"
    return StoreError(f"{target} holds {what}; --replace deletes what is there")


class StoredFile(NamedTuple):
    """A file, and its path in a state directory."""

    path: Path
    content: bytes


class Place(Protocol):
    """Where a service is stored. Raises StoreError, OSError."""

    def reading(self) -> AbstractContextManager[Iterator[StoredFile]]:
        """A `with` block with all files as of one moment, those of one TPP or bank one after the other."""
        ...

    def write(self, files: Iterator[StoredFile], *, replace: bool) -> None:
        """Store these in place of the present content; StoreError if there is some and not `replace`, or if processes
        use it.
        """
        ...


@dataclass(slots=True)
class Copied:
    """How much was copied."""

    banks: int = 0
    snapshots: int = 0
    tpps: int = 0

    def counting(self, files: Iterator[StoredFile]) -> Iterator[StoredFile]:
        """The files, counted as they pass."""
        for file in files:
            self.banks += file.path.name == SNAPSHOT
            self.snapshots += file.path.match("banks/*/content-*.json")
            self.tpps += file.path.match(f"tpps/*/{CERTIFICATE}")
            yield file


def copy(source: Place, target: Place, *, replace: bool) -> Copied:
    """Copy everything; StoreError if the source is empty, the target is not, or they are in use; OSError."""
    copied = Copied()
    with source.reading() as files:
        target.write(copied.counting(files), replace=replace)
    return copied


class Directory:
    """A state directory that no process uses."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._folders = FolderStorage(state / "banks", power=True)

    def __str__(self) -> str:
        return str(self._state)

    @contextmanager
    def reading(self) -> Iterator[Iterator[StoredFile]]:
        """A `with` block in which no process can write to any bank; StoreLocked."""
        complete(self._state)
        if not self._folders.names():
            raise StoreError(f"{self._state} holds no bank")
        check_plain(self._state)
        for name in self._folders.names():
            if (self._folders.of(name) / "snapshots").is_dir():  # of an earlier version
                self._folders.open(name).close()
        if not (self._state / "ca.pem").exists():
            raise StoreError(f"{self._state} has no sandbox CA (ca.pem)")
        with self._locked():
            yield self._files()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with ExitStack() as locked:
            for name in sorted(self._folders.names()):
                locked.enter_context(shared_lock(self._folders.of(name)))
            yield

    def _files(self) -> Iterator[StoredFile]:
        """The files of CA and TPPs as they are, and every bank as a start would find it; StoreDamaged, StoreTooNew."""
        plain = [ca_file(self._state, name) for name in CA_FILES]
        issued = sorted((self._state / "tpps").glob(f"*/{CERTIFICATE}"), key=lambda file: file.stat().st_mtime_ns)
        for certificate in (*(self._state / "bank").glob(CERTIFICATE), *issued):
            plain += sorted(file for file in certificate.parent.iterdir() if file.is_file())
        names = sorted(self._folders.names())
        for file in plain:
            yield StoredFile(file.relative_to(self._state), file.read_bytes())
        for name in names:
            folder, documents = self._folders.of(name), LoadedDocuments(KINDS)
            Recovered(folder, documents)
            body = snapshot_bytes(documents.freeze(), documents.sequence)
            yield StoredFile(Path("banks", name, SNAPSHOT), body)
            for content in documents.contents():
                yield StoredFile(Path("banks", name, content), (folder / content).read_bytes())

    def write(self, files: Iterator[StoredFile], *, replace: bool) -> None:
        """Replace the content of this directory by what is given."""
        complete(self._state)
        present = sorted(self._folders.names())
        if (present or (self._state / "ca.pem").exists()) and not replace:
            raise not_empty(self, present)
        with self._locked(), replacement(self._state) as folder:
            for name in ("banks", "tpps", "bank"):
                make_private(folder / name)
            for file in files:
                to = folder / file.path
                make_private(to.parent)
                write_private(to, file.content)


CONTENT = ("banks", "tpps", "bank", "private", "ca.pem")
"""The folders and files of a state directory that hold a service; all of them are in a new content."""

_COMPLETE = ".replacement"
_INCOMPLETE = ".replacement-"


@contextmanager
def replacement(state: Path) -> Iterator[Path]:
    """A folder for the new content of `state`, which it becomes at the end of the block; an exception drops it."""
    make_private(state)
    for left in state.glob(f"{_INCOMPLETE}*"):
        shutil.rmtree(left)
    folder = state / f"{_INCOMPLETE}{token_hex(6)}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    folder.rename(state / _COMPLETE)
    complete(state)


def complete(state: Path) -> None:
    """Finish a replacement that was interrupted after its content was complete; OSError."""
    folder = state / _COMPLETE
    if not folder.is_dir():
        return
    check_private(state)
    for name in CONTENT:
        new, old = folder / name, state / name
        if not new.exists():  # it has been moved
            continue
        if old.is_dir():
            shutil.rmtree(old)
        new.replace(old)
    folder.rmdir()
