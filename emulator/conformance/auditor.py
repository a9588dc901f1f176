"""The auditor of one bank: judges each observation of the bank by the checks (checks.md)."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from emulator.api.log import Exchange
from emulator.bank.clock import moment
from emulator.bank.scheme.transitions import FINAL
from emulator.conformance import END_OF_PAGE, PAGES
from emulator.conformance.check import Check, Tests, holds
from emulator.conformance.claims import Belief
from emulator.conformance.facts import Known, Links, Observation
from emulator.conformance.machine import Machine, Record

MOST_ASKED = 10_000  # SCAs whose request is remembered
CONSENTS = ("createConsent", "createBankOfferedConsent")

SORTED_BY = ("event", "operation", "status")  # the facts by which clauses are sorted out
_Row = tuple[list[Machine], list[tuple[Machine, Tests]]]
"""Clauses whose open occasions may be decided, and those whose occasion may arise, with the other tests of `seen`."""


class Auditor:
    """Judges the TPPs of one bank by the checks; not thread-safe."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self.checks = tuple(checks)
        self.forget()

    def forget(self) -> None:
        """Start again without observations, as after a reset or `DELETE /_emulator/conformance`."""
        self.records = {check.check: Record() for check in self.checks}
        self._machines = [
            Machine(check, clause, self.records[check.check]) for check in self.checks for clause in check.expect
        ]
        # By the facts SORTED_BY, and whether the TPP is unknown: the clauses that may be concerned.
        self._rows: dict[tuple[Any, ...], _Row] = {}
        self._addresses: defaultdict[str, Links] = defaultdict(Links)
        self._final = Known()  # payments whose final status their TPP has read
        self._asked: OrderedDict[str, str | None] = OrderedDict()  # the PSU-IP-Address of requests that opened an SCA

    def request(self, exchange: Exchange, received: float) -> None:
        """Judge a request that has been answered."""
        tpp = exchange.tpp
        call = exchange.call
        if call is None:
            return
        known = self._addresses[tpp or ""]
        observed = Observation(
            "request",
            at=moment(exchange.at).timestamp(),
            received=received,
            tpp=tpp,
            exchange=exchange,
            links=known,
        )
        self.observe(observed)
        if exchange.status == 401 or call.operation.id in CONSENTS:
            self._note_address(observed)
        if "paymentId" in call.params:
            self._note_final_status(call.params["paymentId"], observed)
        # The answer to a status read repeats the links of the creation; all others may have new ones.
        if 200 <= exchange.status < 300 and not call.operation.id.endswith("Status"):
            body = exchange.response.body if exchange.response is not None else b""
            known.add(body[-END_OF_PAGE:] if call.operation.id in PAGES else body)

    def _note_address(self, observed: Observation) -> None:
        """Note the customer's address of a request that opened an SCA for accounts."""
        sca = observed["sca"]
        if sca is not None:
            self._asked[sca] = observed["address"]
            if len(self._asked) > MOST_ASKED:
                self._asked.popitem(last=False)

    def _note_final_status(self, payment: str, observed: Observation) -> None:
        """Note that a TPP has read the final status of a payment: a notification about it is no news then."""
        deleted = observed["operation"] == "deletePayment" and observed["status"] == 204
        if deleted or observed["paymentStatus"] in FINAL:
            self._final.add((payment,))

    def change(self, event: str, tpp: str | None, at: str, values: dict[str, Any], *, received: float) -> None:
        """Judge a change of the bank, or an action of a browser; `at`: a stamp of bank time."""
        if event == "notification":
            values = {**values, "news": values["payment"] not in self._final}
        elif event == "return":
            values = {**values, "address": self._asked.get(values["sca"])}
        self.observe(Observation(event, at=moment(at).timestamp(), received=received, tpp=tpp, values=values))

    def observe(self, observed: Observation) -> None:
        """Pass an observation to every clause that it may concern."""
        key = (*map(observed.__getitem__, SORTED_BY), observed["tpp"] is None)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._row(observed)
        deciding, occurring = row
        for machine in deciding:
            if machine.open:
                machine.decide(observed)
        for machine, others in occurring:
            if not others or holds(others, observed):
                machine.occur(observed)

    def _row(self, observed: Observation) -> _Row:
        """The clauses that may concern observations with the same key as this one."""

        def may_match(tests: Tests) -> bool:
            return holds([row for row in tests if row[0] in SORTED_BY], observed)

        seen = [machine for machine in self._machines if may_match(machine.seen)]
        deciding = [machine for machine in self._machines if any(map(may_match, machine.deciding))]
        if observed["tpp"] is None and observed["event"] == "request":
            # without a valid signature only the signature can be judged
            seen, deciding = [machine for machine in seen if machine.check.group == "signing"], []
        return deciding, [(one, [row for row in one.seen if row[0] not in SORTED_BY]) for one in seen]

    def verdicts(
        self, now: float, received: float, *, beliefs: Mapping[str, Belief] | None = None
    ) -> Mapping[str, Record]:
        """The record of each check at `now` (bank time in seconds) and `received` (real time).

        `beliefs`: the claims of the TPP, by the id of a payment or account.
        """
        records = {name: replace(record, failures=list(record.failures)) for name, record in self.records.items()}
        for machine in self._machines:
            record = records[machine.check.check]
            if machine.kind == "claim":
                machine.claimed(record, beliefs)
            else:
                machine.settle(record, (now, received))
        return records

    def claimable(self) -> tuple[set[str], set[str]]:
        """The ids of payments and of accounts whose claims the checks need."""
        payments: set[str] = set()
        accounts: set[str] = set()
        for machine in self._machines:
            if machine.kind == "claim":
                wanted = payments if machine.clause.by == ["payment"] else accounts
                wanted.update(str(key[1]) for key in machine.open if key[1] is not None)
        return payments, accounts
