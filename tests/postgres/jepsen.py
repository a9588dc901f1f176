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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from emulator.client.tpp import Response, TppClient
from tests.postgres.cluster import EMULATOR, Cluster, Node, ask, cluster, control
from tests.postgres.history import (
    REFUSED,
    Creation,
    Operation,
    judge_creations,
    judge_money,
    judge_payments,
    judge_positions,
)
from tests.postgres.server import PostgreSQL, own_folder

KARI = "14888520059"
PRODUCT = "/v1/payments/instant-norwegian-domestic-credit-transfers-straks"
CLIENTS = 16
RECENT = 12  # payments that all clients work on at a time
SERVICE = 5.0  # seconds from the end of a fault until every process takes writes again
QUIET = 1.5  # seconds between the recovery from a fault and the next one
ANSWER = 20.0  # seconds until a client gives up; the balancer does before
OPTIONS = ("wal_retrieve_retry_interval=200ms", "max_wal_senders=5")

# How often a client does what, of 100.
MIX = {"create": 12, "read": 45, "approve": 12, "advance": 18, "cancel": 3, "repeat": 4, "ledger": 6}


@dataclass
class Notes:
    """What all clients saw. `at()` is in seconds since the start."""

    started: float = field(default_factory=monotonic)
    operations: list[Operation] = field(default_factory=list)
    creations: list[Creation] = field(default_factory=list)
    ledgers: list[tuple[float, bool, dict[str, str]]] = field(default_factory=list)
    recoveries: list[tuple[str, float]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT))
    over: threading.Event = field(default_factory=threading.Event)

    def at(self) -> float:
        return monotonic() - self.started


class Client(threading.Thread):
    """A TPP and its customer, one request after the other until the run is over."""

    def __init__(self, number: int, running: Cluster, notes: Notes, session: dict[str, str], seed: int) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.notes = notes
        self.url = running.url
        self.tpp = TppClient(running.url, running.demo, timeout=ANSWER)
        self.tpp.psu_id, self.tpp.session_id = session["psuId"], session["tppSessionId"]
        self.chooser = random.Random(seed)
        self.created: list[tuple[str, str, str]] = []  # X-Request-ID, reference, payment

    def run(self) -> None:
        try:
            while not self.notes.over.is_set():
                (kind,) = self.chooser.choices(list(MIX), list(MIX.values()))
                getattr(self, kind)()
        except Exception as error:  # of the test itself: the run must not look fine
            self.notes.problems.append(f"{self.name}: {type(error).__name__}: {error}")
            raise

    def sent(self, method: str, path: str, **options: Any) -> Response | None:
        """A signed request; None where no answer came."""
        try:
            answer = self.tpp.request(method, path, **options)
        except (OSError, HTTPException):
            self.notes.answers["none"] += 1
            return None
        self.counted(answer.status, answer.text)
        return answer

    def asked(self, path: str) -> tuple[int, Any] | None:
        """A change by the control interface; None where no answer came."""
        try:
            status, answer = ask(self.url, "POST", path, timeout=ANSWER)
        except (OSError, HTTPException, ValueError):
            self.notes.answers["none"] += 1
            return None
        self.counted(status, answer)
        return status, answer

    def counted(self, status: int, text: Any) -> None:
        self.notes.answers[str(status)] += 1
        if status >= 500 and status != 503:
            self.notes.problems.append(f"{self.name}: {status} {text}")

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

    def create(self) -> None:
        """A payment, asked for with the same X-Request-ID until there is an answer."""
        reference = f"{self.name} {len(self.notes.creations)} {uuid.uuid4()}"
        request_id = str(uuid.uuid4())
        began = self.notes.at()
        payment = self.initiated(request_id, reference, attempts=8)
        self.notes.creations.append(Creation(reference, () if payment is None else (payment,)))
        if payment is not None:
            self.noted("create", payment, began, (201, "RCVD"))
            self.created.append((request_id, reference, payment))
            self.notes.recent.append(payment)

    def initiated(self, request_id: str, reference: str, *, attempts: int) -> str | None:
        body = {
            "instructedAmount": {"amount": "0.01", "currency": "NOK"},
            "creditorName": "Even Eksempel",
            "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
            "creditorAddress": {"country": "NO"},
            "debtorAccount": {"bban": "99901000014", "currency": "NOK"},
            "remittanceInformationUnstructured": reference,
        }
        for _ in range(attempts):
            answer = self.sent("POST", PRODUCT, json=body, headers={"X-Request-ID": request_id})
            if answer is not None and answer.status == 201:
                return str(answer.json()["paymentId"])
            if answer is not None and answer.status != 503:
                self.notes.problems.append(f"{self.name}: a creation was answered {answer.status} {answer.text}")
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


class Watcher(threading.Thread):
    """Reads the event stream of one process: per connection, what it said of payments."""

    def __init__(self, node: Node, notes: Notes) -> None:
        super().__init__(name=f"watcher of {node.name}", daemon=True)
        self.node = node
        self.notes = notes
        self.streams: list[tuple[float, float, list[tuple[str, str]]]] = []  # began, ended, (payment, status)

    def run(self) -> None:
        while not self.notes.over.is_set():
            seen: list[tuple[str, str]] = []
            began = None
            with suppress(OSError, HTTPException, ValueError):
                connection = HTTPConnection("127.0.0.1", self.node.target.port, timeout=2)
                connection.request("GET", "/_emulator/events")
                stream = connection.getresponse()
                began = self.notes.at()
                while not self.notes.over.is_set() and (line := stream.readline()):
                    if line.startswith(b"data:"):
                        event = json.loads(line[5:])
                        if event.get("type") == "payment":
                            seen.append((event["id"], event["status"]))
                connection.close()
            if began is None:
                sleep(0.1)
            else:
                self.streams.append((began, self.notes.at(), seen))

    def problems(self) -> Iterator[str]:
        order = ["RCVD", "ACTC", "ACSP", "ACSC"]
        for _, _, seen in self.streams:
            by_payment: dict[str, list[str]] = {}
            for payment, status in seen:
                by_payment.setdefault(payment, []).append(status)
            for payment, statuses in by_payment.items():
                places = [1 if status == "CANC" else order.index(status) for status in statuses]
                yield from judge_positions(f"{self.name}, payment {payment} {statuses}", places)


@dataclass
class Nemesis:
    """The one who breaks things: each fault is a context, and ends with it."""

    running: Cluster
    server: PostgreSQL
    chooser: random.Random
    ending: ExitStack
    standby: PostgreSQL | None = None

    def node(self) -> Node:
        return self.chooser.choice(self.running.nodes)

    @contextmanager
    def kill(self) -> Iterator[None]:
        """kill -9 of a process, which is started again."""
        node = self.node()
        node.kill()
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
}  # fmt: skip


def recovered(running: Cluster, notes: Notes) -> float:
    """Wait until every process takes writes; seconds since now. Each write is a setting that changes nothing."""
    began = monotonic()
    for node in running.nodes:
        while True:
            with suppress(OSError, HTTPException, ValueError):
                if ask(node.url, "PUT", "/_emulator/settings", {"progression": "manual"}, timeout=2)[0] == 200:
                    break
            if monotonic() > began + 30:
                notes.problems.append(f"{node.name} takes no writes 30 s after a fault: {node.log()[-1500:]}")
                return monotonic() - began
            sleep(0.05)
    return monotonic() - began


def run(
    seconds: float,
    *,
    faults: Sequence[str] = tuple(FAULTS),
    seed: int = 1,
    program: Sequence[str] = EMULATOR,
    clients: int = CLIENTS,
    say: Callable[[str], None] = lambda text: None,
    rounds: int | None = None,
) -> Notes:
    """Load and faults for so many seconds (or `rounds` of all faults), then the judgement: `problems` of the notes."""
    chooser = random.Random(seed)
    with ExitStack() as ending:
        server = PostgreSQL.create(ending.enter_context(own_folder()), options=OPTIONS)
        ending.callback(server.crash)
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        url = server.database()
        running = ending.enter_context(cluster(folder, url, program=program))
        nemesis = Nemesis(running, server, chooser, ending)
        if "promote" in faults:
            nemesis.follow()
        control(running.url, "PUT", "settings", {"progression": "manual"})
        session = control(running.url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI})
        notes = Notes()
        threads: list[threading.Thread] = [Client(n, running, notes, session, seed * 100 + n) for n in range(clients)]
        watchers = [Watcher(node, notes) for node in running.nodes]
        for thread in (*threads, *watchers):
            thread.start()
        try:
            _break(nemesis, notes, seconds=seconds, faults=faults, say=say, rounds=rounds)
        except RuntimeError as error:  # a process or PostgreSQL does not start again
            notes.problems.append(str(error))
        finally:
            notes.over.set()
            for thread in (*threads, *watchers):
                thread.join(ANSWER + 10)
        try:
            _judge(running, notes, watchers)
        except (OSError, HTTPException, AssertionError) as error:
            notes.problems.append(f"in the end nobody says what is stored: {error}")
        notes.problems += [
            f"{node.name} has logged a traceback: {node.log()[node.log().index('Traceback') :][:2000]}"
            for node in running.nodes
            if "Traceback" in node.log()
        ]
    return notes


def _break(
    nemesis: Nemesis,
    notes: Notes,
    *,
    seconds: float,
    faults: Sequence[str],
    say: Callable[[str], None],
    rounds: int | None,
) -> None:
    until = monotonic() + seconds
    sleep(QUIET)
    turn = 0
    while monotonic() < until and (rounds is None or turn < rounds):
        turn += 1
        for fault in faults or ("none",):
            if monotonic() > until:
                break
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
                f"{notes.at():7.1f} s  {fault:<8} every process takes writes {took:.2f} s after it;"
                f" {len(notes.operations) - before} operations meanwhile"
            )


def _judge(running: Cluster, notes: Notes, watchers: Sequence[Watcher]) -> None:
    """Hold what clients saw against what the processes have in the end; the problems are added to the notes."""
    for fault, took in notes.recoveries:
        if took > SERVICE:
            notes.problems.append(f"service again only {took:.1f} s after {fault}")
    states = {node.name: control(node.url, "GET", "state") for node in running.nodes}
    end = notes.at()
    first = states[running.nodes[0].name]
    for name, state in states.items():
        for kind in first:
            if kind != "meta" and state[kind] != first[kind]:
                notes.problems.append(f"{name} has other documents of kind {kind} than {running.nodes[0].name}")
    stored = {one["id"]: one["initiation"]["remittanceInformationUnstructured"] for one in first["payment"]}
    acknowledged = {one.payment for one in notes.operations if one.kind == "create"}
    silent = [Operation("create", payment, 0, end, None, "nobody") for payment in stored if payment not in acknowledged]
    last = [Operation("read", one["id"], end, end, one["status"], "the end") for one in first["payment"]]
    notes.problems += judge_creations(_one_each(notes.creations), stored)
    notes.problems += judge_payments([*notes.operations, *silent, *last])
    ledger = control(running.url, "GET", "ledger")
    notes.problems += judge_money([*notes.ledgers, (end, ledger["balanced"], ledger["totals"])])
    notes.problems += _bookings(first)
    for watcher in watchers:
        notes.problems += watcher.problems()


def _one_each(creations: Sequence[Creation]) -> Iterator[Creation]:
    """The answers to a creation and to its repeats, together."""
    payments: dict[str, list[str]] = {}
    for one in creations:
        payments.setdefault(one.reference, []).extend(one.payments)
    for reference, answered in payments.items():
        yield Creation(reference, tuple(answered))


def _bookings(state: dict[str, Any]) -> Iterator[str]:
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
            yield f"payment {payment['id']} in {payment['status']} has {sides[0]} debits and {sides[1]} credits"
        statuses = [entry["status"] for entry in payment["history"]]
        if statuses not in (["RCVD", "ACTC", "ACSP", "ACSC"][: len(statuses)], ["RCVD", "CANC"]):
            yield f"payment {payment['id']} has the history {', '.join(statuses)}"


def report(notes: Notes) -> str:
    """The figures of a run, and its problems."""
    slowest: dict[str, float] = {}
    for fault, took in notes.recoveries:
        slowest[fault] = max(took, slowest.get(fault, 0.0))
    lines = [
        f"{len(notes.operations)} operations on {len({one.payment for one in notes.operations})} payments,"
        f" {len(notes.ledgers)} ledgers; answers {dict(notes.answers)}",
        f"{len(notes.recoveries)} faults; slowest service again: "
        + ", ".join(f"{fault} {took:.1f} s" for fault, took in slowest.items()),
        f"{len(notes.problems)} problems",
    ]
    return "\n".join([*lines, *notes.problems[:50]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="repeatable; default: all")
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    notes = run(
        asked.seconds, seed=asked.seed, faults=asked.fault or tuple(FAULTS), say=lambda line: print(line, flush=True)
    )
    print(report(notes))
    return 1 if notes.problems else 0


if __name__ == "__main__":
    sys.exit(main())
