"""Private files (directories 0700, files 0600), written to a temporary name and then renamed into place.

With `power` the result survives a power cut. A failure raises OSError and leaves everything as it was.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

logger = logging.getLogger(__name__)

_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{12}(\.old)?")


OWN = ("private", "tpps", "bank", "banks")
"""The folders of a state directory that only its user may enter: they hold keys and data."""


def make_private(directory: Path, *, power: bool = False) -> None:
    """Create `directory` for this user alone; an existing one keeps its mode (see `check_private`)."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if power:
        for path in missing:
            _sync(path.parent)


def ca_file(state: Path, name: str) -> Path:
    """The place of `ca.pem` or `ca-key.pem` in a state directory."""
    return state / "private" / name if name == "ca-key.pem" else state / name


def check_private(state: Path) -> None:
    """Keep other users out of the bank's own folders in a state directory, and refuse what is more than plain files.

    The directory itself may belong to somebody else and may be open, as a mounted volume of a container is: then no
    `chmod` of this user helps. Where modes cannot be set at all, one warning says so. A symbolic link could make the
    bank write, as this user, to a place that somebody else chose; reading a named pipe would wait forever: both raise
    PermissionError, whose text says what to do.
    """
    open_folders = [name for name in OWN if (state / name).is_dir() and not _closed(state / name)]
    mode = stat.S_IMODE(state.stat().st_mode)
    if open_folders:
        _warn(
            f"{state}: no modes can be set here, so other users of this machine may read the keys, which are for tests"
        )
    elif mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        _warn(f"{state}: any user of this machine may replace what is in it (mode {mode:o}); `chmod 700` prevents that")
    check_plain(state)


@cache  # once for each directory
def _warn(text: str) -> None:
    logger.warning(text)


def _closed(folder: Path) -> bool:
    """Whether only this user may enter `folder`, after an attempt to close it: a cluster opens what it mounts again."""
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        with suppress(OSError):
            folder.chmod(0o700)
    return not stat.S_IMODE(folder.stat().st_mode) & 0o077


def check_plain(directory: Path, *, depth: int = 4) -> None:
    """Refuse what is neither a file nor a directory, down to banks/NAME/damaged-N/FILE; raises PermissionError.

    Sockets may stay: a server of PostgreSQL has one, and none is read. What this user cannot read, as `lost+found` of a
    volume, it does not use either.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth > 1 and (entry.name in OWN or os.access(entry.path, os.R_OK | os.X_OK)):
                    check_plain(Path(entry.path), depth=depth - 1)
            elif entry.is_symlink():
                reason = "it is a symbolic link; a state directory must not contain one"
                raise PermissionError(errno.EPERM, reason, entry.path)
            elif not stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                reason = "it is not a regular file; a state directory must not contain named pipes and devices"
                raise PermissionError(errno.EPERM, reason, entry.path)


def write_private(path: Path, content: bytes) -> None:
    """Replace the content of `path` atomically; an OSError names it."""
    try:
        with _temporary(path) as temporary:
            _write_new(temporary, content)
            os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def claim_private(path: Path, content: bytes, *, power: bool = False) -> bytes:
    """Create `path` with `content` unless it exists, and return its content: two processes get the same bytes."""
    with _temporary(path) as temporary:
        _write_new(temporary, content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not path.exists():
                os.replace(temporary, path)
        if power:
            _sync(path.parent)
    return path.read_bytes()


@contextmanager
def folder_written(
    folder: Path, files: Mapping[str, bytes], *, replace: bool = False, power: bool = False
) -> Iterator[bool]:
    """A `with` block before which `folder` is created with `files`, atomically; if the block raises, it was not.

    False if it exists and `replace` is not set.
    """
    make_private(folder.parent, power=power)
    with _temporary(folder) as temporary, _temporary(folder, ".old") as previous, ExitStack() as undo:
        temporary.mkdir(mode=0o700)
        for name, content in files.items():
            _write_new(temporary / name, content)
        if power:
            _sync(temporary)
        if replace and folder.exists():
            folder.rename(previous)
            undo.callback(previous.rename, folder)
        try:
            temporary.rename(folder)
        except OSError:
            if not folder.exists():
                raise
            yield False
            return
        undo.callback(folder.rename, temporary)
        if power:
            _sync(folder.parent)
        yield True
        undo.pop_all()


def write_folder(folder: Path, files: Mapping[str, bytes], *, replace: bool = False, power: bool = False) -> bool:
    """Create `folder` with `files` atomically; False if it exists and `replace` is not set."""
    with folder_written(folder, files, replace=replace, power=power) as is_written:
        return is_written


def sweep(directory: Path) -> None:
    """Remove temporary files of killed processes from `directory`, unless another process is writing there now.

    A folder that was being replaced when its process was killed is restored.
    """
    with suppress(OSError), _opened(directory) as folder:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for path in directory.iterdir():
            match = _TEMPORARY.fullmatch(path.name)
            if match is not None and match[2] and not (directory / match[1]).exists():
                path.rename(directory / match[1])
            elif match is not None:
                _remove(path)


@contextmanager
def _temporary(path: Path, ending: str = "") -> Iterator[Path]:
    """A temporary name in the folder of `path`, removed at the end; `sweep` cannot run at the same time."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{ending}")
    with _opened(path.parent) as folder:
        with suppress(OSError):  # on file systems without locks for directories, nothing is swept
            fcntl.flock(folder, fcntl.LOCK_SH)
        try:
            yield temporary
        finally:
            _remove(temporary)


def _remove(path: Path) -> None:
    """Remove a file or a folder; one that cannot be removed now is removed by the `sweep` of a later start."""
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
    """Flush the names in the directory to the disk."""
    with _opened(directory) as folder:
        os.fsync(folder)


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
