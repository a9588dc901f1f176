"""Private files, whole or not at all: written beside and then put in place (directories 0700, files 0600)."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path


def make_private(directory: Path) -> None:
    """Create `directory` for this user alone; one that exists keeps its mode."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    _write_new(beside, content)
    os.replace(beside, path)


def claim_private(path: Path, content: bytes) -> bytes:
    """Create `path` with `content` unless it exists; what it holds now. Two processes get the same answer."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    _write_new(beside, content)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(beside, path)
    finally:
        beside.unlink()
    return path.read_bytes()


def write_folder(folder: Path, files: Mapping[str, bytes], *, replace: bool = False) -> bool:
    """Create `folder` with `files` in one step; False when it exists and is not to be replaced."""
    make_private(folder.parent)
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}")
    beside.mkdir(mode=0o700)
    try:
        for name, content in files.items():
            _write_new(beside / name, content)
        if replace and folder.exists():
            retired = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}")
            folder.rename(retired)
            shutil.rmtree(retired)
        try:
            beside.rename(folder)
        except OSError:
            if folder.exists():
                return False
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return True


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
