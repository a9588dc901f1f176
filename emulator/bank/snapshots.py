"""Named snapshots of a bank: documents, clock, rules and settings, which can be restored (CONTRACT 9.8, 13).

They are stored in memory, and also as files if the bank is stored on disk. A reset keeps them (assumed); a bank that
is created again has none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from emulator.bank.bank import Bank
from emulator.bank.clock import date_time, real_now
from emulator.bank.errors import BankError
from emulator.bank.kinds import KINDS, META
from emulator.bank.threads import in_thread
from emulator.store import Image, NotFetched, PreparedImage, StoreDamaged, StoreError, StoreUnwritable
from emulator.store.disk import Disk
from emulator.store.snapshot import image_from_bytes, snapshot_bytes

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
MOST = 100
LARGE = 4 << 20  # bytes; a larger snapshot is written in a thread, and read from its file when it is restored
_ENDING = ".snapshot.json"
_UNFINISHED = f"{_ENDING}.new"


@dataclass(slots=True)
class _Saved:
    created: datetime
    image: Image | None  # None: still in its file


class Snapshots:
    """The snapshots of one bank; `directory` None keeps them in memory only.

    With `power`, saved and deleted snapshots survive a power cut. Unfinished files of a killed process are removed.
    """

    def __init__(self, directory: Path | None, *, power: bool = False) -> None:
        self._directory = directory
        self._power = power
        self._saved: dict[str, _Saved] = {}
        self._saving: set[str] = set()
        if directory is not None and directory.is_dir():
            for unfinished in directory.glob(f".*{_UNFINISHED}"):
                _drop(unfinished)
            for file in sorted(files(directory), key=lambda file: file.stat().st_mtime):
                name = file.name.removesuffix(_ENDING)
                self._saved[name] = _Saved(datetime.fromtimestamp(file.stat().st_mtime, UTC), None)

    def save(self, bank: Bank, name: str) -> None:
        """Save the bank's current state; a snapshot of the same name is replaced."""
        for _ in self.saving(bank, name):
            pass

    def saving(self, bank: Bank, name: str) -> Iterator[object]:
        """`save` in steps, between which the bank may be used; the state of the first step is saved."""
        if not NAME.fullmatch(name):
            text = "The name of a snapshot has letters, digits, dots, dashes and underscores, at most 63."
            raise BankError("FORMAT_ERROR", text, "name")
        if name not in self._saved and len(self._saved) >= MOST:
            raise BankError("CONFLICT", f"There are {MOST} snapshots; delete one first.", "name")
        if name in self._saving:
            raise BankError("CONFLICT", f"The snapshot {name} is being saved.", "name")
        image = bank.documents.image().with_document(META, bank.clock.with_moment())
        self._saving.add(name)
        try:
            in_memory = yield from self._keep(name, image)
            if name not in self._saving:
                self._drop(name)
                raise BankError("CONFLICT", "The snapshots of the bank were deleted meanwhile.")
        finally:
            self._saving.discard(name)
        self._saved.pop(name, None)
        self._saved[name] = _Saved(real_now(), in_memory)

    def _keep(self, name: str, image: Image) -> Generator[object, None, Image | None]:
        """Store an image; returns it if it stays in memory."""
        directory = self._directory
        if directory is None:
            return image
        if image.size <= LARGE:
            _write(directory, self._file(name), snapshot_bytes(image.tables), power=self._power)
            return image
        yield from in_thread(
            lambda: _write(directory, self._file(name), snapshot_bytes(image.tables), power=self._power)
        )
        return None

    def restore(self, bank: Bank, name: str, content: Image | PreparedImage | None = None) -> None:
        """Restore the bank from a snapshot; RESOURCE_UNKNOWN, CONFLICT.

        `content`: the result of `prepare` for this name.
        """
        content = content or self._find(name).image or self._read(name)
        with bank.documents.transaction():
            bank.documents.restore(content)
            bank.clock.resume()

    def prepare(
        self, bank: Bank, name: str, report: Callable[[int, int], None]
    ) -> Generator[object, None, Image | PreparedImage]:
        """Prepare a snapshot for `restore`, in a thread if it is large. Raises as `restore` does.

        `report` is called for a large one after each part of the work.
        """
        image = self._find(name).image
        if image is None and self._size(name) <= LARGE:
            image = self._read(name)
        if image is not None and image.size <= LARGE:
            return image
        read = image or (yield from in_thread(lambda: self._read(name)))
        report(1, 2)
        content = yield from in_thread(lambda: bank.documents.prepare(read), discard=PreparedImage.discard)
        report(2, 2)
        if bank.documents.content() is None:
            content.discard()
            raise BankError("CONFLICT", "The bank was deleted in the meantime.")
        return content

    def delete(self, name: str) -> None:
        """Delete a snapshot; RESOURCE_UNKNOWN."""
        self._find(name)
        self._drop(name)
        del self._saved[name]

    def _drop(self, name: str) -> None:
        if self._directory is not None:
            self._file(name).unlink(missing_ok=True)
            if self._power:
                Disk().sync_directory(self._directory)

    def clear(self) -> None:
        """Delete all snapshots."""
        self._saving.clear()
        for name in list(self._saved):
            self.delete(name)

    def listing(self) -> list[dict[str, Any]]:
        """`{name, created}` of each, newest first; `created` is real time."""
        return [{"name": name, "created": date_time(saved.created)} for name, saved in reversed(self._saved.items())]

    def _find(self, name: str) -> _Saved:
        saved = self._saved.get(name)
        if saved is None:
            raise BankError("RESOURCE_UNKNOWN", f"There is no snapshot {name[:100]}.")
        return saved

    def _file(self, name: str) -> Path:
        return (self._directory or Path()) / f"{name}{_ENDING}"

    def _size(self, name: str) -> int:
        """The size of the snapshot's file in bytes; 0 if there is none."""
        file = self._file(name)
        return file.stat().st_size if self._directory is not None and file.is_file() else 0

    def _read(self, name: str) -> Image:
        file = self._file(name)
        try:
            content = file.read_bytes()
            image = image_from_bytes(content, KINDS, file=file)
            if len(content) <= LARGE:
                self._saved[name].image = image
            return image
        except FileNotFoundError:
            del self._saved[name]
            raise BankError("RESOURCE_UNKNOWN", f"The file of the snapshot {name} does not exist any more.") from None
        except (OSError, StoreError) as error:
            raise BankError("CONFLICT", f"The snapshot {name} cannot be read: {error}") from None


class SharedSnapshots(Snapshots):
    """The snapshots of a bank that several processes share; they are saved and deleted with the changes of a turn.

    `demand` is called before the list of snapshots is read (see NotFetched); an image is fetched when it is restored.
    `stage` stores a large content in advance, beside all turns; it returns the name that stands for it.
    """

    def __init__(self, bank: str, demand: Callable[[], None], stage: Callable[[str, bytes], str]) -> None:
        super().__init__(None)
        self._bank = bank
        self._demand = demand
        self._stage = stage
        self._before: dict[str, _Saved] | None = None
        self.pending: dict[str, bytes | str | None] = {}
        """The content of the snapshots that this turn has saved, or what stands for it; None: deleted."""

    def saving(self, bank: Bank, name: str) -> Iterator[object]:
        """As for other banks; the last step stores the snapshot with the changes of its turn."""
        self._demand()
        return super().saving(bank, name)

    def clear(self) -> None:
        """Delete all snapshots."""
        self._demand()
        super().clear()

    def listing(self) -> list[dict[str, Any]]:
        """`{name, created}` of each, newest first; `created` is real time."""
        self._demand()
        return super().listing()

    def _find(self, name: str) -> _Saved:
        self._demand()
        return super()._find(name)

    def stored(self, present: Iterable[tuple[str, datetime]]) -> None:
        """Set the list of stored snapshots, oldest first."""
        before = self._saved
        self._saved = {}
        for name, created in present:
            saved = before.get(name)
            same = saved is not None and saved.created == created
            self._saved[name] = saved if saved is not None and same else _Saved(created, None)

    def fetched(self, name: str, content: bytes) -> None:
        """Set the image of a stored snapshot."""
        if name in self._saved:
            self._saved[name].image = image_from_bytes(content, KINDS, file=Path(name))

    def changes(self) -> list[tuple[str, datetime, bytes | str | None]]:
        """The snapshots that this turn has saved or deleted (content None), to be stored."""
        return [
            (name, real_now() if content is None else self._saved[name].created, content)
            for name, content in self.pending.items()
        ]

    def confirm(self) -> None:
        """The changes of this turn are stored."""
        self._before = None
        self.pending = {}

    def undo(self) -> None:
        """Undo the changes of this turn."""
        if self._before is not None:
            self._saved = self._before
        self.confirm()

    def _keep(self, name: str, image: Image) -> Generator[object, None, Image | None]:
        if image.size <= LARGE:
            self._change(name, snapshot_bytes(image.tables))
            return image
        self._change(name, (yield from in_thread(lambda: self._stage(self._bank, snapshot_bytes(image.tables)))))
        return None

    def _drop(self, name: str) -> None:
        self._change(name, None)

    def _change(self, name: str, content: bytes | str | None) -> None:
        if self._before is None:
            self._before = dict(self._saved)
        self.pending[name] = content

    def _read(self, name: str) -> Image:
        raise NotFetched(bank=self._bank, snapshot=name)


def damaged(directory: Path) -> list[StoreDamaged]:
    """The damaged snapshot files in a directory, which may be missing; raises StoreTooNew."""
    errors = []
    for file in sorted(files(directory)):
        try:
            image_from_bytes(file.read_bytes(), KINDS, file=file)
        except StoreDamaged as error:
            errors.append(error)
    return errors


def files(directory: Path) -> Iterator[Path]:
    """The files of the snapshots in a directory, which may be missing."""
    for file in directory.glob(f"*{_ENDING}"):
        if NAME.fullmatch(file.name.removesuffix(_ENDING)) and file.is_file():
            yield file


def _write(directory: Path, file: Path, content: bytes, *, power: bool) -> None:
    """Write a file atomically, readable by its owner only; raises StoreUnwritable.

    OSError if a power cut could undo the write; a new file is then removed.
    """
    disk = Disk()
    is_new = not file.exists()
    temporary = file.with_name(f".{file.name}.new")
    try:
        disk.make_directory(directory, sync=power)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, file)
    except OSError as error:
        _drop(temporary)
        raise StoreUnwritable(f"{file}: {error}") from error
    if power:
        try:
            disk.sync_directory(directory)
        except OSError:
            if is_new:
                _drop(file)
            raise


def _drop(file: Path) -> None:
    """Remove an incomplete file; if that fails, the next start tries again."""
    with suppress(OSError):
        file.unlink(missing_ok=True)
