"""The folders of the banks in a state directory: each appears whole and goes whole, whenever the process is killed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from secrets import token_hex

from emulator.store.disk import Disk

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_BESIDE = re.compile(r"\.(?:new|deleted|replaced-(?P<name>.+))-[0-9a-f]{12}")


class Folders:
    """The folders under `directory`; with `power` a rename is on the medium before it counts. Raises OSError."""

    def __init__(self, directory: Path, *, power: bool) -> None:
        self._directory = directory
        self._power = power
        self._disk = Disk()

    def names(self) -> set[str]:
        """The banks that have a folder."""
        if not self._directory.is_dir():
            return set()
        return {path.name for path in self._directory.iterdir() if self.has(path.name)}

    def of(self, name: str) -> Path:
        return self._directory / name

    def has(self, name: str) -> bool:
        return NAME.fullmatch(name) is not None and self.of(name).is_dir()

    def beside(self) -> Path:
        """Where a bank can be made that `place` makes one of the banks."""
        return self._beside("new")

    def place(self, folder: Path, name: str) -> None:
        """Make `folder` the folder of the bank `name`; if that fails it stays where it is."""
        self._rename(folder, self.of(name))

    def put_aside(self, name: str, *, replaced: bool = False) -> Path:
        """The bank has no folder any more; what was in it stands where the answer says, to be dropped or placed.

        What is to be `replaced` takes its place again at a start that finds nothing there.
        """
        aside = self._beside(f"replaced-{name}" if replaced else "deleted")
        self._rename(self.of(name), aside)
        return aside

    def drop(self, aside: Path) -> None:
        """Remove a folder that is none of the banks; what cannot be removed goes at a later start."""
        shutil.rmtree(aside, ignore_errors=True)

    def sweep(self) -> None:
        """Drop what a killed process has left of folders that were not whole yet, were deleted or were replaced."""
        for path in list(self._directory.iterdir()):
            match = _BESIDE.fullmatch(path.name)
            if match is not None:
                if match["name"] is not None and not self.has(match["name"]):
                    self.place(path, match["name"])
                else:
                    self.drop(path)

    def sync(self) -> None:
        """With `power`, return once the names of the banks and of their common folder are on the medium."""
        if self._power:
            self._disk.sync_directory(self._directory)
            self._disk.sync_directory(self._directory.parent)

    def _beside(self, word: str) -> Path:
        return self._directory / f".{word}-{token_hex(6)}"

    def _rename(self, old: Path, new: Path) -> None:
        self._disk.rename(old, new)
        if self._power:
            try:
                self._disk.sync_directory(self._directory)
            except OSError:
                self._disk.rename(new, old)
                raise
