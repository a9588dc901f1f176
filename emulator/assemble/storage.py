"""Where the banks of a process are stored: in memory, in the folders of a state directory, or in a shared store.

The registry has the banks that are open, whichever form stores them. The form for a shared store is in `homes.py`: a
bank is opened there before a turn begins, as that takes waiting.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Set
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

from emulator.bank.formats import FILE_NAME
from emulator.bank.kinds import KINDS
from emulator.bank.snapshots import named
from emulator.bank.threads import LASTS
from emulator.store import SNAPSHOTS, Documents, JournalLog, memory_store, open_store
from emulator.store.disk import Disk
from emulator.store.log import content_name

New = tuple[Documents, Callable[[], None]]
"""The documents of a new bank, and what puts it in its place."""

_TEMPORARY = re.compile(r"\.(?:new|deleted|replaced-(?P<name>.+))-[0-9a-f]{12}")


class Storage:
    """Where banks are stored by name: here, in memory, for as long as the process.

    A form that stores them overrides the methods, which raise StoreError and OSError. `opens_default`: the default bank
    is open from the start to the end; `confirms`: answers wait for their changes to last (see `store.Log`).
    """

    opens_default = True
    confirms = False

    def __init__(self) -> None:
        self._created: Counter[str] = Counter()

    def names(self) -> Set[str]:
        """The stored banks."""
        return frozenset()

    def number(self, name: str) -> int:
        """How many banks of this name were created, with the one that is being created."""
        return self._created[name] + 1

    def home(self, _name: str) -> str | None:
        """The address of the process that has the bank, if several share banks."""
        return None

    def has(self, name: str) -> bool:
        """Whether the bank is stored."""
        return name in self.names()

    def open(self, _name: str) -> Documents:
        """The documents of a bank; empty ones if it is new."""
        return memory_store(KINDS)

    @contextmanager
    def creating(self, name: str) -> Iterator[New]:
        """A context with the documents of a new bank, which are dropped unless it was put in its place, in which a
        damaged bank may be.
        """
        yield self.open(name), lambda: self._created.update([name])

    def delete(self, _name: str, _end: Callable[[], None]) -> Generator[object, None, None]:
        """Delete a bank, in steps between which others may be used; `end` closes it once it cannot be opened again."""
        yield from ()

    def sweep(self) -> None:
        """Clean up after a killed process."""


class FolderStorage(Storage):
    """Each bank in a folder of `directory`, created, replaced and deleted atomically, also when killed.

    A folder is prepared and deleted under a temporary name; a rename puts it in its place or takes it away. `power`:
    changes survive a power failure.
    """

    def __init__(
        self, directory: Path, *, power: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> None:
        super().__init__()
        self.confirms = power
        self._directory = directory
        self._disk = Disk()
        self._progress = progress

    def names(self) -> set[str]:
        if not self._directory.is_dir():
            return set()
        return {path.name for path in self._directory.iterdir() if self.has(path.name)}

    def of(self, name: str) -> Path:
        """The folder of a bank, which need not exist."""
        return self._directory / name

    def has(self, name: str) -> bool:
        return FILE_NAME.fullmatch(name) is not None and self.of(name).is_dir()

    def open(self, name: str) -> Documents:
        return self._open(self.of(name))

    def _open(self, folder: Path) -> Documents:
        documents = open_store(folder, KINDS, "power" if self.confirms else "process", progress=self._progress)
        with ExitStack() as undo:
            undo.callback(documents.discard)
            if (former := folder / "snapshots").is_dir():
                _adopt(documents, folder, former)
            undo.pop_all()
        return documents

    def temporary(self, word: str = "new") -> Path:
        """A new path for a folder that is not in its place."""
        return self._directory / f".{word}-{token_hex(6)}"

    @contextmanager
    def creating(self, name: str) -> Iterator[New]:
        """Documents in a temporary folder, which gets the bank's name at the end; a damaged one there is moved away. It
        comes back if that fails, or the process is killed before there is the new one.
        """
        temporary = self.temporary()
        with ExitStack() as undo:
            undo.callback(shutil.rmtree, temporary, ignore_errors=True)
            documents = self._open(temporary)
            undo.callback(documents.discard)

            def place() -> None:
                damaged = self.temporary(f"replaced-{name}") if self.has(name) else None
                if damaged is not None:
                    self._rename(self.of(name), damaged)
                    undo.callback(self._rename, damaged, self.of(name))
                self._rename(temporary, self.of(name))
                if isinstance(documents.log, JournalLog):
                    documents.log.directory = self.of(name)
                self._created[name] += 1
                undo.pop_all()
                if damaged is not None:
                    shutil.rmtree(damaged, ignore_errors=True)

            yield documents, place

    def delete(self, name: str, end: Callable[[], None]) -> Generator[object, None, None]:
        """The folder is moved away, then deleted; `sweep` deletes what is left of it."""
        aside = self.temporary("deleted")
        self._rename(self.of(name), aside)
        end()
        yield LASTS
        shutil.rmtree(aside, ignore_errors=True)

    def sweep(self) -> None:
        """Restore a folder that a killed process was replacing, and delete its other temporary ones."""
        for path in list(self._directory.iterdir()):
            match = _TEMPORARY.fullmatch(path.name)
            if match is not None and match["name"] is not None and not self.has(match["name"]):
                self._rename(path, self.of(match["name"]))
            elif match is not None:
                shutil.rmtree(path, ignore_errors=True)
        if self.confirms:
            self._disk.sync_directory(self._directory)
            self._disk.sync_directory(self._directory.parent)

    def _rename(self, old: Path, new: Path) -> None:
        """Move a folder; if this fails, it is not moved."""
        self._disk.rename(old, new)
        if self.confirms:
            try:
                self._disk.sync_directory(self._directory)
            except OSError:
                self._disk.rename(new, old)
                raise


def _adopt(documents: Documents, folder: Path, former: Path) -> None:
    """Take over the snapshots of an earlier version, which had their files in a folder of their own."""
    ending = ".snapshot.json"
    with documents.transaction():
        for file in sorted(former.glob(f"*{ending}"), key=lambda file: file.stat().st_mtime):
            created, content = datetime.fromtimestamp(file.stat().st_mtime, UTC), content_name()
            try:
                os.link(file, folder / content)  # which needs no space, and is on the medium already
            except OSError:  # a file system without links
                shutil.copy(file, folder / content)
                with (folder / content).open("rb") as copied:
                    os.fsync(copied.fileno())
            name = file.name.removesuffix(ending)
            documents.put(SNAPSHOTS, named(name, created, content))
        Disk().sync_directory(folder)
    documents.log.sync()
    shutil.rmtree(former)
