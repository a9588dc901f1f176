"""The snapshots of a bank in files, one each: what `Snapshots` holds in memory and this process reads and writes."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from emulator.bank.errors import BankError
from emulator.bank.kinds import KINDS
from emulator.bank.snapshots import NAME, SavedSnapshot, Snapshots, is_small
from emulator.bank.threads import in_thread
from emulator.ca.files import sweep, write_private
from emulator.store import Image, StoreDamaged, StoreError, StoreUnwritable
from emulator.store.disk import Disk
from emulator.store.snapshot import image_from_bytes, snapshot_bytes

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
        for file in sorted(files(directory), key=lambda file: file.stat().st_mtime):
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
