"""The table of the control interface: every file of this folder adds its rows; a duplicate stops the start."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from emulator.control.operation import ControlOperation


@cache
def table() -> tuple[ControlOperation, ...]:
    """All rows, in the order of the files' names."""
    rows: list[ControlOperation] = []
    for module in pkgutil.iter_modules(__path__):
        rows.extend(importlib.import_module(f"{__name__}.{module.name}").OPERATIONS)
    seen: set[str] = set()
    for row in rows:
        for name in (row.id, f"{row.method} {row.path}"):
            if name in seen:
                raise ValueError(f"two control operations are {name}")
            seen.add(name)
    return tuple(rows)
