"""The operation table: each module of this package adds its rows (`OPERATIONS`); a duplicate stops the start."""

from __future__ import annotations

from functools import cache

from emulator.api.operation import Operation
from emulator.bank.errors import BankError
from emulator.bank.problems import unknown
from emulator.discovery import constants


@cache
def table() -> tuple[Operation, ...]:
    """All rows, in the order of the modules' names."""
    rows: list[Operation] = [row for _, rows in constants(__path__, __name__, "OPERATIONS") for row in rows]
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
