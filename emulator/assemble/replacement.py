"""A state directory whose content is replaced as a whole: killed at any moment, all of it is the old or the new one.

The new content is written beside the old. One rename makes it the directory's content; what is left to do after that,
deleting the old and moving the new to its place, is repeated by whoever opens the directory next.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from emulator.ca.files import check_private, make_private

CONTENT = ("banks", "tpps", "bank", "ca-key.pem", "ca.pem")
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
