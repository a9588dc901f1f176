"""`ledger`: check that balances equal bookings (CONTRACT 9.8)."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from emulator.api.messages import Steps
from emulator.api.render import json_response
from emulator.bank.accounts import ledger
from emulator.control.answers import closed
from emulator.control.operation import AnswerSpec, ControlCall, ControlOperation


@closed
class LedgerAccount(TypedDict):
    """An account recomputed from its bookings."""

    accountId: str
    iban: str
    currency: str
    opening: str
    bookings: str
    reserved: str
    balance: str


@closed
class Ledger(TypedDict):
    """The ledger of the bank; totals by currency."""

    balanced: bool
    accounts: list[LedgerAccount]
    totals: dict[str, str]


def _ledger(call: ControlCall[Any]) -> Steps:
    return json_response(200, (yield from ledger.reporting(call.bank)))


OPERATIONS = (
    ControlOperation(
        id="getLedger",
        method="GET",
        path="/ledger",
        summary="Compare the balance of every account with its bookings.",
        handler=_ledger,
        answers={200: AnswerSpec("balanced, accounts and totals.", Ledger)},
    ),
)
