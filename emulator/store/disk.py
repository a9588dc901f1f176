"""Every call that the store makes to the operating system, in one place, so that a test can let each of them fail.

And the lock: one writer for each directory, an advisory lock that ends with its process, the holder's name in it.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import orjson

from emulator.store.errors import StoreLocked


class Disk:
    """Files and directories of the store: files are made 0600, directories 0700. Raises OSError as the system does."""

    def make_directory(self, path: Path, *, sync: bool = False) -> None:
        """The directory with its parents; those that are missing are made 0700, with `sync` on the medium at once."""
        if not path.is_dir():
            self.make_directory(path.parent, sync=sync)
            path.mkdir(mode=0o700, exist_ok=True)
            if sync:
                self.sync_directory(path.parent)

    def names(self, directory: Path) -> list[str]:
        """The names in the directory, sorted."""
        return sorted(os.listdir(directory))

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    @contextmanager
    def reading(self, path: Path) -> Iterator[tuple[Callable[[int, int], bytes], int]]:
        """A function that reads `(offset, size)` of a file, and how large the file is."""
        file = os.open(path, os.O_RDONLY)
        try:
            yield lambda offset, size: _read_at(file, size, offset), os.fstat(file).st_size
        finally:
            os.close(file)

    def size(self, path: Path) -> int:
        """The size of the file in bytes."""
        return path.stat().st_size

    def written(self, path: Path) -> float:
        """When the file was last written, in seconds since 1970."""
        return path.stat().st_mtime

    def open_to_append(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def open_anew(self, path: Path) -> int:
        """An empty file to write, whatever stood there."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    def write(self, file: int, data: bytes | memoryview) -> int:
        """Write some or all of `data`; the number of bytes written."""
        return os.write(file, data)

    def write_at(self, file: int, data: bytes, offset: int) -> int:
        return os.pwrite(file, data, offset)

    def cut(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        """Return once the file's content is on the medium."""
        os.fsync(file)

    def sync_directory(self, path: Path) -> None:
        """Return once the directory's names are on the medium."""
        file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def duplicate(self, file: int) -> int:
        return os.dup(file)

    def close(self, file: int) -> None:
        os.close(file)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        """Remove the file; fine when there is none."""
        path.unlink(missing_ok=True)


def _read_at(file: int, size: int, offset: int) -> bytes:
    piece = os.pread(file, size, offset)
    while piece and len(piece) < size:
        more = os.pread(file, size - len(piece), offset + len(piece))
        if not more:
            break
        piece += more
    return piece


def write_whole(disk: Disk, file: int, data: bytes) -> None:
    """Write all of `data`, however little the system takes at a time; raises OSError."""
    write_rest(disk, file, data, disk.write(file, data))


def write_rest(disk: Disk, file: int, data: bytes, written: int) -> None:
    """Write what is left of `data` after its first write wrote `written` bytes; raises OSError."""
    rest = memoryview(data)
    while written < len(rest):
        if written <= 0:
            raise OSError("the system wrote nothing")
        rest = rest[written:]
        written = disk.write(file, rest)


LOCK = "lock"


class Lock:
    """The lock on a directory, held from construction to `release`; raises StoreLocked naming the holder."""

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(self._file, fcntl.LOCK_EX, directory)
        except BaseException:
            os.close(self._file)
            raise
        # a full disk keeps nobody from reading
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, orjson.dumps({"pid": os.getpid(), "host": socket.gethostname()}), 0)

    def release(self) -> None:
        """Let others in; the file stays, so that nobody can hold a lock on a file that is gone."""
        with suppress(OSError):
            os.ftruncate(self._file, 0)
        self.abandon()

    def abandon(self) -> None:
        """Close this process's copy: what a forked child does, the parent keeps its lock."""
        os.close(self._file)


@contextmanager
def unwritten(directory: Path) -> Iterator[None]:
    """Keep writers out meanwhile, where a lock was ever used, and write nothing; raises StoreLocked."""
    try:
        file = os.open(directory / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        yield
        return
    try:
        _take(file, fcntl.LOCK_SH, directory)
        yield
    finally:
        os.close(file)


def _take(file: int, how: int, directory: Path) -> None:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreLocked(directory, _holder(file)) from None


def _holder(file: int) -> str:
    """The holder as the lock file tells it; its time stamp is when the lock was taken."""
    try:
        holder = orjson.loads(os.pread(file, 4096, 0))
        since = datetime.fromtimestamp(os.fstat(file).st_mtime, UTC)
        return f"process {holder['pid']} on {holder['host']} since {since:%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, KeyError, TypeError):
        return "another process"
