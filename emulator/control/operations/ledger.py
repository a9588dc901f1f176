"""`ledger`: check that balances equal bookings (CONTRACT 9.8)."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Steps
from emulator.api.render import json_response
from emulator.bank.accounts import ledger
from emulator.control import answers
from emulator.control.operation import AnswerSpec, ControlCall, ControlOperation


def _ledger(call: ControlCall[Any]) -> Steps:
    return json_response(200, (yield from ledger.reporting(call.bank)))


OPERATIONS = (
    ControlOperation(
        id="getLedger",
        method="GET",
        path="/ledger",
        summary="Compare the balance of every account with its bookings.",
        handler=_ledger,
        answers={200: AnswerSpec("balanced, accounts and totals.", answers.Ledger)},
    ),
)
