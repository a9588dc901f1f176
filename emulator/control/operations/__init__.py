"""The table of the control interface: the operations of every file of this folder. A duplicate is an error."""

from __future__ import annotations

from functools import cache

from emulator.control.operation import ControlOperation
from emulator.discovery import modules


@cache
def table() -> tuple[ControlOperation, ...]:
    """All operations, in the order of the file names."""
    rows = [
        row for module in modules(__path__, __name__) for row in vars(module).values() if type(row) is ControlOperation
    ]
    seen: set[str] = set()
    for row in rows:
        for name in (row.id, f"{row.method} {row.path}"):
            if name in seen:
                raise ValueError(f"two control operations are called {name}")
            seen.add(name)
    return tuple(rows)
