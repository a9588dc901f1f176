"""The operation table: every file of this folder adds its rows (`OPERATIONS`); a duplicate stops the start."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from emulator.api.operation import Operation


@cache
def table() -> tuple[Operation, ...]:
    """All rows, in the order of the files' names."""
    rows: list[Operation] = []
    for module in pkgutil.iter_modules(__path__):
        rows.extend(importlib.import_module(f"{__name__}.{module.name}").OPERATIONS)
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise ValueError(f"two operations are called {row.id}")
        seen.add(row.id)
    return tuple(rows)
