"""A state directory and the folders of its banks: created, replaced and deleted atomically, also when killed.

The folder of a bank is prepared and deleted under a temporary name; a rename puts it in its place or takes it away. The
whole content of a state directory is replaced in the same way: one rename makes the new content its own, and what is
left to do after that (deleting the old, moving the new to its place) is repeated by whoever opens it next.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from emulator.bank.formats import FILE_NAME
from emulator.ca.files import check_private, make_private
from emulator.store.disk import Disk

_TEMPORARY = re.compile(r"\.(?:new|deleted|replaced-(?P<name>.+))-[0-9a-f]{12}")


class Folders:
    """The folders under `directory`; with `power` a rename survives a power failure. Methods raise OSError."""

    def __init__(self, directory: Path, *, power: bool) -> None:
        self._directory = directory
        self._power = power
        self._disk = Disk()

    def names(self) -> set[str]:
        """The names of banks with a folder."""
        if not self._directory.is_dir():
            return set()
        return {path.name for path in self._directory.iterdir() if self.has(path.name)}

    def of(self, name: str) -> Path:
        """The folder of a bank, which need not exist."""
        return self._directory / name

    def has(self, name: str) -> bool:
        """Whether the bank has a folder."""
        return FILE_NAME.fullmatch(name) is not None and self.of(name).is_dir()

    def temporary(self, word: str = "new") -> Path:
        """A new path for the folder of a bank, which `place` then puts in its place."""
        return self._directory / f".{word}-{token_hex(6)}"

    def place(self, folder: Path, name: str) -> None:
        """Rename `folder` to the folder of the bank `name`; if this fails, it is not moved."""
        self._rename(folder, self.of(name))

    def put_aside(self, name: str, *, replaced: bool = False) -> Path:
        """Move the folder of a bank away and return its new path, for `drop` or `place`.

        With `replaced`, a start after a kill puts it back unless the bank has a new folder.
        """
        aside = self.temporary(f"replaced-{name}" if replaced else "deleted")
        self._rename(self.of(name), aside)
        return aside

    def drop(self, aside: Path) -> None:
        """Delete a folder that was moved away; `sweep` retries what cannot be deleted."""
        shutil.rmtree(aside, ignore_errors=True)

    def sweep(self) -> None:
        """Clean up after a killed process: restore a folder that was to be replaced, delete other temporary ones."""
        for path in list(self._directory.iterdir()):
            match = _TEMPORARY.fullmatch(path.name)
            if match is not None:
                if match["name"] is not None and not self.has(match["name"]):
                    self.place(path, match["name"])
                else:
                    self.drop(path)

    def sync(self) -> None:
        """With `power`, sync the directory of the banks and its parent."""
        if self._power:
            self._disk.sync_directory(self._directory)
            self._disk.sync_directory(self._directory.parent)

    def _rename(self, old: Path, new: Path) -> None:
        self._disk.rename(old, new)
        if self._power:
            try:
                self._disk.sync_directory(self._directory)
            except OSError:
                self._disk.rename(new, old)
                raise


CONTENT = ("banks", "tpps", "bank", "private", "ca.pem")
"""The folders and files of a state directory that hold a service; all of them are in a new content."""

_COMPLETE = ".replacement"
_INCOMPLETE = ".replacement-"


@contextmanager
def replacement(state: Path) -> Iterator[Path]:
    """A folder for the new content of `state`, which it becomes at the end of the block; an exception drops it."""
    make_private(state)
    for left in state.glob(f"{_INCOMPLETE}*"):
        shutil.rmtree(left)
    folder = state / f"{_INCOMPLETE}{token_hex(6)}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    folder.rename(state / _COMPLETE)
    complete(state)


def complete(state: Path) -> None:
    """Finish a replacement that was interrupted after its content was complete; OSError."""
    folder = state / _COMPLETE
    if not folder.is_dir():
        return
    check_private(state)
    for name in CONTENT:
        new, old = folder / name, state / name
        if not new.exists():  # it has been moved
            continue
        if old.is_dir():
            shutil.rmtree(old)
        new.replace(old)
    folder.rmdir()
