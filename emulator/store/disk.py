"""All calls of the store that change something on the disk, so that tests can make each of them fail, and the lock.

The lock admits one writer for each directory. It is advisory, ends with its process, and its file names the holder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import orjson

from emulator.store.errors import StoreLocked

PIECE = 1 << 20  # bytes that are read at a time; splitting more into lines would hold all other threads
LOCK = "lock"


class Disk:
    """Files (created with mode 0600) and directories (0700) of the store. Raises OSError."""

    def make_directory(self, path: Path, *, sync: bool = False) -> None:
        """Create the directory and its parents if missing; `sync` makes the new names durable."""
        if not path.is_dir():
            self.make_directory(path.parent, sync=sync)
            path.mkdir(mode=0o700, exist_ok=True)
            if sync:
                self.sync_directory(path.parent)

    def open_to_append(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def create(self, path: Path) -> int:
        """Open an empty file for writing; an existing one is truncated."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    write = staticmethod(os.write)  # some or all of the data; returns the number of bytes written
    write_at = staticmethod(os.pwrite)
    cut = staticmethod(os.ftruncate)
    sync = staticmethod(os.fsync)  # returns once the file's content is on the medium
    close = staticmethod(os.close)

    def sync_directory(self, path: Path) -> None:
        """Return once the directory's names are on the medium."""
        with closing(self, os.open(path, os.O_RDONLY | os.O_DIRECTORY)) as file:
            os.fsync(file)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        """Remove the file if it exists."""
        path.unlink(missing_ok=True)


def pieces(path: Path) -> Iterator[bytes]:
    """The content of a file of any size."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


@contextmanager
def closing(disk: Disk, file: int) -> Iterator[int]:
    """A `with` block that closes the file at its end."""
    try:
        yield file
    finally:
        disk.close(file)


def write_whole(disk: Disk, file: int, data: bytes | memoryview) -> None:
    """Write all of `data`, in several calls if needed; raises OSError."""
    written, rest = disk.write(file, data), data
    while written < len(rest):
        if written <= 0:
            raise OSError("the system wrote nothing")
        rest = memoryview(rest)[written:]
        written = disk.write(file, rest)


class Lock:
    """The lock on a directory, held from construction to `release`; raises StoreLocked naming the holder."""

    def __init__(self, directory: Path) -> None:
        self._file = _acquired(directory, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
        # a full disk must not prevent reading
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, orjson.dumps({"pid": os.getpid(), "host": socket.gethostname()}), 0)

    def release(self) -> None:
        """Release the lock; the file stays, so that no process can hold a lock on a deleted file."""
        with suppress(OSError):
            os.ftruncate(self._file, 0)
        fcntl.flock(self._file, fcntl.LOCK_UN)  # a process that was forked from this one has the file open, too
        os.close(self._file)


@contextmanager
def shared_lock(directory: Path, *, alone: bool = False) -> Iterator[None]:
    """Keep writers out, and with `alone` everybody, without writing to the directory; raises StoreLocked.

    A directory without a lock file is not in use. Raises OSError.
    """
    if not (directory / LOCK).exists():
        yield
        return
    if (directory / LOCK).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(directory / LOCK))
    file = _acquired(directory, os.O_RDONLY, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    try:
        yield
    finally:
        os.close(file)


def _acquired(directory: Path, flags: int, mode: int) -> int:
    """The lock file, opened and locked. The holder that it names has it since it was last modified."""
    file = os.open(directory / LOCK, flags, 0o600)
    try:
        fcntl.flock(file, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = "another process"
        with suppress(ValueError, KeyError, TypeError):
            named = orjson.loads(os.pread(file, 4096, 0))
            since = datetime.fromtimestamp(os.fstat(file).st_mtime, UTC)
            holder = f"process {named['pid']} on {named['host']} since {since:%Y-%m-%d %H:%M:%S} UTC"
        os.close(file)
        raise StoreLocked(directory, holder) from None
    return file
