"""Private files, whole or not at all: written beside and then put in place (directories 0700, files 0600).

With `power` what is put in place outlives a power cut. Raises OSError, and then everything is as it was.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_BESIDE = re.compile(r"\.(.+)\.[0-9a-f]{12}(\.old)?")


def make_private(directory: Path, *, power: bool = False) -> None:
    """Create `directory` for this user alone; one that exists keeps its mode."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if power:
        for path in missing:
            _sync(path.parent)


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step."""
    with _beside(path) as beside:
        _write_new(beside, content)
        os.replace(beside, path)


def claim_private(path: Path, content: bytes, *, power: bool = False) -> bytes:
    """Create `path` with `content` unless it exists; what it holds now. Two processes get the same answer."""
    with _beside(path) as beside:
        _write_new(beside, content)
        with suppress(FileExistsError):
            os.link(beside, path)
        if power:
            _sync(path.parent)
    return path.read_bytes()


def write_folder(folder: Path, files: Mapping[str, bytes], *, replace: bool = False, power: bool = False) -> bool:
    """Create `folder` with `files` in one step; False when it exists and is not to be replaced."""
    make_private(folder.parent, power=power)
    with _beside(folder) as beside, _beside(folder, ".old") as retired:
        beside.mkdir(mode=0o700)
        for name, content in files.items():
            _write_new(beside / name, content)
        if power:
            _sync(beside)
        if replace and folder.exists():
            folder.rename(retired)
        try:
            beside.rename(folder)
            if power:
                _sync(folder.parent)
        except OSError:
            if not beside.exists():
                folder.rename(beside)
            elif not retired.exists() and folder.exists():
                return False
            if retired.exists():
                retired.rename(folder)
            raise
    return True


def sweep(directory: Path) -> None:
    """Remove what killed processes have left half-written in `directory`, unless somebody is writing there now.

    A folder that was about to be replaced takes its place again.
    """
    with suppress(OSError), _opened(directory) as folder:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for path in directory.iterdir():
            found = _BESIDE.fullmatch(path.name)
            if found is not None and found[2] and not (directory / found[1]).exists():
                path.rename(directory / found[1])
            elif found is not None:
                _drop(path)


@contextmanager
def _beside(path: Path, ending: str = "") -> Iterator[Path]:
    """A name beside `path` for what has no place; nothing of that name stays, and no `sweep` comes in between."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}{ending}")
    with _opened(path.parent) as folder:
        with suppress(OSError):  # where the system locks no directories, nothing is swept
            fcntl.flock(folder, fcntl.LOCK_SH)
        try:
            yield beside
        finally:
            _drop(beside)


def _drop(path: Path) -> None:
    """Remove a file or a folder; what cannot be removed goes at a later start."""
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


def _sync(directory: Path) -> None:
    """Return once the directory's names are on the medium."""
    with _opened(directory) as folder:
        os.fsync(folder)


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
