"""The names that exist in this bank; a rule with any other name could never match, so it is refused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from emulator.bank import products
from emulator.bank.errors import BankError
from emulator.bank.problems import unknown

METHODS = ("GET", "POST", "PUT", "DELETE")
CONTEXTS = ("PRIVATE", "CORPORATE")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """operationIds, payment services and products."""

    operations: tuple[str, ...]
    products: tuple[str, ...]

    def check_operation(self, name: str | None) -> None:
        """Raise FORMAT_ERROR for an operationId that does not exist, with a guess."""
        if name is not None and name not in self.operations:
            raise BankError("FORMAT_ERROR", unknown(name, self.operations, "There is no operation"), "operation")

    def of(self, fact: str) -> Collection[str] | None:
        """The possible values of a fact; None if it may have any value."""
        known = {
            "operation": self.operations,
            "product": self.products,
            "service": products.SERVICES,
            "method": METHODS,
            "context": CONTEXTS,
        }
        return known.get(fact)


@cache
def vocabulary() -> Vocabulary:
    """The names, read once from the operation table and the payment products."""
    from emulator.api.operations import table  # only on use: commands that read no scenario do not need it

    return Vocabulary(tuple(row.id for row in table()), tuple(dict.fromkeys(name for _, name in products.table())))
