"""Faults of accounts: their money, what is booked while they are read, and the feed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from emulator.bank.feed import EFFECTS
from emulator.bank.validation import one_of
from emulator.conformance.explore.faults import ChangeFault, PlannedFault


class Booked(ChangeFault):
    """`entries`: how many are booked, today, to the account that the TPP pays from."""

    name = "booked"
    summary = "Something is booked between two requests, so that the borders of pages move."
    effects = ()
    draws: ClassVar = {"entries": (1, 3)}
    example: ClassVar = {"of": "getTransactions", "at": 1, "entries": 1}
    operations = ("getTransactions",)
    weight = 2

    entries: Annotated[int, Field(ge=1, le=50)] = 1

    def start(self, debtor: str, number: str) -> dict[str, Any]:
        booked = {"account": debtor, "date": "0d", "name": "Kiosken", "text": number}
        amounts = [f"-{17 + entry}.{self.at:02}" for entry in range(self.entries)]
        return {"add": {"transactions": [{**booked, "amount": amount} for amount in amounts]}}

    def described(self) -> str:
        return f"after {self.of} {self.at}: {self.entries} more booked"


class Feed(PlannedFault):
    """`effect`: as the setting `feed` takes it; `chance`: of each entry."""

    name = "feed"
    summary = "The account feed drifts between two reads."
    effects = tuple(f"feed: {effect}" for effect in EFFECTS)
    draws: ClassVar = {"effect": EFFECTS, "chance": (1.0, 0.3)}
    example: ClassVar = {"effect": "duplicate", "chance": 1.0}
    operations = ("getTransactions",)
    weight = 2

    effect: Annotated[str, one_of("effect", EFFECTS)]
    chance: Annotated[float, Field(ge=0, le=1)] = 1.0

    def settings(self) -> Mapping[str, Any]:
        return {"feed": [{"effect": self.effect, "chance": self.chance}]}

    def described(self) -> str:
        return f"the feed drifts: {self.effect} ({self.chance:.0%} of the entries)"


class MoneyGone(ChangeFault):
    """Accounts are empty, and have no credit."""

    name = "money"
    summary = "The money is gone: the accounts are empty from a request on."
    effects = ("change: account",)
    example: ClassVar = {"of": "createPayment", "at": 1}

    def start(self, debtor: str, number: str) -> dict[str, Any]:
        del debtor, number
        return {"change": [{"account": "NO*", "balance": "0.00", "creditLine": "0.00"}]}

    def described(self) -> str:
        return f"after {self.of} {self.at}: the accounts are empty"
