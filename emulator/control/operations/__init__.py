"""The table of the control interface: every file of this folder adds its rows. A duplicate is an error."""

from __future__ import annotations

from functools import cache

from emulator.control.operation import ControlOperation
from emulator.discovery import constants


@cache
def table() -> tuple[ControlOperation, ...]:
    """All rows, in the order of the file names."""
    rows: list[ControlOperation] = [row for _, rows in constants(__path__, __name__, "OPERATIONS") for row in rows]
    seen: set[str] = set()
    for row in rows:
        for name in (row.id, f"{row.method} {row.path}"):
            if name in seen:
                raise ValueError(f"two control operations are called {name}")
            seen.add(name)
    return tuple(rows)
