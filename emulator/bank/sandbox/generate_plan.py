"""How much is generated: the plan that a request asks for, and its bounds (CONTRACT 9.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from emulator.bank.errors import BankError, Message

MOST_TRANSACTIONS = 1_000_000
MOST_ACCOUNTS = 200_000


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is made; `seed` None: different every time (unless the bank has a seed)."""

    customers: int = 10
    accounts_per_customer: int = 2
    transactions_per_account: int = 100
    days: int = 90
    seed: int | None = None

    @property
    def accounts(self) -> int:
        return self.customers * self.accounts_per_customer

    @property
    def transactions(self) -> int:
        return self.accounts * self.transactions_per_account


# Of each member the least and the most.
_BOUNDS: Mapping[str, tuple[int, int]] = {
    "customers": (1, 100_000),
    "accountsPerCustomer": (1, 100),
    "transactionsPerAccount": (0, MOST_TRANSACTIONS),
    "days": (1, 3650),
    "seed": (0, 2**63 - 1),
}
# What a plan takes, as JSON Schema by member.
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    name: {"type": ["integer", "null"] if name == "seed" else "integer", "minimum": low, "maximum": high}
    for name, (low, high) in _BOUNDS.items()
}


def plan_from(body: Mapping[str, Any]) -> Plan:
    """The plan in `{customers, accountsPerCustomer, transactionsPerAccount, days, seed}`, all of them optional.

    BankError FORMAT_ERROR names every mistake.
    """
    wrong = []
    for name, value in body.items():
        if name not in _BOUNDS:
            wrong.append(Message("FORMAT_ERROR", f"There is no member {name}; there are {', '.join(_BOUNDS)}.", name))
            continue
        low, high = _BOUNDS[name]
        good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        if not good and not (name == "seed" and value is None):
            wrong.append(Message("FORMAT_ERROR", f"{name} is a whole number from {low} to {high}.", name))
    if wrong:
        raise BankError.several(wrong)
    plan = Plan(**{field.name: body[name] for field, name in zip(fields(Plan), _BOUNDS, strict=True) if name in body})
    if plan.accounts > MOST_ACCOUNTS:
        text = f"{plan.accounts} accounts are too many; {MOST_ACCOUNTS} can be made at once."
        raise BankError("FORMAT_ERROR", text, "accountsPerCustomer")
    if plan.transactions > MOST_TRANSACTIONS:
        text = f"{plan.transactions} transactions are too many; {MOST_TRANSACTIONS} can be made at once."
        raise BankError("FORMAT_ERROR", text, "transactionsPerAccount")
    return plan
