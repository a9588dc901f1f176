"""One writer for each directory: an advisory lock that ends with its process, and the holder's name beside it."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import orjson

from emulator.store.errors import StoreLocked

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
        told = orjson.loads(os.pread(file, 4096, 0))
        since = datetime.fromtimestamp(os.fstat(file).st_mtime, UTC)
        return f"process {told['pid']} on {told['host']} since {since:%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, KeyError, TypeError):
        return "another process"
