"""Where the banks of a process are stored: in memory, in the folders of a state directory, or in a shared store.

The registry has the banks that are open, whichever form stores them. The form for a shared store is in `homes.py`: a
bank is opened there before a turn begins, as that takes waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from emulator.assemble.folders import Folders
from emulator.bank.errors import BankError
from emulator.bank.kinds import KINDS
from emulator.bank.snapshots import NAME, SavedSnapshot, Snapshots, is_small
from emulator.bank.threads import in_thread
from emulator.ca.files import sweep, write_private
from emulator.store import (
    Image,
    JournalLog,
    Store,
    StoreDamaged,
    StoreError,
    StoreUnwritable,
    memory_store,
    open_store,
)
from emulator.store.disk import Disk
from emulator.store.snapshot import image_from_bytes, snapshot_bytes

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


ENDING = ".snapshot.json"


class FileSnapshots(Snapshots):
    """The snapshots of one bank, in files of a directory, which may be missing.

    With `power`, saved and deleted snapshots survive a power cut. Unfinished files of a killed process are removed.
    """

    def __init__(self, directory: Path, *, power: bool = False) -> None:
        super().__init__()
        self._directory = directory
        self._power = power
        if directory.is_dir():
            sweep(directory)
        for file in sorted(snapshot_files(directory), key=lambda file: file.stat().st_mtime):
            name = file.name.removesuffix(ENDING)
            self._saved[name] = SavedSnapshot(datetime.fromtimestamp(file.stat().st_mtime, UTC), None)

    def _keep(self, name: str, image: Image) -> Generator[object, None, Image | None]:
        def write() -> None:
            _write(self._directory, self._file(name), snapshot_bytes(image.tables), power=self._power)

        if is_small(image.size):
            write()
            return image
        yield from in_thread(write)
        return None

    def _drop(self, name: str) -> None:
        self._file(name).unlink(missing_ok=True)
        if self._power:
            Disk().sync_directory(self._directory)

    def _file(self, name: str) -> Path:
        return self._directory / f"{name}{ENDING}"

    def _size(self, name: str) -> int:
        file = self._file(name)
        return file.stat().st_size if file.is_file() else 0

    def _read(self, name: str) -> Image:
        file = self._file(name)
        try:
            content = file.read_bytes()
            image = image_from_bytes(content, KINDS, file=file)
        except FileNotFoundError:
            del self._saved[name]
            raise BankError("RESOURCE_UNKNOWN", f"The file of the snapshot {name} does not exist any more.") from None
        except (OSError, StoreError) as error:
            raise BankError("CONFLICT", f"The snapshot {name} cannot be read: {error}") from None
        if is_small(len(content)):
            self._saved[name].image = image
        return image


def damaged_snapshots(directory: Path) -> list[StoreDamaged]:
    """The damaged snapshot files in a directory, which may be missing; raises StoreTooNew."""
    errors = []
    for file in sorted(snapshot_files(directory)):
        try:
            image_from_bytes(file.read_bytes(), KINDS, file=file)
        except StoreDamaged as error:
            errors.append(error)
    return errors


def snapshot_files(directory: Path) -> Iterator[Path]:
    """The files of the snapshots in a directory, which may be missing."""
    for file in directory.glob(f"*{ENDING}"):
        if NAME.fullmatch(file.name.removesuffix(ENDING)) and file.is_file():
            yield file


def _write(directory: Path, file: Path, content: bytes, *, power: bool) -> None:
    """Write a file atomically, readable by its owner only; raises StoreUnwritable.

    OSError if a power cut could undo the write; a new file is then removed.
    """
    disk, is_new = Disk(), not file.exists()
    try:
        disk.make_directory(directory, sync=power)
        write_private(file, content)
    except OSError as error:
        raise StoreUnwritable(f"{file}: {error}") from error
    if power:
        try:
            disk.sync_directory(directory)
        except OSError:
            if is_new:
                with suppress(OSError):
                    file.unlink()
            raise
