"""The table of the TPP interface: the operations of every file of this folder. A duplicate stops the start."""

from __future__ import annotations

from functools import cache

from emulator.api.operation import Operation
from emulator.bank.errors import BankError
from emulator.bank.problems import unknown
from emulator.discovery import modules


@cache
def table() -> tuple[Operation, ...]:
    """All operations, in the order of the file names."""
    rows = [row for module in modules(__path__, __name__) for row in vars(module).values() if type(row) is Operation]
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise ValueError(f"two operations have the id {row.id}")
        seen.add(row.id)
    return tuple(rows)


def check_operation(name: str | None) -> None:
    """Raise FORMAT_ERROR for an operationId that does not exist, with a guess."""
    known = [row.id for row in table()]
    if name is not None and name not in known:
        raise BankError("FORMAT_ERROR", unknown(name, known, "There is no operation"), "operation")
