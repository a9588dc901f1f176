"""The auditor of one bank: judges each observation of the bank by the checks (CONTRACT 17).

Every clause of a check is a small state machine. An observation that matches `seen` opens an occasion, unless one is
open for the same TPP and the same facts `by`. Later observations close it:

    kind      passes by                                fails by
    itself    the occasion                             the occasion
    from_link the occasion                             the occasion
    next      the next one, if it matches              the next one, if it does not; the end of `within`
    never     `until`, the end of `within`, the report one that matches
    at_most   `until`, the end of `within`, the report one too many
    claim     the claim of the TPP                     the claim of the TPP

An occasion of `next` that is still open at the report is not counted. A check fails if one of its occasions failed,
passes if at least one passed and none failed, and is `not-seen` otherwise.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from emulator.api.log import Exchange
from emulator.bank.clock import moment
from emulator.bank.scheme.transitions import FINAL
from emulator.conformance.check import Check, Clause, Predicate, always_false, always_true, predicate, seconds
from emulator.conformance.facts import Links, Observation, static_key
from emulator.conformance.observer import END_OF_PAGE, PAGES

MOST_OPEN = 10_000  # occasions of a clause; the oldest are dropped
MOST_FAILURES = 20  # of a check that are shown; all are counted
MOST_LINKS = 50_000  # addresses and ids that are kept for a TPP
BODY_SHOWN = 4096  # bytes of a request in a failure
# Answers are compact (CONTRACT 3.3), and a search for a literal is many times faster than one for optional blanks.
_LINKS = re.compile(r'href":"([^"\\]+)"')
_IDS = re.compile(r'd":"([^"\\]+)"')


@dataclass(frozen=True, slots=True)
class Evidence:
    """A request or change that shows a failure; `headers` and `body` only of requests."""

    id: str
    what: str
    at: float
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
    """The result of a check so far: how many occasions passed and failed, and the first failures."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)

    def fail(self, failure: Failure | Callable[[], Failure]) -> None:
        """Count a failure; one of the first is also kept, and only then computed."""
        self.failed += 1
        if len(self.failures) < MOST_FAILURES:
            self.failures.append(failure if isinstance(failure, Failure) else failure())


class Belief(Protocol):
    """What the TPP claims about one payment or account (`claims.py`)."""

    @property
    def text(self) -> str:
        """The claim and the truth, in a sentence."""
        ...

    def holds(self, claim: Mapping[str, Any]) -> bool | None:
        """Whether it meets the `claim` of a check; None if that cannot be decided."""
        ...


@dataclass(slots=True, eq=False)
class _Occasion:
    """An open occasion: when it arose, the facts to compare, and what was observed since."""

    shown: Outline
    opened: float
    compared: tuple[Any, ...]
    times: deque[float] | None = None
    count: int = 0


Outline = tuple[str, str, str, str, float]
"""The part of an occasion that is kept while it is open: id, description, method, target, bank time."""


def _tupled(names: Sequence[str]) -> Callable[[Observation], tuple[Any, ...]]:
    """A function that gives these facts of an observation; most clauses name one or none."""
    if not names:
        return lambda _: ()
    if len(names) == 1:
        (name,) = names
        return lambda observed: (observed[name],)
    return itemgetter(*names)


class _Tests(NamedTuple):
    """The tests of a clause that remain for observations with the same static facts; None: it cannot match.

    `ends` tests its `until`, `concerns` its `of`, and `wants` its `itself`, `next` or `never`.
    """

    ends: Predicate | None
    concerns: Predicate | None
    wants: Predicate | None


class _Machine:
    """The state machine of one clause."""

    __slots__ = (
        "by",
        "check",
        "clause",
        "compared",
        "differ",
        "limit",
        "open",
        "real",
        "record",
        "window",
        "word",
    )

    def __init__(self, check: Check, clause: Clause, record: Record) -> None:
        self.check = check
        self.clause = clause
        self.record = record
        self.word = clause.word
        self.by = _tupled(clause.by)
        self.compared = _tupled((*clause.same, *clause.differ))
        self.differ = len(clause.same)
        self.limit = clause.at_most if clause.at_most is not None else 0
        self.window = None if clause.within in (None, "end") else float(seconds(clause.within or ""))
        self.real = clause.clock == "real"
        self.open: OrderedDict[tuple[Any, ...], _Occasion] = OrderedDict()

    def tests(self, observed: Observation) -> _Tests:
        """The tests that remain for observations with these static facts."""
        clause = self.clause
        wanted = clause.next if clause.next is not None else clause.never
        if clause.itself is not None:
            wanted = {"event": self.check.seen.get("event", "request"), **clause.itself}
        return _Tests(
            predicate(clause.until, observed) if clause.until is not None else None,
            predicate(clause.of, observed),
            predicate(wanted, observed) if wanted is not None else None,
        )

    def decide(self, observed: Observation, tests: _Tests) -> None:
        """Close the open occasion that an observation concerns, if it decides it."""
        ends, concerns, wants = tests
        if ends is not None and ends(observed):
            self._end(observed)
            return
        word = self.word
        concerned = concerns is not None and concerns(observed)
        wanted = (concerned or word == "never") and wants is not None and wants(observed)
        if not (concerned or wanted):
            return
        key = (observed.tpp, *self.by(observed))
        occasion = self.open.get(key)
        if occasion is None:
            return
        now = observed.received if self.real else observed.at
        if self.window is not None and word != "at_most" and now - occasion.opened > self.window:
            self._expire(key, occasion)
        elif word == "at_most":
            self._count(key, occasion, observed, now)
        elif wanted and self._compare(occasion, observed):
            if word == "next":
                self._close(key, passed=True)
            else:
                self._fail(key, occasion, observed)
        elif word == "next":
            self._fail(key, occasion, observed)

    def _end(self, observed: Observation) -> None:
        """Close the occasions of the TPP whose facts agree with the known facts of this observation."""
        facts = (observed.tpp, *self.by(observed))
        for key in list(self.open):
            if all(fact is None or fact == value for value, fact in zip(key, facts, strict=True)):
                self._close(key, passed=self.word != "next")

    def occur(self, observed: Observation, tests: _Tests) -> None:
        """Open an occasion; one of `from_link` is judged at once."""
        word = self.word
        if word == "from_link":
            linked = observed["linked"]
            if linked:
                self.record.passed += 1
            elif linked is not None:
                self.fail_itself(observed)
            return
        key = (observed.tpp, *self.by(observed))
        if key in self.open or None in key[1:]:
            return
        now = observed.received if self.real else observed.at
        occasion = _Occasion(_outline(observed), now, self.compared(observed))
        if self.window is not None and word == "at_most":
            concerned = tests.concerns is not None and tests.concerns(observed)
            occasion.times = deque((now,) if concerned else ())
        self.open[key] = occasion
        if len(self.open) > MOST_OPEN:
            oldest = next(iter(self.open))
            self._close(oldest, passed=word != "next")

    def fail_itself(self, observed: Observation) -> None:
        """Count the occasion itself as a failure."""
        self.record.fail(lambda: Failure(self._text, evidence(observed)))

    def _count(self, key: tuple[Any, ...], occasion: _Occasion, observed: Observation, now: float) -> None:
        times = occasion.times
        if self.window is None or times is None:
            occasion.count += 1
            if occasion.count > self.limit:
                self._fail(key, occasion, observed)
            return
        while times and now - times[0] >= self.window:
            times.popleft()
        times.append(now)
        if len(times) > self.limit:
            self._fail(key, occasion, observed)

    def _compare(self, occasion: _Occasion, observed: Observation) -> bool:
        """Whether the facts `same` are equal to those of the occasion, and a fact `differ`, known in both, is not."""
        then, now = occasion.compared, self.compared(observed)
        cut = self.differ
        if then[:cut] != now[:cut]:
            return False
        others = zip(then[cut:], now[cut:], strict=True)
        return len(then) == cut or any(None not in pair and pair[0] != pair[1] for pair in others)

    def _close(self, key: tuple[Any, ...], *, passed: bool) -> None:
        del self.open[key]
        self.record.passed += passed

    def _expire(self, key: tuple[Any, ...], occasion: _Occasion) -> None:
        if self.word == "next":
            del self.open[key]
            self.record.fail(lambda: Failure(self._text, _shown(occasion.shown)))
        else:
            self._close(key, passed=True)

    def _fail(self, key: tuple[Any, ...], occasion: _Occasion, observed: Observation) -> None:
        del self.open[key]
        self.record.fail(lambda: Failure(self._text, _shown(occasion.shown), evidence(observed)))

    @property
    def _text(self) -> str:
        return self.clause.text or self.check.about

    def claimed(self, record: Record, beliefs: Mapping[str, Belief] | None) -> None:
        """Judge each occasion by the claim of the TPP about it."""
        for key, occasion in self.open.items():
            belief = (beliefs or {}).get(str(key[1]))
            holds = None if belief is None else belief.holds(self.clause.claim or {})
            if belief is None or holds is None:
                record.skipped += 1
            elif holds:
                record.passed += 1
            else:
                record.fail(Failure(f"{self._text} {belief.text}", _shown(occasion.shown)))

    def settled(self, now: float, received: float, *, over: bool) -> tuple[int, list[Failure]]:
        """How many open occasions count as passed by now, and the failures among them; `over`: the run has ended."""
        passed, failures = 0, []
        at = received if self.real else now
        for occasion in self.open.values():
            late = self.window is not None and at - occasion.opened > self.window
            if self.word != "next":
                passed += 1
            elif late or (over and self.clause.within is not None):
                failures.append(Failure(self._text, _shown(occasion.shown)))
        return passed, failures


_Tested = tuple[_Machine, _Tests]


def _outline(observed: Observation) -> Outline:
    """The outline of an occasion; headers and body are not kept, as an occasion may be open for long."""
    exchange = observed.exchange
    if exchange is not None:
        request = exchange.request
        return str(exchange.id), str(exchange.status or "nothing"), request.method, request.target, observed.at
    about = next((str(observed[name]) for name in ("payment", "sca", "consent", "basket") if observed[name]), "")
    what = " ".join(filter(None, (observed.event, str(observed["outcome"] or observed["link"] or ""), about)))
    return "", what, "", "", observed.at


def _shown(outline: Outline) -> Evidence:
    """The evidence of an occasion."""
    identity, what, method, target, at = outline
    return Evidence(identity, f"{method} {target} answered {what}" if method else what, at, method, target)


def evidence(observed: Observation) -> Evidence:
    """The evidence of an observation that failed a check: enough to send the request again."""
    shown = _shown(_outline(observed))
    if observed.exchange is None:
        return shown
    request = observed.exchange.request
    body = request.body[:BODY_SHOWN].decode("utf-8", "replace")
    return replace(shown, headers=tuple(request.headers), body=body)


class _Addresses:
    """The addresses (with query) and ids in the answers to one TPP; the oldest are dropped."""

    def __init__(self) -> None:
        self.addresses: OrderedDict[str, None] = OrderedDict()
        self.ids: OrderedDict[str, None] = OrderedDict()
        self.links = Links(self.addresses, self.ids)

    def add(self, body: bytes) -> None:
        """Add every link and id of an answer."""
        text = body.decode("utf-8", "replace")
        for href in _LINKS.findall(text):
            self.addresses[_path(href)] = None
        for identity in _IDS.findall(text):
            self.ids[identity] = None
        for entries in (self.addresses, self.ids):
            while len(entries) > MOST_LINKS:
                entries.popitem(last=False)


def _path(href: str) -> str:
    """The path and query of a link, without the prefix of `links: absolute` and of named banks."""
    at = href.find("/v1/")
    return href[at:] if at > 0 else href


@dataclass(slots=True, eq=False)
class _ConcernedClauses:
    """The clauses that observations with the same static facts concern.

    `passed`: the records of clauses that each of them passes; `deciding`: clauses whose open occasions they may close;
    `seeing`: for each check whose occasion they may be, the remaining test of `seen` (None: it matches), the clauses
    that the occasion itself decides, and the others.
    """

    passed: tuple[Record, ...]
    deciding: tuple[_Tested, ...]
    seeing: tuple[tuple[Predicate | None, tuple[tuple[_Machine, Predicate], ...], tuple[_Tested, ...]], ...]


def _decides(machine: _Machine, tests: _Tests) -> bool:
    """Whether observations with these tests can close an occasion."""
    if machine.word in ("itself", "from_link", "claim"):
        return False
    return tests.ends is not None or tests.concerns is not None or (machine.word == "never" and tests.wants is not None)


class Auditor:
    """Judges the TPPs of one bank by the checks; not thread-safe."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self.checks = tuple(checks)
        self._start()

    def _start(self) -> None:
        self.records = {check.check: Record() for check in self.checks}
        self._machines = [
            _Machine(check, clause, self.records[check.check]) for check in self.checks for clause in check.expect
        ]
        self._rows: dict[tuple[Any, ...], _ConcernedClauses] = {}
        self._addresses: dict[str, _Addresses] = {}
        self._final: OrderedDict[str, None] = OrderedDict()  # payments whose final status their TPP has read
        self.observed = 0

    def forget(self) -> None:
        """Start again without observations, as after a reset or `DELETE /_emulator/conformance`."""
        self._start()

    def request(self, exchange: Exchange, received: float) -> None:
        """Judge a request that has been answered."""
        tpp = exchange.tpp
        call = exchange.call
        if call is None:
            return
        known = self._addresses.get(tpp or "")
        if known is None:
            known = self._addresses[tpp or ""] = _Addresses()
        observed = Observation(
            "request",
            at=moment(exchange.at).timestamp(),
            received=received,
            tpp=tpp,
            exchange=exchange,
            links=known.links,
        )
        self.observe(observed)
        if "paymentId" in call.params:
            self._note_final_status(call.params["paymentId"], observed)
        # The answer to a status read repeats the links of the creation; all others may have new ones.
        if 200 <= exchange.status < 300 and not call.operation.id.endswith("Status"):
            body = exchange.response.body if exchange.response is not None else b""
            known.add(body[-END_OF_PAGE:] if call.operation.id in PAGES else body)

    def _note_final_status(self, payment: str, observed: Observation) -> None:
        """Note that a TPP has read the final status of a payment: a notification about it is no news then."""
        deleted = observed["operation"] == "deletePayment" and observed["status"] == 204
        if deleted or observed["paymentStatus"] in FINAL:
            self._final[payment] = None
            if len(self._final) > MOST_LINKS:
                self._final.popitem(last=False)

    def change(self, event: str, tpp: str | None, at: str, values: dict[str, Any], *, received: float) -> None:
        """Judge a change of the bank, or an action of a browser; `at`: a stamp of bank time."""
        if event == "notification":
            values = {**values, "news": values["payment"] not in self._final}
        self.observe(Observation(event, at=moment(at).timestamp(), received=received, tpp=tpp, values=values))

    def observe(self, observed: Observation) -> None:
        """Pass an observation to every clause that it may concern."""
        self.observed += 1
        key = static_key(observed)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._row(observed)
        for machine, tests in row.deciding:
            if machine.open:
                machine.decide(observed, tests)
        for record in row.passed:
            record.passed += 1
        for seen, judging, opening in row.seeing:
            if seen is not None and not seen(observed):
                continue
            for machine, wants in judging:
                if wants(observed):
                    machine.record.passed += 1
                else:
                    machine.fail_itself(observed)
            for machine, tests in opening:
                machine.occur(observed, tests)

    def _row(self, observed: Observation) -> _ConcernedClauses:
        """The row of observations with the same static facts as this one."""
        nobody = observed.tpp is None and observed.event == "request"
        passed: list[Record] = []
        seeing = []
        tested = [(machine, machine.tests(observed)) for machine in self._machines]
        for check in self.checks:
            # Without a valid signature only the signature can be judged.
            seen = None if nobody and check.group != "signing" else predicate(check.seen, observed)
            if seen is None:
                continue
            judging: list[tuple[_Machine, Predicate]] = []
            opening: list[_Tested] = []
            for machine, tests in tested:
                if machine.check is not check:
                    continue
                if machine.word != "itself":
                    opening.append((machine, tests))
                elif seen is always_true and tests.wants is always_true:
                    passed.append(machine.record)
                else:
                    judging.append((machine, tests.wants or always_false))
            if judging or opening:
                seeing.append((None if seen is always_true else seen, tuple(judging), tuple(opening)))
        deciding = () if nobody else tuple(pair for pair in tested if _decides(*pair))
        return _ConcernedClauses(tuple(passed), deciding, tuple(seeing))

    def verdicts(
        self, now: float, received: float, *, over: bool = False, beliefs: Mapping[str, Belief] | None = None
    ) -> Mapping[str, Record]:
        """The record of each check at `now` (bank time in seconds) and `received` (real time).

        `over`: no more observations follow; `beliefs`: the claims of the TPP, by the id of a payment or account.
        """
        records = {
            name: Record(record.passed, record.failed, record.skipped, list(record.failures))
            for name, record in self.records.items()
        }
        for machine in self._machines:
            record = records[machine.check.check]
            if machine.word == "claim":
                machine.claimed(record, beliefs)
                continue
            passed, failures = machine.settled(now, received, over=over)
            record.passed += passed
            for failure in failures:
                record.fail(failure)
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
