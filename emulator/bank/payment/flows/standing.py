"""Standing orders: ACTC from approval on, executed on each of their dates, ACSC after the last (CONTRACT 6, 13)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from emulator.bank.accounts import ledger
from emulator.bank.bank import Bank
from emulator.bank.booking import settlement
from emulator.bank.clock import moment
from emulator.bank.documents import Payment
from emulator.bank.payment import standing
from emulator.bank.payment.flows import AUTHORISED, Flow
from emulator.bank.products import PERIODIC
from emulator.bank.scheme.transitions import CANCELLABLE, SIGNED, Transition


class _Standing(Flow):
    def plan(self, bank: Bank, payment: Payment, at: datetime) -> tuple[str, str | None]:
        standing.begin(bank, payment, at)
        return AUTHORISED

    def steps_itself(self, status: str) -> bool:
        return True

    def step(self, bank: Bank, payment: Payment, at: datetime, *, by_hand: bool) -> str | None:
        return "ACSC" if standing.execute(bank, payment, at) else None

    def due(self, bank: Bank, payment: Payment, at: datetime) -> datetime | None:
        return standing.run_from(bank, payment, moment(payment["executeAt"]), at)

    # it reserves nothing: each execution looks for its money

    def foresee(self, bank: Bank, payment: Payment, at: str) -> None:
        payment["fundsAvailable"] = ledger.covers(bank, payment["debtorAccountId"], settlement.cost(payment))

    def executing(self, bank: Bank, payment: Payment, at: str) -> None:
        pass

    def book(self, bank: Bank, payment: Payment, at: str) -> None:
        pass

    def part(self, bank: Bank, payment: Payment, at: str) -> None:
        pass

    def details(self, payment: Payment) -> Mapping[str, Any]:
        return {"executions": standing.executions(payment)}

    def dates(self, bank: Bank, payment: Payment) -> Mapping[str, str]:
        initiation = payment["initiation"]
        plan = {name: initiation[name] for name in ("frequency", "startDate", "endDate") if name in initiation}
        return plan | standing.days_in_words(bank, payment)


FLOW = _Standing(
    "standing",
    words="periodic",
    service=PERIODIC,
    steps=(*SIGNED, Transition("ACTC", "ACSC", "last execution"), *CANCELLABLE),
)
