"""The table of the TPP interface: the operations of every file of this folder. A duplicate stops the start."""

from __future__ import annotations

from functools import cache

from emulator.api.operation import Operation
from emulator.bank.errors import BankError
from emulator.bank.problems import unknown
from emulator.discovery import instances


@cache
def table() -> tuple[Operation, ...]:
    """All operations, in the order of the file names."""
    return instances(__path__, __name__, Operation, names=lambda row: (row.id,))


def check_operation(name: str | None) -> None:
    """Raise FORMAT_ERROR for an operationId that does not exist, with a guess."""
    known = [row.id for row in table()]
    if name is not None and name not in known:
        raise BankError("FORMAT_ERROR", unknown(name, known, "There is no operation"), "operation")
