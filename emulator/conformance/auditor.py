"""The auditor of one bank: judges each observation of the bank by the checks (checks.md)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from emulator.api.log import Exchange
from emulator.bank.clock import moment
from emulator.bank.scheme.transitions import FINAL
from emulator.conformance.check import Check, Predicate, always_false, always_true, predicate
from emulator.conformance.facts import Observation, static_key
from emulator.conformance.links import END_OF_PAGE, PAGES, Known, Links
from emulator.conformance.machine import AT_ONCE, Belief, Machine, Record, Tests

MOST_ROWS = 1000  # combinations of static facts, as the names of scripted rules are without number
MOST_ASKED = 10_000  # SCAs whose request is remembered
CONSENTS = ("createConsent", "createBankOfferedConsent")

_Tested = tuple[Machine, Tests]


@dataclass(slots=True, eq=False)
class _ConcernedClauses:
    """The clauses that observations with the same static facts concern.

    `passed`: the records of clauses that each of them passes, `count`: how many there were since they were recorded
    there; `deciding`: clauses whose open occasions they may close; `judged` and `opening`: clauses whose occasion they
    may be, with what remains of `seen`: those that the occasion itself decides, and the others.
    """

    passed: tuple[Record, ...]
    deciding: tuple[_Tested, ...]
    judged: tuple[tuple[Predicate, Machine, Predicate], ...]
    opening: tuple[tuple[Predicate, Machine, Tests], ...]
    count: int = 0


def _decides(machine: Machine, tests: Tests) -> bool:
    """Whether observations with these tests can close an occasion."""
    if machine.word in (*AT_ONCE, "claim"):
        return False
    return tests.ends is not None or tests.concerns is not None or (machine.word == "never" and tests.wants is not None)


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
        self._rows: dict[tuple[Any, ...], _ConcernedClauses] = {}
        self._addresses: dict[str, Links] = {}
        self._final = Known()  # payments whose final status their TPP has read
        self._asked: OrderedDict[str, str | None] = OrderedDict()  # the PSU-IP-Address of requests that opened an SCA
        self.observed = 0

    def request(self, exchange: Exchange, received: float) -> None:
        """Judge a request that has been answered."""
        tpp = exchange.tpp
        call = exchange.call
        if call is None:
            return
        known = self._addresses.get(tpp or "")
        if known is None:
            known = self._addresses[tpp or ""] = Links()
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
        self.observed += 1
        key = static_key(observed)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= MOST_ROWS:
                self._record_passed()
                self._rows.clear()
            row = self._rows[key] = self._row(observed)
        row.count += 1
        for machine, tests in row.deciding:
            if machine.open:
                machine.decide(observed, tests)
        for seen, machine, wants in row.judged:
            if seen(observed):
                if wants(observed):
                    machine.record.passed += 1
                else:
                    machine.fail_itself(observed)
        for seen, machine, tests in row.opening:
            if seen(observed):
                machine.occur(observed, tests)

    def _record_passed(self) -> None:
        """Record the clauses that observations have passed by their static facts alone."""
        for row in self._rows.values():
            for record in row.passed:
                record.passed += row.count
            row.count = 0

    def _row(self, observed: Observation) -> _ConcernedClauses:
        """The row of observations with the same static facts as this one."""
        nobody = observed.tpp is None and observed.event == "request"
        passed: list[Record] = []
        judged: list[tuple[Predicate, Machine, Predicate]] = []
        opening: list[tuple[Predicate, Machine, Tests]] = []
        deciding: list[_Tested] = []
        for machine in self._machines:
            tests = machine.tests(observed)
            if not nobody and _decides(machine, tests):
                deciding.append((machine, tests))
            # Without a valid signature only the signature can be judged.
            seen = None if nobody and machine.check.group != "signing" else predicate(machine.seen, observed)
            if seen is None:
                continue
            if machine.word not in AT_ONCE:
                opening.append((seen, machine, tests))
            elif seen is always_true and tests.wants is always_true:
                passed.append(machine.record)
            else:
                judged.append((seen, machine, tests.wants or always_false))
        return _ConcernedClauses(tuple(passed), tuple(deciding), tuple(judged), tuple(opening))

    def verdicts(
        self, now: float, received: float, *, beliefs: Mapping[str, Belief] | None = None
    ) -> Mapping[str, Record]:
        """The record of each check at `now` (bank time in seconds) and `received` (real time).

        `beliefs`: the claims of the TPP, by the id of a payment or account.
        """
        self._record_passed()
        records = {name: replace(record, failures=list(record.failures)) for name, record in self.records.items()}
        for machine in self._machines:
            record = records[machine.check.check]
            if machine.word == "claim":
                machine.claimed(record, beliefs)
            else:
                machine.settle(record, (now, received))
        return records

    def claimable(self) -> tuple[set[str], set[str]]:
        """The ids of payments and of accounts whose claims the checks need."""
        payments: set[str] = set()
        accounts: set[str] = set()
        for machine in self._machines:
            if machine.word == "claim":
                wanted = payments if machine.clause.by == ["payment"] else accounts
                wanted.update(str(key[1]) for key in machine.open if key[1] is not None)
        return payments, accounts
