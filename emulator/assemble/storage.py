"""Where the banks of a process are stored: in memory, in the folders of a state directory, or in a shared store.

The registry has the banks that are open, whichever form stores them. The form for a shared store is in `homes.py`: a
bank is opened there before a turn begins, as that takes waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from emulator.assemble.folders import Folders
from emulator.assemble.snapshots import FileSnapshots
from emulator.bank.kinds import KINDS
from emulator.bank.snapshots import Snapshots
from emulator.store import JournalLog, Store, memory_store, open_store

New = tuple[Store, Callable[[], None]]
"""The documents of a new bank, and what puts it in its place."""


class Storage(Protocol):
    """Where banks are stored by name. Methods raise StoreError and OSError."""

    @property
    def opens_default(self) -> bool:
        """Whether the default bank is open from the start to the end."""
        ...

    @property
    def confirms(self) -> bool:
        """Whether answers wait for their changes to last (see `store.Log`)."""
        ...

    @property
    def keeps(self) -> bool:
        """Whether a bank that is closed can be opened again."""
        ...

    def names(self) -> set[str]:
        """The stored banks."""
        ...

    def number(self, name: str) -> int:
        """How many banks of this name were created, with the one that is being created."""
        ...

    def home(self, name: str) -> str | None:
        """The address of the process that has the bank, if several share banks."""
        ...

    def has(self, name: str) -> bool:
        """Whether the bank is stored."""
        ...

    def open(self, name: str) -> Store:
        """The documents of a bank; empty ones if it is new."""
        ...

    def creating(self, name: str) -> AbstractContextManager[New]:
        """A context with the documents of a new bank, which are dropped unless it was put in its place."""
        ...

    def delete(self, name: str) -> Generator[object, None, None]:
        """Delete a bank, in steps between which others may be used; after the first it cannot be opened any more."""
        ...

    def put_aside(self, name: str) -> AbstractContextManager[None]:
        """A context in which a damaged bank does not exist; it is put back if the block fails."""
        ...

    def snapshots(self, name: str) -> Snapshots:
        """The snapshots of a bank."""
        ...

    def sweep(self) -> None:
        """Clean up after a killed process."""
        ...


class MemoryStorage:
    """Banks that exist as long as the process."""

    opens_default = True
    confirms = keeps = False

    def __init__(self) -> None:
        self._created: Counter[str] = Counter()

    def number(self, name: str) -> int:
        """Counted by this process."""
        self._created[name] += 1
        return self._created[name]

    def home(self, _name: str) -> None:
        """Banks are not shared."""

    def names(self) -> set[str]:
        """None."""
        return set()

    def has(self, _name: str) -> bool:
        """No."""
        return False

    def open(self, _name: str) -> Store:
        """Empty documents."""
        return memory_store(KINDS)

    @contextmanager
    def creating(self, name: str) -> Iterator[New]:
        """Empty documents, in their place already."""
        yield self.open(name), lambda: None

    def delete(self, _name: str) -> Generator[object, None, None]:
        """Nothing to delete."""
        yield from ()

    @contextmanager
    def put_aside(self, _name: str) -> Iterator[None]:
        """Nothing is damaged."""
        yield

    def snapshots(self, _name: str) -> Snapshots:
        """Snapshots in memory."""
        return Snapshots()

    def sweep(self) -> None:
        """Nothing is left of former processes."""


class FolderStorage(MemoryStorage):
    """Each bank in a folder of `directory`; `power`: changes survive a power failure."""

    keeps = True

    def __init__(
        self, directory: Path, *, power: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> None:
        super().__init__()
        self.confirms = power
        self.folders = Folders(directory, power=power)
        self._progress = progress

    def names(self) -> set[str]:
        """The banks with a folder."""
        return self.folders.names()

    def has(self, name: str) -> bool:
        """Whether the bank has a folder."""
        return self.folders.has(name)

    def open(self, name: str) -> Store:
        """The documents in the bank's folder, which is created if it is missing."""
        return self._open(self.folders.of(name))

    def _open(self, folder: Path) -> Store:
        return open_store(folder, KINDS, "power" if self.confirms else "process", progress=self._progress)

    @contextmanager
    def creating(self, name: str) -> Iterator[New]:
        """Documents in a temporary folder, which gets the bank's name at the end."""
        temporary = self.folders.temporary()
        with ExitStack() as undo:
            undo.callback(self.folders.drop, temporary)
            documents = self._open(temporary)
            undo.callback(documents.discard)

            def place() -> None:
                self.folders.place(temporary, name)
                if isinstance(documents.log, JournalLog):
                    documents.log.moved(self.folders.of(name))
                undo.pop_all()

            yield documents, place

    def delete(self, name: str) -> Generator[object, None, None]:
        """The folder is moved away, then deleted."""
        aside = self.folders.put_aside(name)
        yield None
        self.folders.drop(aside)

    @contextmanager
    def put_aside(self, name: str) -> Iterator[None]:
        """The folder is moved away; it comes back if the block fails, or the process is killed in it."""
        aside = self.folders.put_aside(name, replaced=True)
        try:
            yield
        except BaseException:
            self.folders.place(aside, name)
            raise
        self.folders.drop(aside)

    def snapshots(self, name: str) -> Snapshots:
        """The snapshots in the bank's folder."""
        return FileSnapshots(self.folders.of(name) / "snapshots", power=self.confirms)

    def sweep(self) -> None:
        """Restore and delete what a killed process has left under temporary names."""
        self.folders.sweep()
        self.folders.sync()
