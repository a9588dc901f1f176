"""One run: arms the bank, reacts to each request of the TPP, acts as the customer, lets bank time pass, and records."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from emulator.api.log import Exchange
from emulator.api.service import BankService
from emulator.assemble.local_banks import LocalBanks
from emulator.bank.accounts.transactions import DriftingFeed
from emulator.bank.authentication import sca_control
from emulator.bank.bank import Bank, Event
from emulator.bank.clock import OSLO, date_time, moment, oslo_date, real_now, stamp
from emulator.bank.customers import people
from emulator.bank.documents import Payment, Restored, Sca
from emulator.bank.errors import BankError
from emulator.bank.formats import END
from emulator.bank.kinds import ACCOUNT, BASKET, NOTIFICATION, PAYMENT, SCA, TRANSACTION
from emulator.bank.payment import progression
from emulator.bank.scheme.transitions import FINAL
from emulator.conformance.observer import WINDOW, booked, conformance_of
from emulator.conformance.runner import persons_of
from emulator.control.operation import BankSpec
from emulator.explore.faults import ChangeFault, kinds
from emulator.explore.schedule import Begins, FaultSchedule, rules_of, settings_of
from emulator.scenario import durations, loader, target

TPP = "explored"
DATE_SKEW = 10**6  # seconds: bank time is not that of the TPP
EACH_REQUEST = timedelta(seconds=2)  # of bank time, which each request lets pass
PAUSE = timedelta(seconds=60)  # that passes after an answer 503 or 429 without Retry-After
PATIENCE = 8  # reads of a status without news from the bank, after which time jumps to what is due
POLLS = frozenset(
    {
        *("getPaymentStatus", "getPayment", "getAuthorisation", "getCancellationAuthorisation"),
        *("getSigningBasketStatus", "getSigningBasket", "getSigningBasketAuthorisation", "getConsentStatus"),
    }
)
STATUS_READS = ("getPaymentStatus", "getPayment")
LATE_REQUESTS = 3  # a late customer approves after that many more requests,
LATE_WAITS = 6  # or when the TPP has only waited so often
LATE = timedelta(minutes=5)  # ... and that much bank time
ENDLESS = 100  # requests for the same and each task, without news from the bank, after which a TPP sends for ever
MOST_REQUESTS = 2000  # of a run
MOST_DUE = 500  # steps of bank time at the end of a run
BEFORE_MIDNIGHT = timedelta(seconds=4)  # a payment that is approved then is booked on the next day
MOST_PEOPLE = 100
SPOILING = frozenset(kind.name for kind in kinds().values() if kind.spoils)

Side = Literal["tpp", "bank", "customer", "time", "fault"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the timeline: who did what at which bank time; `fault`: it is one of the schedule."""

    at: str
    side: Side
    text: str
    fault: bool = False


@dataclass(slots=True)
class AccountTruth:
    """What was true of an account when the TPP read it: the balance of the last whole answer, and the numbers of
    bookings between which its claim may lie, over all whole answers."""

    balances: list[Decimal] = field(default_factory=list)
    fewest: int | None = None
    most: int = 0


@dataclass(slots=True)
class _Waiting:
    """An SCA whose page is open: what the customer will do, and after how many requests."""

    token: str
    act: str
    since: int
    waits: int = 0


class Run:
    """A schedule on a bank. `news` is set whenever there may be something for the customer or the driver to do.

    `banks` gives it a bank in its known state, whose clock stands still, and the TPP that all runs share. `restarts`:
    the TPP can be killed; from the request after which it is, until it is started again, it gets no answer.

    What happens after a request happens on the bank's thread. There the driver (`judge.Process`) calls `act`, `wait`,
    `elapse`, `leave`, `restarted` and `finish`, too; elsewhere it only looks at `requests`, `killed` and `endless`.
    The judge reads the rest once the run is `over`.
    """

    def __init__(self, schedule: FaultSchedule, banks: LocalBanks, name: str, *, restarts: bool = False) -> None:
        self.schedule = schedule
        self.name = name
        self.news = threading.Event()
        self.rows: list[Row] = []
        self.requests = 0
        self.answers = 0  # requests that were answered whole, in time for the TPP to read it
        self.unseen: set[int] = set()  # the others by their numbers in the log: the TPP does not know their answers
        self.created: dict[int, str] = {}  # payments by the numbers of the requests that created them
        self.accepted = False  # whether the bank has accepted a request
        self.refused = ""  # the last request before that
        # payment -> `answers` when it became final, or was asked for in vain after that: the judge compares them
        self.ended: dict[str, int] = {}
        self.known: set[str] = set()  # payments whose final status the TPP has read
        self.killed = False  # the command is to be killed now
        self.endless: str | None = None
        self.withdrawn = False  # whether a consent was withdrawn
        self.declined: dict[str, str] = {}  # payment or basket -> bank time at which the customer declined it
        self.accounts: dict[str, AccountTruth] = {}
        self.left = False  # the TPP is silent and nothing is due: what it still sends is not judged
        self.over = False
        self._counts: Counter[str] = Counter()  # requests by operation
        self._quiet = 0  # reads of a status since something last changed at the bank
        self._still: Counter[str] = Counter()  # all requests since then, by method and address
        self.waiting: list[_Waiting] = []  # pages that the customer has open
        self._seen: set[str] = set()  # SCAs whose page was opened
        self._changes = [fault for fault in schedule.faults if isinstance(fault, ChangeFault)]
        self._passing = list(schedule.time)
        self._restarts = restarts
        self._now = ""
        self.url = f"{banks.url}/banks/{name}"
        self.call = banks.call
        self._banks = banks
        self.call(self._open)

    # Preparing

    def _open(self) -> None:
        registry = self._banks.application.registry
        self.tpp = registry.authority.find(TPP) or registry.authority.issue(TPP)
        settings = {"links": "absolute", "date_skew": DATE_SKEW, **settings_of(self.schedule)}
        begins = stamp(_beginning(self.schedule.begins, real_now()))

        def prepare(service: BankService, _undo: ExitStack) -> None:
            service.bank.change_settings(settings)

        restored: Restored = {"now": begins, "clock": "frozen", "settings": settings}
        spec = BankSpec(seed=self.schedule.seed, restored=restored, prepare=prepare)
        self.service = registry.make(self.name, spec)
        self._bank = bank = self.service.bank  # for use on its thread only
        self.person, self.other, self.debtor = persons_of(people.listing(bank, MOST_PEOPLE), "PRIVATE")
        self._apply("schedule", rules_of(self.schedule))
        observer = conformance_of(self.service)
        observer.clock = lambda: bank.clock.now().timestamp()  # rates count bank time
        observer.on_request = self._requested
        observer.on_page = self._opened
        self._end_watching = bank.watch(self._told)
        self._now = bank.clock.stamp()
        for fault in self.schedule.faults:
            if fault not in self._changes:
                self._row("fault", fault.described(), fault=True)

    def _apply(self, name: str, rules: Sequence[Mapping[str, Any]] = (), **start: Any) -> None:
        """Apply a scenario, in place of an earlier one of this name."""
        scenario = loader.from_value({"scenario": name, "start": {"from": "current", **start}, "rules": [*rules]})
        target.apply(scenario, self._banks.application.scenario_target(self.service))

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which the TPP is run."""
        return {
            "BANK_URL": self.url,
            "BANK_RUN": self.name,
            "BANK_TASK": " ".join(self.schedule.tasks),
            "BANK_CONTEXT": "PRIVATE",
            "BANK_NATIONAL_ID": self.person,
            "BANK_DEBTOR": self.debtor,
        }

    # The timeline

    def _row(self, side: Side, text: str, *, fault: bool = False, at: str | None = None) -> None:
        self.rows.append(Row(date_time(at or self._now), side, text, fault))

    def _told(self, event: Event | None) -> None:
        """An event of the bank: it is a row of the timeline, and shows that something still happens."""
        if event is None or self.over:
            return
        kind, status = event["type"], event.get("status", "")
        if kind in ("payment", "consent", "basket"):
            self._quiet = 0
            self._still.clear()
            self.withdrawn |= status in ("revoked", "terminated")
            if status in FINAL:
                self.ended[event["id"]] = self.answers
            self._row("bank", f"{kind} {_short(event['id'])} is {status}", at=event["at"])
        elif kind == "notification" and status in ("delivered", "failed", "dropped"):
            notification = self._bank.documents.get(NOTIFICATION, event["id"])
            if notification is not None:
                new_status = next(value for name, value in notification["body"].items() if name.endswith("Status"))
                forged = "forged" in notification
                text = f"notification {status}: {_short(notification['target'])} is {new_status}"
                self._row("bank", f"forged {text}" if forged else text, fault=forged, at=event["at"])

    # What happens after each request, on the bank's thread

    def _requested(self, exchange: Exchange) -> None:
        if self.left or self.over or self.killed:
            return
        self.requests += 1
        operation = exchange.operation or "?"
        self._quiet += operation in POLLS
        self._still[f"{exchange.request.method} {exchange.request.target}"] += 1
        self._counts[operation] += 1
        self._now = exchange.at
        delivery = exchange.response.delivery if exchange.response is not None else None
        lost = delivery is not None and delivery.disconnect is not None
        spoiled = lost or any(name.partition(":")[0] in SPOILING for name in exchange.rules)
        status = exchange.answer().get("transactionStatus", "") if operation in POLLS else ""
        answer = "no answer" if lost else f"{exchange.status} {status}".strip()
        fault = "".join(f" [{name}]" for name in exchange.rules)
        about = _short(exchange.payment_id or "")
        row = f"{operation} {about}".strip() + f" -> {answer}{fault}"
        self._row("tpp", row, fault=bool(exchange.rules))
        self._note_refusal(row, exchange)
        killed = self.requests in self.schedule.restarts
        if killed and exchange.response is not None:  # the answer does not reach it, and checks know that
            exchange.response.delivery = replace(exchange.response.delivery, disconnect="after")
        if operation == "createPayment" and exchange.payment_id is not None:
            self.created[exchange.id] = exchange.payment_id
        if spoiled or killed:
            self.unseen.add(exchange.id)
            if operation in STATUS_READS and exchange.payment_id in self.ended:
                self.ended[exchange.payment_id] = self.answers  # asked in vain: it has ended for the TPP only later
        else:
            self.answers += 1
            if exchange.status == 200:
                self._read(operation, exchange)
        self._change(operation)
        self._pass_time(exchange)
        if killed:
            self._row("time", "the TPP is killed", fault=True)
            if self._restarts:
                self.killed = True
                self._apply("killed", [{"unsigned": True, "then": {"disconnect": "before"}}])
        self._judge_pace()
        if self.waiting or self.killed or self.endless is not None:
            self.news.set()

    def _note_refusal(self, row: str, exchange: Exchange) -> None:
        if exchange.status < 400 or "_links" in exchange.answer():  # with links, the customer's SCA comes first
            self.accepted = True
        elif not self.accepted:
            first = next(iter(exchange.messages()), {})
            self.refused = " ".join([row, *(first[name] for name in ("code", "path", "text") if name in first)])

    def _read(self, operation: str, exchange: Exchange) -> None:
        """Note what is true of the payment or accounts that were read."""
        if operation in STATUS_READS and exchange.payment_id in self.ended:
            self.known.add(str(exchange.payment_id))
        if operation in ("getAccounts", "getAccount"):
            answer = exchange.answer()
            for one in (*answer.get("accounts", ()), answer.get("account", {})):
                if "balances" in one:
                    self._read_account("getBalances", one["resourceId"])
        elif operation in ("getBalances", "getTransactions") and exchange.call is not None:
            self._read_account(operation, exchange.call.params["id"])

    def _read_account(self, operation: str, account: str) -> None:
        """Note what is true of an account whose balance or transactions were read."""
        stored = self._bank.documents.get(ACCOUNT, account)
        if stored is None:
            return
        truth = self.accounts.setdefault(account, AccountTruth())
        if operation == "getBalances":
            truth.balances.append(Decimal(stored["booked"]))
            return
        fewest, most = _bookings(self._bank, account)
        truth.fewest = fewest if truth.fewest is None else min(truth.fewest, fewest)
        truth.most = max(truth.most, most)

    def _change(self, operation: str) -> None:
        """Make the changes that follow this request."""
        for fault in [one for one in self._changes if one.of == operation and one.at == self._counts[operation]]:
            self._changes.remove(fault)
            try:
                self._apply("change", **fault.start(self.debtor))
            except loader.ScenarioRefused:
                continue  # nothing of the kind exists here
            self._row("fault", fault.described(), fault=True)

    def _pass_time(self, exchange: Exchange) -> None:
        for passing in [one for one in self._passing if one.after == self.requests]:
            self._passing.remove(passing)
            self._row("time", f"{passing.passes} pass", fault=True)
            self.elapse(durations.exact(passing.passes) or timedelta())
        due = progression.next_due(self._bank, progression.MONEY)
        if exchange.status in (429, 503):
            headers = dict(exchange.response.headers) if exchange.response is not None else {}
            retry = headers.get("Retry-After", "")
            self.elapse(timedelta(seconds=int(retry)) if retry.isdigit() else PAUSE)
        elif self._quiet > PATIENCE and due is not None:
            self._quiet = 0
            self._move(max(moment(due), self._bank.clock.now() + EACH_REQUEST))
        else:
            self.elapse(EACH_REQUEST)

    def elapse(self, length: timedelta) -> None:
        """Let bank time pass, after a request or because the TPP waits."""
        if not self.over:
            self._move(self._bank.clock.now() + length)

    def _move(self, now: datetime) -> None:
        """Set bank time, at most to its end, and let everything happen that is due by then, at its own moment."""
        self.service.settle()
        self._bank.clock.set(now=min(now, END - EACH_REQUEST))
        self.service.settle()
        self._now = self._bank.clock.stamp()

    def _judge_pace(self) -> None:
        if max(self._still.values(), default=0) > ENDLESS * len(self.schedule.tasks):
            self.endless = f"nothing has changed at the bank in its last {self._still.total()} requests"
        elif self.requests > MOST_REQUESTS:
            self.endless = f"it sent {self.requests} requests"

    # The customer

    def _opened(self, token: str) -> None:
        """A browser opens the page of an SCA."""
        if self.left or self.over or self.killed or token in self._seen:
            return
        acts = self.schedule.customer
        act = acts[len(self._seen)] if len(self._seen) < len(acts) else "approve"
        self._seen.add(token)
        self.waiting.append(_Waiting(token, act, self.requests))
        self._row("customer", "opens the bank's page")
        self.news.set()

    def act(self, *, silent: bool = False) -> list[str]:
        """Let the customer act where the page is open; returns the addresses that the browser then opens, in order.

        `silent`: the TPP only waits.
        """
        redirects: list[str] = []
        if self.over:
            return redirects
        for waiting in list(self.waiting):
            waiting.waits += silent
            late = waiting.act == "late" and waiting.waits < LATE_WAITS
            if waiting.act == "leave":
                self.waiting.remove(waiting)
                self._row("customer", "leaves the page", fault=True)
            elif not late or self.requests - waiting.since >= LATE_REQUESTS:
                self.waiting.remove(waiting)
                redirects += self._authenticate(waiting)
        return redirects

    def _authenticate(self, waiting: _Waiting) -> Iterable[str]:
        bank = self._bank
        if waiting.act == "late":
            self._row("time", "5 minutes pass before the customer acts", fault=True)
            self.elapse(LATE)
        sca = bank.documents.get(SCA, waiting.token)
        if sca is None:
            return []
        before = len(self.rows)
        person = self.other if waiting.act == "somebody-else" else self.person
        try:
            with bank.documents.transaction():
                if waiting.act == "decline":
                    redirect: str | None = sca_control.reject(bank, sca)
                else:
                    redirect = sca_control.approve(bank, sca, national_id=person, context="PRIVATE")
        except BankError:
            return []  # it has ended: the bank shows a page that says so
        self._note(waiting, sca, before)
        redirects = [] if redirect is None else [redirect]
        return redirects * 2 if waiting.act == "twice" else redirects

    def _note(self, waiting: _Waiting, sca: Sca, before: int) -> None:
        """Note what the customer did, before what followed from it."""
        texts = {
            "decline": "declines",
            "late": "approves late",
            "twice": "approves, and opens the return twice",
            "somebody-else": "is somebody else, and signs",
        }
        purpose = sca["purpose"]
        text = f"{texts.get(waiting.act, 'approves')} ({purpose})"
        self.rows.insert(before, Row(date_time(self._now), "customer", text, waiting.act in texts))
        if waiting.act == "decline" and purpose in ("payment", "basket") and "target" in sca:
            self.declined[str(sca["target"])] = self._bank.clock.stamp()

    def wait(self) -> bool:
        """The TPP only waits: move bank time to what is due next, unless it waits for the customer.

        Returns False if nothing will happen.
        """
        due = progression.next_due(self._bank, progression.MONEY)
        if due is None or self.over or self.waiting:
            return bool(self.waiting)
        self._row("time", "the TPP waits, and time passes")
        self._move(max(moment(due), self._bank.clock.now()))
        return True

    def leave(self, *, requests: int) -> bool:
        """The TPP was silent after so many requests: the run is over, unless it has sent another one meanwhile."""
        self.left = self.requests == requests
        return self.left

    def restarted(self) -> None:
        """The TPP was killed and is started again."""
        self.killed = False
        self._apply("killed")
        self._row("time", "the TPP is started again", fault=True)

    # The end

    def finish(self) -> None:
        """The TPP has ended: let everything happen that is still due."""
        ended = "has ended" if self.endless is None else "is stopped"
        self._row("time", f"the TPP {ended}; everything that is due happens")
        for waiting in self.waiting:
            self._authenticate(waiting)  # whoever is late acts all the same
        self.waiting.clear()
        for _ in range(MOST_DUE):
            due = progression.next_due(self._bank, progression.MONEY)
            if due is None:
                break
            self._move(max(moment(due), self._bank.clock.now()))
        self.over = True
        self._end_watching()

    def close(self) -> None:
        """Delete the bank."""
        self.call(lambda: self._banks.application.registry.close_bank(self.name))

    def payments(self) -> list[Payment]:
        """The payments of the TPP, oldest first."""
        documents = self._bank.documents
        listed = self.call(lambda: list(documents.all(PAYMENT)))
        return sorted(listed, key=lambda payment: (payment["created"], payment["id"]))

    def members_of(self, basket: str) -> list[str]:
        document = self.call(lambda: self._bank.documents.get(BASKET, basket))
        return [] if document is None else list(document["payments"])

    def report(self) -> Mapping[str, Any]:
        return self.call(conformance_of(self.service).report)  # the server judges too, when it is idle


def _beginning(begins: Begins, now: datetime) -> datetime:
    """Bank time at the start of a run; a few seconds before midnight in Oslo for the others than `now`."""
    if begins == "now":
        return now
    day = now.astimezone(OSLO)
    if begins == "month-end":
        following = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    else:
        following = day + timedelta(days=1)
    return following.replace(hour=0, minute=0, second=0, microsecond=0) - BEFORE_MIDNIGHT


def _bookings(bank: Bank, account: str) -> tuple[int, int]:
    """Between which numbers a claim about the bookings of the last 90 days may lie now.

    They differ where the feed drifts: a booking may be hidden, or be shown under a date inside or outside of the days.
    """
    true = booked(bank, account)
    if not bank.settings.drift:
        return true, true
    since, now = (oslo_date(bank.clock.now()) - WINDOW).isoformat(), bank.clock.stamp()
    forms = [shown for _, shown in DriftingFeed(bank, TRANSACTION, account).trace("booked")]
    seen = sum(any(one.at(now) and one.entry["order"] >= since for one in shown) for shown in forms)
    return min(true, seen), max(true, seen)


def _short(identity: str) -> str:
    return identity[:8]
