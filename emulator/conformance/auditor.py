"""Judges the observations of one bank by the checks (checks.md): an `Auditor` has a `Machine` for each clause of them.

An observation that matches `seen` opens an occasion of a clause, unless one is open for the same TPP and the same facts
`by`. Later observations close it:

    kind      passes by                                fails by
    itself    the occasion                             the occasion
    from_link the occasion                             the occasion
    next      the next one, if it matches              the next one, if it does not; the end of `within`
    each      `until`, the end of `within`, the report one that does not match
    never     `until`, the end of `within`, the report one that matches
    at_most   `until`, the end of `within`, the report one too many
    claim     the claim of the TPP                     the claim of the TPP

For `within: end` the report is the end. An occasion of `next` or `each` that no observation has concerned yet is
undecided: it is neither passed nor failed. A check fails if one of its occasions failed, passes if at least one passed
and none failed, and is `not-seen` otherwise.

A window of `clock: real` is over when it has passed in real time or in bank time, as a test with a frozen clock may
advance it by a day between two requests of the same second.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from emulator.api.log import Exchange
from emulator.bank.clock import moment
from emulator.bank.scheme.transitions import FINAL
from emulator.conformance import END_OF_PAGE, PAGES
from emulator.conformance.check import AT_ONCE, Belief, Check, Clause, Tests, holds
from emulator.conformance.facts import Known, Links, Observation

MOST_OPEN = 10_000  # occasions of a clause; the oldest are dropped
MOST_FAILURES = 20  # of a check that are shown; all are counted
BODY_SHOWN = 4096  # bytes of a request in a failure
MOST_ASKED = 10_000  # SCAs whose request is remembered
CONSENTS = ("createConsent", "createBankOfferedConsent")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A request or change that shows a failure; `headers` and `body` only of requests."""

    id: str
    what: str
    method: str = ""
    target: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """What was expected and what was seen instead."""

    text: str
    occasion: Evidence
    instead: Evidence | None = None


@dataclass(slots=True)
class Record:
    """The result of a check so far: how many occasions passed, failed and are undecided, and the first failures."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    undecided: int = 0
    failures: list[Failure] = field(default_factory=list)

    def fail(self, text: str, occasion: Evidence, instead: Observation | None = None) -> None:
        """Count a failure; one of the first is also kept."""
        self.failed += 1
        if len(self.failures) < MOST_FAILURES:
            self.failures.append(Failure(text, occasion, None if instead is None else evidence(instead)))


Moment = tuple[float, float]
"""Bank time and real time, in seconds since 1970."""


def brief_evidence(observed: Observation) -> Evidence:
    """The evidence of an occasion, without headers and body, as it may be open for long."""
    if observed.is_request:
        exchange = observed.exchange
        method, target = exchange.request.method, exchange.request.target
        lost = " (the answer was lost)" if observed["answerLost"] else ""
        text = f"{method} {target} answered {exchange.status or 'nothing'}{lost}"
        return Evidence(str(exchange.id), text, method, target)
    about = next((str(observed[name]) for name in ("payment", "sca", "consent") if observed[name]), "")
    what = (observed["event"], str(observed["outcome"] or observed["link"] or ""), about)
    return Evidence("", " ".join(filter(None, what)))


def evidence(observed: Observation) -> Evidence:
    """The evidence of an observation that failed a check: enough to send the request again."""
    brief = brief_evidence(observed)
    if not observed.is_request:
        return brief
    request = observed.exchange.request
    body = request.body[:BODY_SHOWN].decode("utf-8", "replace")
    return replace(brief, headers=tuple(request.headers), body=body)


@dataclass(slots=True, eq=False)
class _Occasion:
    """An open occasion: when it arose, the facts to compare, and what was observed since."""

    shown: Evidence
    opened: Moment
    compared: Mapping[str, Any]
    counted: list[Moment] = field(default_factory=list)  # what `at_most` has seen of it
    concerned: bool = False  # whether `each` has seen anything


class Machine:
    """The state machine of one clause, for one bank. An occasion is of one TPP, and has the facts `by`."""

    def __init__(self, check: Check, clause: Clause, record: Record) -> None:
        self.check = check
        self.clause = clause
        self.record = record
        self.kind = clause.kind
        self.text = clause.text or check.about
        self.at_once = self.kind in AT_ONCE
        self.seen = (check.seen if clause.seen is None else clause.seen).tests
        self.ends = [match.tests for match in clause.until]
        self.concerns, self.wants = clause.of.tests, clause.wants
        self.compared = (*clause.same, *clause.differ)
        self.by = ("tpp", *clause.by)
        self.limit = clause.at_most or 0
        self.window = clause.within.total_seconds() if isinstance(clause.within, timedelta) else None
        self.real = clause.clock == "real"
        self.open: OrderedDict[tuple[Any, ...], _Occasion] = OrderedDict()

    @property
    def deciding(self) -> Sequence[Tests]:
        """The tests of observations that may decide an open occasion."""
        if self.at_once or self.kind == "claim":
            return ()
        return [*self.ends, self.concerns, *([self.wants] if self.kind == "never" else ())]

    def _key(self, observed: Observation) -> tuple[Any, ...]:
        return tuple(map(observed.__getitem__, self.by))

    def decide(self, observed: Observation) -> None:
        """Close the open occasion that an observation concerns, if it decides it."""
        key = self._key(observed)
        for end in self.ends:
            if holds(end, observed):
                self._end(key)
                return
        occasion = self.open.get(key)
        if occasion is None:
            return
        kind = self.kind
        concerned = holds(self.concerns, observed)
        wanted = (concerned or kind == "never") and holds(self.wants, observed)
        if not (concerned or wanted):
            return
        now = observed.at, observed.received
        if kind == "at_most":
            self._count(key, occasion, observed, now)
        elif self._is_late(occasion, now):
            self._expire(key)
        else:
            matched = wanted and self._compare(occasion.compared, observed)
            if matched == (kind == "never"):
                self._fail(key, observed)
            elif kind == "next":
                del self.open[key]
                self.record.passed += 1
            else:
                occasion.concerned = True

    def _is_late(self, occasion: _Occasion, now: Moment) -> bool:
        """Whether the window of an occasion has passed."""
        return self.window is not None and self._passed(occasion.opened, now) > self.window

    def _passed(self, then: Moment, now: Moment) -> float:
        """The seconds between two moments, by the clock of the clause."""
        bank = now[0] - then[0]
        return max(bank, now[1] - then[1]) if self.real else bank

    def _end(self, facts: tuple[Any, ...]) -> None:
        """Close the occasions of a TPP that agree with the known `facts` of an observation."""
        for key in list(self.open):
            if all(fact is None or fact == value for value, fact in zip(key, facts, strict=True)):
                self._lapse(key)

    def _lapse(self, key: tuple[Any, ...]) -> None:
        """Close an occasion that nothing has failed; it is passed if anything has decided it."""
        self.record.passed += self._holds(self.open.pop(key))

    def _holds(self, occasion: _Occasion) -> bool:
        """Whether an occasion that nothing has failed is passed, and not undecided."""
        return occasion.concerned if self.kind == "each" else self.kind != "next"

    def occur(self, observed: Observation) -> None:
        """Decide an occasion at once or open it; one that is open lasts longer, if only its end would pass it."""
        if self.at_once:
            if holds(self.wants, observed):
                self.record.passed += 1
            else:
                self.record.fail(self.text, evidence(observed))
            return
        key = self._key(observed)
        if None in key[1:]:  # without a fact of `by` nothing later can be told to belong to it
            return
        now = observed.at, observed.received
        known = self.open.get(key)
        if known is not None:
            if self.kind == "at_most":
                return
            if not self._is_late(known, now):
                known.opened = known.opened if self.kind == "next" else now
                return
            self._expire(key)
        compared = {name: observed[name] for name in self.compared}
        occasion = _Occasion(brief_evidence(observed), now, compared)
        if self.window is not None and self.kind == "at_most" and holds(self.concerns, observed):
            occasion.counted.append(now)
        self.open[key] = occasion
        if len(self.open) > MOST_OPEN:
            self._lapse(next(iter(self.open)))

    def _count(self, key: tuple[Any, ...], occasion: _Occasion, observed: Observation, now: Moment) -> None:
        if self.window is not None:
            occasion.counted = [then for then in occasion.counted if self._passed(then, now) < self.window]
        occasion.counted.append(now)
        if len(occasion.counted) > self.limit:
            self._fail(key, observed)

    def _compare(self, then: Mapping[str, Any], now: Observation) -> bool:
        """Whether the facts `same` are equal to those of the occasion, and a fact `differ`, known in both, is not."""
        if any(then[name] != now[name] for name in self.clause.same):
            return False
        differ = [(then[name], now[name]) for name in self.clause.differ]
        return not differ or any(None not in pair and pair[0] != pair[1] for pair in differ)

    def _expire(self, key: tuple[Any, ...]) -> None:
        """Close an occasion whose window has passed."""
        if self.kind == "next":
            self._fail(key)
        else:
            self._lapse(key)

    def _fail(self, key: tuple[Any, ...], instead: Observation | None = None) -> None:
        self.record.fail(self.text, self.open.pop(key).shown, instead)

    def claimed(self, record: Record, beliefs: Mapping[str, Belief] | None) -> None:
        """Judge each occasion by the claim of the TPP about it, unless that is about an account that has changed since
        the TPP read it.
        """
        for key, occasion in self.open.items():
            belief = (beliefs or {}).get(str(key[1]))
            is_read = belief is not None and belief.since <= occasion.opened[0]
            agrees = belief.holds(self.clause.claim or {}) if belief is not None and is_read else None
            if belief is None or agrees is None:
                record.skipped += 1
            elif agrees:
                record.passed += 1
            else:
                record.fail(f"{self.text} {belief.text}", occasion.shown)

    def settle(self, record: Record, now: Moment) -> None:
        """Count the open occasions in the record of a report at `now`."""
        at_the_end = self.clause.within == "end"
        for occasion in self.open.values():
            if self._holds(occasion):
                record.passed += 1
            elif self.kind == "next" and (at_the_end or self._is_late(occasion, now)):
                record.fail(self.text, occasion.shown)
            else:
                record.undecided += 1


# Facts of few values, by which clauses are sorted out
SORTED_BY = ("event", "operation", "status", "attended", "signature", "digest")
_Row = tuple[list[Machine], list[tuple[Machine, Tests]]]
"""Clauses whose open occasions may be decided; those whose occasion may arise, with the other tests of `seen`."""


class Auditor:
    """Judges the TPPs of one bank by the checks; not thread-safe."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self.checks = tuple(checks)
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
            return holds({name: tests[name] for name in SORTED_BY if name in tests}, observed)

        seen = [machine for machine in self._machines if may_match(machine.seen)]
        deciding = [machine for machine in self._machines if any(map(may_match, machine.deciding))]
        if observed["tpp"] is None and observed["event"] == "request":
            # without a valid signature only the signature can be judged
            seen, deciding = [machine for machine in seen if machine.check.group == "signing"], []
        return deciding, [
            (one, {name: test for name, test in one.seen.items() if name not in SORTED_BY}) for one in seen
        ]

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
