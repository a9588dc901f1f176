"""The table of the control interface: the operations of every file of this folder. A duplicate is an error.

One that changes something is in `CHANGES` or `ELSEWHERE` of `tests/api/test_full_disk.py`; its command is a row of
`NOUNS` (`cli/control.py`), but for those of `sca`, `scenario` and `requests`, which have modules of their own in `cli`.
"""

from __future__ import annotations

from functools import cache

from emulator.control.operation import ControlOperation
from emulator.discovery import discover


@cache
def table() -> tuple[ControlOperation, ...]:
    """All operations, in the order of the file names."""
    return discover(__path__, __name__, ControlOperation, names=lambda row: (row.id, f"{row.method} {row.path}"))
