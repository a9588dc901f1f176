"""The auditor of one bank: takes what the bank sees and keeps a verdict for each check (CONTRACT 17).

Every clause of a check is a small machine. An observation that fits `seen` opens an occasion, unless one is open for
the same TPP and the same facts `by`; later observations decide it:

    word      decided as passed by                     decided as failed by
    itself    the occasion                             the occasion
    from_link the occasion                             the occasion
    next      the next one that fits                   the next one that does not, `within` passing
    never     `until`, `within` passing, the report    one that fits
    at_most   `until`, `within` passing, the report    one too many
    claim     what the TPP believes                    the same

An occasion of `next` that is still open at the report is not counted. A check fails if one of its occasions failed,
passes if at least one passed and none failed, and is `not-seen` otherwise.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from emulator.api.log import Exchange
from emulator.bank.clock import moment
from emulator.conformance.check import Check, Clause, Fits, compiled, remaining, seconds
from emulator.conformance.facts import END_OF_PAGE, PAGES, Links, Observation, static_key

MOST_OPEN = 10_000  # occasions of a clause; the oldest are dropped
MOST_FAILURES = 20  # of a check that are shown; all are counted
MOST_LINKS = 50_000  # addresses and ids that are remembered for a TPP
BODY_SHOWN = 4096  # bytes of a request in a failure
# Answers are compact (CONTRACT 3.3). With a literal in front such a search is many times faster.
_LINKS = re.compile(rb'href":"([^"\\]+)"')
_IDS = re.compile(rb'd":"([^"\\]+)"')


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
    """What is known of a check so far: how many occasions passed and failed, and the first failures."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)

    def fail(self, failure: Failure) -> None:
        """Count a failure."""
        self.failed += 1
        if len(self.failures) < MOST_FAILURES:
            self.failures.append(failure)


class Belief(Protocol):
    """What the TPP believes of one payment or account (`claims.py`)."""

    @property
    def text(self) -> str:
        """It and what is true, in a sentence."""
        ...

    def holds(self, claim: Mapping[str, Any]) -> bool | None:
        """Whether it is what a check's `claim` demands; None where that cannot be told any more."""
        ...


@dataclass(slots=True, eq=False)
class _Occasion:
    """An open occasion: when it arose, what it is compared by, and what was seen since."""

    shown: Outline
    opened: float
    compared: tuple[Any, ...]
    times: deque[float] = field(default_factory=deque)
    count: int = 0


Outline = tuple[str, str, str, str, float]
"""What is kept of an occasion while it is open: id, what it was, method, target, bank time."""


def _tupled(names: Iterable[str]) -> Callable[[Observation], tuple[Any, ...]]:
    wanted = tuple(names)
    return lambda observed: tuple([observed.fact(name) for name in wanted])


class _Machine:
    """One clause of one check at work."""

    __slots__ = (
        "by",
        "check",
        "clause",
        "compared",
        "concerns",
        "differ",
        "ends",
        "fits",
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
        self.concerns = compiled(clause.of)
        wanted = getattr(clause, self.word)
        if self.word == "itself":
            wanted = {"event": check.seen.get("event", "request"), **wanted}
        self.fits: Fits = compiled(wanted) if isinstance(wanted, dict) and self.word != "claim" else self.concerns
        self.ends: Fits | None = compiled(clause.until) if clause.until is not None else None
        self.by = _tupled(clause.by)
        self.compared = _tupled((*clause.same, *clause.differ))
        self.differ = len(clause.same)
        self.limit = clause.at_most if clause.at_most is not None else 0
        self.window = None if clause.within in (None, "end") else float(seconds(clause.within or ""))
        self.real = clause.clock == "real"
        self.open: OrderedDict[tuple[Any, ...], _Occasion] = OrderedDict()

    def may_decide(self, observed: Observation) -> bool:
        """Whether observations with these static facts can decide an occasion."""
        if self.word in ("itself", "from_link", "claim"):
            return False
        clause = self.clause
        matches = (clause.of, clause.until, clause.never)
        return any(match is not None and remaining(match, observed) is not None for match in matches)

    def always(self, observed: Observation) -> bool:
        """Whether every occasion with these static facts passes."""
        return self.word == "itself" and remaining(self.clause.itself or {}, observed) == {}

    def decide(self, observed: Observation) -> None:
        """Decide the open occasion that an observation concerns, if there is one."""
        now = observed.received if self.real else observed.at
        if self.ends is not None and self.ends(observed):
            self._end(observed)
            return
        if not self.concerns(observed) and not (self.word == "never" and self.fits(observed)):
            return
        key = (observed.tpp, *self.by(observed))
        occasion = self.open.get(key)
        if occasion is None:
            return
        if self.window is not None and self.word != "at_most" and now - occasion.opened > self.window:
            self._too_late(key, occasion)
            return
        if self.word == "next":
            self._next(key, occasion, observed)
        elif self.word == "never":
            if self.fits(observed) and self._compare(occasion, observed):
                self._fail(key, occasion, observed)
        elif self.word == "at_most":
            self._count(key, occasion, observed, now)

    def _end(self, observed: Observation) -> None:
        """Close every occasion of the TPP that agrees with what is known of the observation that ends it."""
        ended = (observed.tpp, *self.by(observed))
        for key in list(self.open):
            if all(now is None or now == then for then, now in zip(key, ended, strict=True)):
                self._close(key, passed=self.word != "next")

    def occur(self, observed: Observation) -> None:
        """Judge an occasion, or open it."""
        now = observed.received if self.real else observed.at
        word = self.word
        if word == "itself":
            self._judge(observed, self.fits(observed))
            return
        if word == "from_link":
            linked = observed.fact("linked")
            if linked is not None:
                self._judge(observed, linked)
            return
        key = (observed.tpp, *self.by(observed))
        if key in self.open or None in key[1:]:
            return
        occasion = _Occasion(_outline(observed), now, self.compared(observed))
        if self.window is not None and word == "at_most" and self.concerns(observed):
            occasion.times.append(now)
        self.open[key] = occasion
        if len(self.open) > MOST_OPEN:
            oldest = next(iter(self.open))
            self._close(oldest, passed=word != "next")

    def _judge(self, observed: Observation, passed: bool) -> None:
        if passed:
            self.record.passed += 1
        else:
            self.record.fail(Failure(self._text, evidence(observed)))

    def _next(self, key: tuple[Any, ...], occasion: _Occasion, observed: Observation) -> None:
        if self.fits(observed) and self._compare(occasion, observed):
            self._close(key, passed=True)
        else:
            self._fail(key, occasion, observed)

    def _count(self, key: tuple[Any, ...], occasion: _Occasion, observed: Observation, now: float) -> None:
        if self.window is None:
            occasion.count += 1
            if occasion.count > self.limit:
                self._fail(key, occasion, observed)
            return
        times = occasion.times
        while times and now - times[0] >= self.window:
            times.popleft()
        times.append(now)
        if len(times) > self.limit:
            self._fail(key, occasion, observed)

    def _compare(self, occasion: _Occasion, observed: Observation) -> bool:
        """Whether the facts under `same` are the occasion's, and one under `differ` is known both times and is not."""
        then, now = occasion.compared, self.compared(observed)
        cut = self.differ
        if then[:cut] != now[:cut]:
            return False
        others = zip(then[cut:], now[cut:], strict=True)
        return len(then) == cut or any(None not in pair and pair[0] != pair[1] for pair in others)

    def _close(self, key: tuple[Any, ...], *, passed: bool) -> None:
        del self.open[key]
        self.record.passed += passed

    def _too_late(self, key: tuple[Any, ...], occasion: _Occasion) -> None:
        if self.word == "next":
            del self.open[key]
            self.record.fail(Failure(self._text, _shown(occasion.shown)))
        else:
            self._close(key, passed=True)

    def _fail(self, key: tuple[Any, ...], occasion: _Occasion, observed: Observation) -> None:
        del self.open[key]
        self.record.fail(Failure(self._text, _shown(occasion.shown), evidence(observed)))

    @property
    def _text(self) -> str:
        return self.clause.text or self.check.about

    def claimed(self, record: Record, beliefs: Mapping[str, Belief] | None) -> None:
        """Hold what the TPP believes about each occasion against what is true."""
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
        """How many of the open occasions count as passed by now, and which have failed; `over`: the run has ended."""
        passed, failures = 0, []
        at = received if self.real else now
        for occasion in self.open.values():
            late = self.window is not None and at - occasion.opened > self.window
            if self.word != "next":
                passed += 1
            elif late or (over and self.clause.within is not None):
                failures.append(Failure(self._text, _shown(occasion.shown)))
        return passed, failures


def _outline(observed: Observation) -> Outline:
    """What is kept of an occasion; its headers and body are not, for as long as it is open."""
    exchange = observed.exchange
    if exchange is not None:
        request = exchange.request
        return str(exchange.id), str(exchange.status or "nothing"), request.method, request.target, observed.at
    values = observed.values
    about = next((str(values[name]) for name in ("payment", "sca", "consent", "basket") if values.get(name)), "")
    what = " ".join(filter(None, (observed.event, str(values.get("outcome") or values.get("link") or ""), about)))
    return "", what, "", "", observed.at


def _shown(outline: Outline) -> Evidence:
    """What a report shows of an occasion."""
    identity, what, method, target, at = outline
    return Evidence(identity, f"{method} {target} answered {what}" if method else what, at, method, target)


def evidence(observed: Observation) -> Evidence:
    """What a report shows of an observation that failed a check: enough to send the request again."""
    shown = _shown(_outline(observed))
    if observed.exchange is None:
        return shown
    request = observed.exchange.request
    body = request.body[:BODY_SHOWN].decode("utf-8", "replace")
    return replace(shown, headers=tuple(request.headers), body=body)


class _Addresses:
    """What answers gave to one TPP: addresses with their query, and ids, the oldest dropped."""

    def __init__(self) -> None:
        self.addresses: OrderedDict[str, None] = OrderedDict()
        self.ids: OrderedDict[str, None] = OrderedDict()
        self.links = Links(self.addresses, self.ids)

    def learn(self, body: bytes) -> None:
        """Take every link and id out of an answer."""
        for href in _LINKS.findall(body):
            self._keep(self.addresses, _path(href.decode("utf-8", "replace")))
        for identity in _IDS.findall(body):
            self._keep(self.ids, identity.decode("utf-8", "replace"))

    def _keep(self, where: OrderedDict[str, None], text: str) -> None:
        where[text] = None
        if len(where) > MOST_LINKS:
            where.popitem(last=False)


def _path(href: str) -> str:
    """The path and query of a link, without what `links: absolute` and named banks put in front."""
    at = href.find("/v1/")
    return href[at:] if at > 0 else href


@dataclass(slots=True, eq=False)
class _Row:
    """What observations with the same static facts concern.

    `passed`: clauses that each of them passes; `seeing`: further clauses whose occasion they may be, each with what is
    left to test of `seen` (None: nothing); `deciding`: clauses of which they may decide an occasion.
    """

    passed: tuple[Record, ...]
    seeing: tuple[tuple[Fits | None, tuple[_Machine, ...]], ...]
    deciding: tuple[_Machine, ...]


class Auditor:
    """Judges one bank's TPPs by the checks; not for several threads."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self.checks = tuple(checks)
        self._start()

    def _start(self) -> None:
        self.records = {check.check: Record() for check in self.checks}
        self._machines = [
            _Machine(check, clause, self.records[check.check]) for check in self.checks for clause in check.expect
        ]
        self._rows: dict[tuple[Any, ...], _Row] = {}
        self._addresses: dict[str, _Addresses] = {}
        self.observed = 0

    def forget(self) -> None:
        """Begin again, as after a reset or `DELETE /_emulator/conformance`."""
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
            values={},
            exchange=exchange,
            links=known.links,
        )
        self.observe(observed)
        # A status repeats the links of its creation; all other answers may give new ones.
        if 200 <= exchange.status < 300 and not call.operation.id.endswith("Status"):
            body = exchange.response.body if exchange.response is not None else b""
            known.learn(body[-END_OF_PAGE:] if call.operation.id in PAGES else body)

    def change(self, event: str, tpp: str | None, at: str, values: dict[str, Any], *, received: float) -> None:
        """Judge a change of the bank, or what a browser did; `at`: a stamp of bank time."""
        self.observe(Observation(event, at=moment(at).timestamp(), received=received, tpp=tpp, values=values))

    def observe(self, observed: Observation) -> None:
        """Show an observation to every clause that may take note of it."""
        self.observed += 1
        key = static_key(observed)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._row(observed)
        for machine in row.deciding:
            if machine.open:
                machine.decide(observed)
        for record in row.passed:
            record.passed += 1
        for seen, machines in row.seeing:
            if seen is None or seen(observed):
                for machine in machines:
                    machine.occur(observed)

    def _row(self, observed: Observation) -> _Row:
        """The row of observations with the same static facts as this one."""
        nobody = observed.tpp is None and observed.event == "request"
        passed: list[Record] = []
        seeing: list[tuple[Fits | None, tuple[_Machine, ...]]] = []
        for check in self.checks:
            # Where nobody's signature holds, nothing but the signature can be judged.
            left = None if nobody and check.group != "signing" else remaining(check.seen, observed)
            if left is None:
                continue
            machines = [machine for machine in self._machines if machine.check is check]
            if not left:
                certain = [machine for machine in machines if machine.always(observed)]
                passed += [machine.record for machine in certain]
                machines = [machine for machine in machines if machine not in certain]
            if machines:
                seeing.append((compiled({**left, "event": observed.event}) if left else None, tuple(machines)))
        deciding = () if nobody else tuple(machine for machine in self._machines if machine.may_decide(observed))
        return _Row(tuple(passed), tuple(seeing), deciding)

    def verdicts(
        self, now: float, received: float, *, over: bool = False, beliefs: Mapping[str, Belief] | None = None
    ) -> Mapping[str, Record]:
        """What is known of each check at `now` (bank time in seconds) and `received` (real time).

        `over`: no more will come; `beliefs`: what the TPP believes of each payment and account, by id.
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
        """The payments and the accounts about which checks want to know what the TPP believes."""
        payments: set[str] = set()
        accounts: set[str] = set()
        for machine in self._machines:
            if machine.word == "claim":
                wanted = payments if machine.clause.by == ["payment"] else accounts
                wanted.update(str(key[1]) for key in machine.open if key[1] is not None)
        return payments, accounts
