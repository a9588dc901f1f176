"""Real processes on a real PostgreSQL while things fail: was any answer wrong, anything lost, doubled or unbalanced?

`python -m tests.postgres.jepsen --seconds 600` runs all faults for that long and prints what it found; the status is 0
where nothing is wrong. Named after the method of jepsen.io: clients note what they asked and were answered, faults
happen meanwhile, and a checker judges the notes afterwards (tests/postgres/history.py).
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import threading
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from emulator.client.clients import TppClient, TppResponse
from tests.known_state import KARI
from tests.postgres.banks import BankOwner, SandboxOwner
from tests.postgres.cluster import Cluster, Node, NodeFailed, ask, cluster, control, eventually
from tests.postgres.consents import ConsentOwner
from tests.postgres.history import (
    REFUSED,
    Creation,
    EventStream,
    Operation,
    Problem,
    Walk,
    judge_creations,
    judge_events,
    judge_money,
    judge_payments,
    judge_walks,
)
from tests.postgres.owner import OwnBank, Site
from tests.postgres.pushes import PushOwner
from tests.postgres.server import PostgreSQL, own_folder, pgbouncer
from tests.postgres.signing import SigningOwner

ACCOUNT = "99901000014"
PRODUCT = "/v1/payments/instant-norwegian-domestic-credit-transfers-straks"
CLIENTS = 16
OWNERS: tuple[type[OwnBank], ...] = (BankOwner, SandboxOwner, ConsentOwner, SigningOwner, PushOwner)
RECENT = 12  # payments that all clients work on at a time
PAGE = 40  # transactions
SERVICE = 5.0  # seconds from the end of a fault until every process takes writes again
QUIET = 1.0  # seconds between the recovery from a fault and the next one
ANSWER = 20.0  # seconds until a client gives up; the balancer does before
SLOWEST = 8  # times as long a run may take on a machine that has much else to do
LAST = 20.0  # seconds until every event stream shows what was done last
FLAGS = ("--allow-notify", "127.0.0.1")
OPTIONS = ("wal_retrieve_retry_interval=200ms", "max_wal_senders=5")

# How often a client does what, of 100.
MIX = {"create": 12, "read": 45, "approve": 12, "advance": 18, "cancel": 3, "repeat": 4, "ledger": 6, "walk": 1}


@dataclass(frozen=True, slots=True)
class Recovery:
    """How long it took after a fault until every process took writes, and what they answered meanwhile."""

    seconds: float
    answers: Sequence[str]


@dataclass
class Notes:
    """What all clients saw. `at()` is in seconds since the start."""

    started: float = field(default_factory=monotonic)
    operations: list[Operation] = field(default_factory=list)
    creations: list[Creation] = field(default_factory=list)
    ledgers: list[tuple[float, bool, dict[str, str]]] = field(default_factory=list)
    recoveries: list[tuple[str, Recovery]] = field(default_factory=list)
    walks: list[Walk] = field(default_factory=list)
    references: dict[str, str] = field(default_factory=dict)  # by payment
    problems: list[Problem] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # of the test itself, which say nothing of the bank
    answers: Counter[str] = field(default_factory=Counter)
    own: Mapping[str, int] = field(default_factory=dict)  # operations of the clients with banks of their own
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT))
    over: threading.Event = field(default_factory=threading.Event)
    shown: threading.Event = field(default_factory=threading.Event)  # every event stream has all that was done

    def at(self) -> float:
        return monotonic() - self.started


class Client(threading.Thread):
    """A TPP and its customer, one request after the other until the run is over.

    Every other client asks one process only: one that was stopped is asked the moment it goes on, by somebody who has
    asked nobody else meanwhile.
    """

    def __init__(self, number: int, running: Cluster, notes: Notes, session: dict[str, str], seed: int) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.notes = notes
        self._asked: Cluster | Node = running.nodes[number // 2 % len(running.nodes)] if number % 2 else running
        self._identity = running.demo
        self._session = session
        self._tpp: TppClient | None = None
        self.account = session["account"]
        self.chooser = random.Random(seed)
        self.created: list[tuple[str, str, str]] = []  # X-Request-ID, reference, payment

    @property
    def url(self) -> str:
        """Where the client asks; a process that was started again has another port."""
        return self._asked.url

    @property
    def tpp(self) -> TppClient:
        if self._tpp is None or self._tpp.base_url != self.url:
            self._tpp = TppClient(self.url, self._identity, timeout=ANSWER)
            self._tpp.use_session(self._session)
        return self._tpp

    def run(self) -> None:
        try:
            while not self.notes.over.is_set():
                (kind,) = self.chooser.choices(list(MIX), list(MIX.values()))
                getattr(self, kind)()
        except Exception as error:  # of the test itself: the run must not look fine
            self.notes.failures.append(f"{self.name}: {type(error).__name__}: {error}")
            raise

    def sent(self, method: str, path: str, **options: Any) -> TppResponse | None:
        """A signed request; None where no answer came."""
        try:
            answer = self.tpp.request(method, path, **options)
        except (OSError, HTTPException):
            self.notes.answers["none"] += 1
            self.notes.over.wait(0.05)  # a process that was killed refuses at once
            return None
        self.counted(answer.status, answer.text)
        return answer

    def asked(self, path: str) -> tuple[int, Any] | None:
        """A change by the control interface; None where no answer came."""
        try:
            status, answer = ask(self.url, "POST", path, timeout=ANSWER)
        except (OSError, HTTPException, ValueError):
            self.notes.answers["none"] += 1
            self.notes.over.wait(0.05)
            return None
        self.counted(status, answer)
        return status, answer

    def counted(self, status: int, text: Any) -> None:
        self.notes.answers[str(status)] += 1
        if status >= 500 and status != 503:
            self.notes.problems.append(Problem("answer", f"{self.name}: {status} {text}"))

    def noted(self, kind: str, payment: str, began: float, answer: tuple[int, str | None] | None) -> None:
        """Note an operation: its status code and what the payment's status was, None where no answer came."""
        ended = self.notes.at()
        if answer is not None and answer[0] == 503:
            return  # nothing has changed; if it has, later reads show it
        result = None if answer is None else answer[1] if answer[0] < 300 else REFUSED
        self.notes.operations.append(Operation(kind, payment, began, ended, result, self.name))

    def payment(self) -> str | None:
        with suppress(IndexError):
            return self.chooser.choice(self.notes.recent)
        return None

    def create(self) -> str | None:
        """A payment, asked for with the same X-Request-ID until there is an answer; its id if there is one."""
        reference = f"{self.name} {len(self.notes.creations)} {uuid.uuid4()}"
        request_id = str(uuid.uuid4())
        began = self.notes.at()
        payment = self.initiated(request_id, reference, attempts=8)
        self.notes.creations.append(Creation(reference, () if payment is None else (payment,)))
        if payment is not None:
            self.notes.references[payment] = reference
            self.noted("create", payment, began, (201, "RCVD"))
            self.created.append((request_id, reference, payment))
            self.notes.recent.append(payment)
        return payment

    def initiated(self, request_id: str, reference: str, *, attempts: int) -> str | None:
        body = {
            "instructedAmount": {"amount": "0.01", "currency": "NOK"},
            "creditorName": "Even Eksempel",
            "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
            "creditorAddress": {"country": "NO"},
            "debtorAccount": {"bban": ACCOUNT, "currency": "NOK"},
            "remittanceInformationUnstructured": reference,
        }
        for _ in range(attempts):
            answer = self.sent("POST", PRODUCT, json=body, headers={"X-Request-ID": request_id})
            if answer is not None and answer.status == 201:
                return str(answer.json()["paymentId"])
            if answer is not None and answer.status != 503:
                text = f"{self.name}: a creation was answered {answer.status} {answer.text}"
                self.notes.problems.append(Problem("answer", text))
                return None
            if self.notes.over.wait(0.2):
                break
        return None

    def repeat(self) -> None:
        """A creation that was answered, again: the same payment."""
        if self.created:
            request_id, reference, payment = self.chooser.choice(self.created)
            again = self.initiated(request_id, reference, attempts=1)
            if again is not None:
                self.notes.creations.append(Creation(reference, (payment, again)))

    def read(self) -> None:
        if (payment := self.payment()) is not None:
            began = self.notes.at()
            answer = self.sent("GET", f"{PRODUCT}/{payment}/status")
            shown = None
            if answer is not None:
                shown = (answer.status, answer.json()["transactionStatus"] if answer.status == 200 else None)
            self.noted("read", payment, began, shown)

    def cancel(self) -> None:
        if (payment := self.payment()) is not None:
            began = self.notes.at()
            answer = self.sent("DELETE", f"{PRODUCT}/{payment}")
            self.noted("cancel", payment, began, None if answer is None else (answer.status, "CANC"))

    def approve(self) -> None:
        if (payment := self.payment()) is not None:
            began = self.notes.at()
            answer = self.asked(f"/_emulator/sca/{payment}/approve")
            self.noted("approve", payment, began, None if answer is None else (answer[0], "ACTC"))

    def advance(self) -> None:
        if (payment := self.payment()) is not None:
            began = self.notes.at()
            answer = self.asked(f"/_emulator/payments/{payment}/advance")
            shown = None if answer is None else (answer[0], answer[1].get("transactionStatus"))
            self.noted("advance", payment, began, shown)

    def ledger(self) -> None:
        try:
            status, answer = ask(self.url, "GET", "/_emulator/ledger", timeout=ANSWER)
        except (OSError, HTTPException, ValueError):
            return
        if status == 200:
            self.notes.ledgers.append((self.notes.at(), answer["balanced"], answer["totals"]))

    def walk(self) -> None:
        """All transactions of the account, page by page; a walk that is interrupted says nothing."""
        began, pages = self.notes.at(), []
        path: str | None = f"/v1/accounts/{self.account}/transactions?bookingStatus=booked&limit={PAGE}"
        while path is not None:
            answer = self.sent("GET", path)
            if answer is None or answer.status != 200:
                return
            listed = answer.json()["transactions"]
            own = [(one["transactionId"], one["remittanceInformationUnstructured"]) for one in listed["booked"]
                   if one.get("remittanceInformationUnstructured", "").startswith("client ")]  # fmt: skip
            pages.append(own)
            path = listed["_links"].get("next", {}).get("href")
        self.notes.walks.append(Walk(began, pages))


class Watcher(threading.Thread):
    """Reads the event stream of one process: per connection, what it said of payments."""

    def __init__(self, node: Node, notes: Notes) -> None:
        super().__init__(name=f"watcher of {node.name}", daemon=True)
        self.node = node
        self.notes = notes
        self.streams: list[tuple[float, list[tuple[str, str]]]] = []  # began, (payment, status)

    def run(self) -> None:
        try:
            while not self.notes.shown.is_set():
                with suppress(OSError, HTTPException):
                    self.watch()
                self.notes.shown.wait(0.1)
        except Exception as error:  # of the test itself
            self.notes.failures.append(f"{self.name}: {type(error).__name__}: {error}")
            raise

    def watch(self) -> None:
        """One connection, until it breaks."""
        connection = HTTPConnection("127.0.0.1", self.node.target.port, timeout=2)
        connection.request("GET", "/_emulator/events")
        stream = connection.getresponse()
        if stream.status != 200 or not stream.readline():  # the first line comes when events do
            return
        seen: list[tuple[str, str]] = []
        self.streams.append((self.notes.at(), seen))
        while not self.notes.shown.is_set() and (line := stream.readline()):
            if line.startswith(b"data:") and line.endswith(b"\n"):
                event = json.loads(line[5:])
                if event.get("type") == "payment":
                    seen.append((event["id"], event["status"]))

    def has_shown(self, payments: Iterable[str]) -> bool:
        """Whether the stream that is open has told of one of these payments."""
        return bool(self.streams) and not {payment for payment, _ in self.streams[-1][1]}.isdisjoint(payments)

    def problems(self, last: Iterable[str]) -> Iterator[Problem]:
        """What is wrong with the streams, given the payments that were made after everything else."""
        after = frozenset(last)
        for began, seen in self.streams:
            complete = not {payment for payment, _ in seen}.isdisjoint(after)
            yield from judge_events(EventStream(self.name, began, seen, complete), self.notes.operations)


@dataclass
class Nemesis:
    """The one who breaks things: each fault is a context, and ends with it."""

    running: Cluster
    server: PostgreSQL
    chooser: random.Random
    ending: ExitStack
    standby: PostgreSQL | None = None

    def node(self) -> Node:
        """The home of the bank, or any process."""
        if self.chooser.random() < 0.8:
            with suppress(OSError, HTTPException, ValueError, KeyError, TypeError):
                banks = ask(self.running.url, "GET", "/_emulator/banks", timeout=5)[1]["banks"]
                for node in self.running.nodes:
                    if node.way is not None and banks[0]["home"] == f"127.0.0.1:{node.way.port}":
                        return node
        return self.chooser.choice(self.running.nodes)

    @contextmanager
    def kill(self) -> Iterator[None]:
        """kill -9 of a process, which is started again."""
        node = self.node()
        node.kill()
        yield
        node.start()

    @contextmanager
    def end(self) -> Iterator[None]:
        """SIGTERM of a process, which gives its banks back; it is started again."""
        node = self.node()
        status = node.end()
        if status != 0:
            raise NodeFailed(f"{node.name} has ended with status {status}: {node.log()[-2000:]}")
        yield
        node.start()

    @contextmanager
    def stop(self) -> Iterator[None]:
        """SIGSTOP of a process, under load in the middle of a turn; later SIGCONT."""
        node = self.node()
        node.send(signal.SIGSTOP)
        try:
            yield
        finally:
            node.send(signal.SIGCONT)

    @contextmanager
    def restart(self) -> Iterator[None]:
        """PostgreSQL stops in order and starts."""
        self.server.stop()
        yield
        self.server.start()

    @contextmanager
    def crash(self) -> Iterator[None]:
        """PostgreSQL stops at once and recovers."""
        self.server.crash()
        yield
        self.server.start()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Every connection to PostgreSQL is reset, again and again."""
        for _ in range(5):
            self._proxy.cut()
            sleep(0.1)
        yield

    @contextmanager
    def stall(self) -> Iterator[None]:
        """PostgreSQL's network lets nothing through."""
        self._proxy.stall()
        try:
            yield
        finally:
            self._proxy.flow()

    @contextmanager
    def refuse(self) -> Iterator[None]:
        """PostgreSQL takes no connections."""
        self._proxy.refuse()
        try:
            yield
        finally:
            self._proxy.flow()

    @contextmanager
    def part(self) -> Iterator[None]:
        """Every connection between processes is reset, again and again."""
        for _ in range(5):
            for node in self.running.nodes:
                if node.way is not None:
                    node.way.cut()
            sleep(0.1)
        yield

    @contextmanager
    def hold(self) -> Iterator[None]:
        """The network between processes lets nothing through."""
        ways = [node.way for node in self.running.nodes if node.way is not None]
        for way in ways:
            way.stall()
        try:
            yield
        finally:
            for way in ways:
                way.flow()

    @contextmanager
    def promote(self) -> Iterator[None]:
        """The primary is gone at once; its standby takes over, and gets a standby of its own."""
        if self.standby is None:
            raise RuntimeError("there is no standby")
        self.server.crash()
        yield
        self.standby.promote()
        self._proxy.lead_to(self.standby.port)
        self.server = self.standby
        self.follow()

    @contextmanager
    def pair(self) -> Iterator[None]:
        """A process is killed, stopped or ended, and PostgreSQL or a network fails, one after the other or together."""
        node, ends = self.node(), self.chooser.choice(("kill", "stop", "end"))
        other = self.chooser.choice(("crash", "cut", "stall", "restart", "refuse", "part", "hold"))
        early = self.chooser.random() < 0.5
        with ExitStack() as again, ExitStack() as meanwhile:
            if early:
                meanwhile.enter_context(getattr(self, other)())
            if ends == "stop":
                node.send(signal.SIGSTOP)
                again.callback(node.send, signal.SIGCONT)
            else:
                node.kill() if ends == "kill" else node.end()
                again.callback(node.start)
            sleep(self.chooser.uniform(0, 1))
            if not early:
                meanwhile.enter_context(getattr(self, other)())
            yield

    def follow(self) -> None:
        """A new synchronous standby of the server."""
        self.standby = self.server.standby(self.ending.enter_context(own_folder()))
        self.ending.callback(self.standby.crash)

    @property
    def _proxy(self) -> Any:
        return self.running.proxy


# Seconds that each fault lasts.
FAULTS: dict[str, float] = {
    "kill": 0.5, "stop": 6.0, "crash": 1.0, "cut": 0.0, "stall": 4.0, "promote": 0.5, "restart": 0.5, "refuse": 2.0,
    "part": 0.0, "hold": 3.0, "end": 0.2, "pair": 3.2,
}  # fmt: skip


def recovered(running: Cluster, notes: Notes) -> Recovery:
    """Wait until every process takes writes. Each write is a setting that changes nothing."""
    began = monotonic()
    answers: list[str] = []
    for node in running.nodes:
        while True:
            try:
                status, answer = ask(node.url, "PUT", "/_emulator/settings", {"progression": "manual"}, timeout=2)
                text = str(status) if status == 200 else f"{status} {answer}"
            except (OSError, HTTPException, ValueError) as error:
                status, text = 0, f"{type(error).__name__}: {error}"
            answers.append(f"{monotonic() - began:.1f} s {node.name}: {text[:300]}")
            if status == 200:
                break
            if monotonic() > began + 30:
                text = f"{node.name} takes no writes 30 s after a fault: {node.log()[-1500:]}"
                notes.problems.append(Problem("recovery", text))
                return Recovery(monotonic() - began, answers)
            sleep(0.05)
    return Recovery(monotonic() - began, answers)


def run(
    seconds: float,
    *,
    faults: Sequence[str] = tuple(FAULTS),
    seed: int = 1,
    fault: str = "none",
    clients: int = CLIENTS,
    owners: Sequence[type[OwnBank]] = OWNERS,
    say: Callable[[str], None] = lambda text: None,
    least: int = 0,
    pooled: bool = False,
) -> Notes:
    """Load and faults for so many seconds, and until there were `least` operations; then the judgement.

    With `pooled` pgbouncer stands before PostgreSQL. What is wrong with the bank are the `problems` of the notes;
    RuntimeError where the test itself has failed.
    """
    chooser = random.Random(seed)
    with ExitStack() as ending:
        server = PostgreSQL.create(ending.enter_context(own_folder()), options=OPTIONS)
        ending.callback(server.crash)
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        url = server.database()
        port = ending.enter_context(pgbouncer(server)) if pooled else server.port
        running = ending.enter_context(
            cluster(folder, url.replace(f":{server.port}/", f":{port}/"), *FLAGS, fault=fault)
        )
        nemesis = Nemesis(running, server, chooser, ending)
        if "promote" in faults:
            nemesis.follow()
        first = running.nodes[0]  # directly: the first requests of a process may take longer than a balancer waits
        accounts = control(first.url, "GET", "state")["account"]
        control(first.url, "PUT", "settings", {"progression": "manual"})
        session = control(first.url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI})
        session["account"] = next(account["id"] for account in accounts if account["bban"] == ACCOUNT)
        notes = Notes()
        threads = [Client(n, running, notes, session, seed * 100 + n) for n in range(clients)]
        site = Site(lambda: running.url, running.demo, notes.over)
        own = [kind(n, site, seed) for n, kind in enumerate(owners)]
        watchers = [Watcher(node, notes) for node in running.nodes]
        for one in own:
            one.begin()
        for thread in (*threads, *own, *watchers):
            thread.start()
        last: list[str] = []
        try:
            try:
                _break(nemesis, notes, seconds=seconds, faults=faults, say=say, least=least)
            except NodeFailed as error:
                notes.problems.append(Problem("recovery", str(error)))
            notes.over.set()
            for thread in (*threads, *own):
                thread.join(ANSWER + 10)
            for one in own:
                one.end()
            last = _shown(Client(clients, running, notes, session, seed), watchers)
        finally:
            notes.over.set()
            notes.shown.set()
            for thread in (*threads, *watchers):
                thread.join(ANSWER + 10)
        _judge(running, notes)
        notes.problems += [problem for one in own for problem in one.problems]
        notes.failures += [one.failure for one in own if one.failure is not None]
        notes.own = {one.name: one.operations for one in own}
        for watcher in watchers:
            notes.problems += watcher.problems(last)
    if notes.failures:
        raise RuntimeError(f"the test itself has failed: {'; '.join(notes.failures)}")
    return notes


def _shown(client: Client, watchers: Sequence[Watcher]) -> list[str]:
    """Wait until every event stream shows what was done last; the payments of which it shows one.

    There are several, for a stream that had to be opened again shows what came after that.
    """
    last: list[str] = []

    def shown() -> bool:
        if (payment := client.create()) is not None:
            last.append(payment)
        sleep(0.5)
        return all(watcher.has_shown(last) for watcher in watchers)

    try:
        eventually(shown, LAST)
    except AssertionError:
        late = ", ".join(watcher.name for watcher in watchers if not watcher.has_shown(last))
        client.notes.problems.append(Problem("events", f"{late}: none of {last} within {LAST:g} s"))
    return last


def _break(
    nemesis: Nemesis,
    notes: Notes,
    *,
    seconds: float,
    faults: Sequence[str],
    say: Callable[[str], None],
    least: int,
) -> None:
    began = monotonic()

    def goes_on() -> bool:
        after = monotonic() - began
        return after < seconds or (len(notes.operations) < least and after < SLOWEST * seconds)

    tried: set[str] = set()  # each fault comes once, however busy the machine
    sleep(QUIET)
    while goes_on():
        for fault in faults or ("none",):
            if fault in tried and not goes_on():
                break
            tried.add(fault)
            before = len(notes.operations)
            if fault == "none":
                sleep(QUIET)
                continue
            with getattr(nemesis, fault)():
                sleep(FAULTS[fault])
            took = recovered(nemesis.running, notes)
            notes.recoveries.append((fault, took))
            sleep(QUIET)
            say(
                f"{notes.at():7.1f} s  {fault:<8} every process takes writes {took.seconds:.2f} s after it;"
                f" {len(notes.operations) - before} operations meanwhile"
            )


def _judge(running: Cluster, notes: Notes) -> None:
    """Hold what clients saw against what the processes have in the end; the problems are added to the notes."""
    problems = notes.problems
    for fault, took in notes.recoveries:
        if took.seconds > SERVICE:
            answers = "; ".join(took.answers[-12:])
            problems.append(Problem("recovery", f"service again only {took.seconds:.1f} s after {fault}: {answers}"))
    for node in running.nodes:
        log = node.log()
        if "Traceback" in log:
            text = f"{node.name} has logged a traceback: {log[log.index('Traceback') :][:6000]}"
            problems.append(Problem("log", text))
    problems += judge_money(notes.ledgers)
    booked = {notes.references[one.payment]: one.ended for one in notes.operations if one.result == "ACSC"
              and one.payment in notes.references}  # fmt: skip
    problems += judge_walks(notes.walks, booked, {one.reference for one in notes.creations})
    try:
        end = notes.at()
        states = {node.name: control(node.url, "GET", "state") for node in running.nodes}
        ledger = control(running.nodes[0].url, "GET", "ledger")
    except (OSError, HTTPException, AssertionError) as error:
        problems.append(Problem("recovery", f"in the end nobody says what is stored: {error}"))
        problems += judge_payments(notes.operations)
        return
    first = states[running.nodes[0].name]
    for name, state in states.items():
        for kind in first:
            if kind != "meta" and state[kind] != first[kind]:
                text = f"{name} has other documents of kind {kind} than {running.nodes[0].name}"
                problems.append(Problem("divergence", text))
    stored = {one["id"]: one["initiation"]["remittanceInformationUnstructured"] for one in first["payment"]}
    acknowledged = {one.payment for one in notes.operations if one.kind == "create"}
    silent = [Operation("create", payment, 0, end, None, "nobody") for payment in stored if payment not in acknowledged]
    last = [Operation("read", one["id"], end, end, one["status"], "the end") for one in first["payment"]]
    gone = [Operation("read", payment, end, end, REFUSED, "the end") for payment in acknowledged - stored.keys()]
    problems += judge_creations(_one_each(notes.creations), stored)
    problems += judge_payments([*notes.operations, *silent, *last, *gone])
    problems += judge_money([*notes.ledgers[:1], (end, ledger["balanced"], ledger["totals"])])
    problems += _bookings(first)


def _one_each(creations: Sequence[Creation]) -> Iterator[Creation]:
    """The answers to a creation and to its repeats, together."""
    payments: dict[str, list[str]] = {}
    for one in creations:
        payments.setdefault(one.reference, []).extend(one.payments)
    for reference, answered in payments.items():
        yield Creation(reference, tuple(answered))


def _bookings(state: dict[str, Any]) -> Iterator[Problem]:
    """What is paid is booked once on either side, and nothing else is; each history has every step once."""
    booked = Counter(
        (one.get("remittanceInformationUnstructured"), one["amount"].startswith("-"))
        for one in state["transaction"]
        if one["status"] == "booked"
    )
    for payment in state["payment"]:
        reference = payment["initiation"]["remittanceInformationUnstructured"]
        sides = [booked[reference, debit] for debit in (True, False)]
        if sides != ([1, 1] if payment["status"] == "ACSC" else [0, 0]):
            text = f"payment {payment['id']} in {payment['status']} has {sides[0]} debits and {sides[1]} credits"
            yield Problem("doubled" if max(sides) > 1 else "lost" if payment["status"] == "ACSC" else "invented", text)
        statuses = [entry["status"] for entry in payment["history"]]
        if statuses not in (["RCVD", "ACTC", "ACSP", "ACSC"][: len(statuses)], ["RCVD", "CANC"]):
            yield Problem("history", f"payment {payment['id']} has the history {', '.join(statuses)}")


def report(notes: Notes) -> str:
    """The figures of a run, and its problems."""
    slowest: dict[str, float] = {}
    for fault, took in notes.recoveries:
        slowest[fault] = max(took.seconds, slowest.get(fault, 0.0))
    pages = sum(len(walk.pages) for walk in notes.walks)
    lines = [
        f"{len(notes.operations)} operations on {len({one.payment for one in notes.operations})} payments,"
        f" {len(notes.ledgers)} ledgers, {len(notes.walks)} walks of {pages} pages;"
        f" answers {dict(notes.answers)}",
        f"operations on banks of their own: {dict(notes.own)}",
        f"{len(notes.recoveries)} faults; slowest service again: "
        + ", ".join(f"{fault} {took:.1f} s" for fault, took in slowest.items()),
        f"{len(notes.problems)} problems",
    ]
    return "\n".join([*lines, *map(str, notes.problems[:50])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="repeatable; default: all")
    kinds = {kind.kind: kind for kind in OWNERS}
    parser.add_argument("--clients", choices=list(kinds), help="four of this kind, and few others")
    asked = parser.parse_args()
    clients, owners = (CLIENTS, OWNERS) if asked.clients is None else (2, (kinds[asked.clients],) * 4)
    print(f"seed {asked.seed}")
    notes = run(
        asked.seconds,
        seed=asked.seed,
        faults=asked.fault or tuple(FAULTS),
        clients=clients,
        owners=owners,
        say=lambda line: print(line, flush=True),
    )
    print(report(notes))
    return 1 if notes.problems else 0


if __name__ == "__main__":
    sys.exit(main())
