"""The header x-accept-fix: changes that a client may request before they become the default (accept-fix.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Any, TypeVar

from emulator.api.operation import Call

AMOUNT_AS_STRING = "amount-as-string"
SWITCHED_AMOUNTS = "cardaccount-switch-originalamount-and-transactionamount"
LONGER_NAMES = "longer-names"
GROUPED_BATCHES = "groupBatchTransactions"
ISO_ACCOUNT_TYPE = "cash-account-type-iso"

# From this Oslo date of bank time on, a fix applies whether it is requested or not.
DEFAULT_FROM: Mapping[str, date] = {
    AMOUNT_AS_STRING: date(2020, 8, 1),
    SWITCHED_AMOUNTS: date(2024, 9, 5),
    LONGER_NAMES: date(2024, 9, 5),
    GROUPED_BATCHES: date(2024, 9, 5),
    ISO_ACCOUNT_TYPE: date(2024, 9, 5),
}


Answer = TypeVar("Answer")
Fixes = frozenset[str]
"""The names of the fixes that apply to the answer to one request."""

_ALL_NAMES = frozenset(DEFAULT_FROM)
# Bank time is in UTC: when this day begins in UTC, it has begun in Oslo.
_ALL_FROM = max(DEFAULT_FROM.values()).isoformat()


def fixes(call: Call) -> Fixes:
    """The fixes that apply because of x-accept-fix or the date; unknown names are ignored."""
    clock = call.bank.clock
    if clock.stamp() >= _ALL_FROM:
        return _ALL_NAMES
    return _applied(call.headers.get("x-accept-fix") or "", clock.today())


@lru_cache(maxsize=64)
def _applied(header: str, today: date) -> Fixes:
    requested = {name.strip() for name in header.split(",")}
    return frozenset(name for name, since in DEFAULT_FROM.items() if name in requested or today >= since)


def amounts(body: Answer, fix: Fixes) -> Answer:
    """The answer with its amounts in the requested form: text, or numbers without amount-as-string."""
    if AMOUNT_AS_STRING in fix:
        return body
    as_numbers: Answer = _with_numbers(body)
    return as_numbers


def _with_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _number(part) if name == "amount" else _with_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_numbers(part) for part in value]
    return value


def _number(amount: Any) -> Any:
    return float(amount) if isinstance(amount, str) else _with_numbers(amount)
