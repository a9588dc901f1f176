"""What one bank sees of its TPPs, queued for their judgement.

Observations are queued, and judged when the process is idle (`judge_some`) or when a report is requested, so that no
client waits for it. If the queue is full, each new observation makes two of them be judged: the queue is bounded in
entries and bytes, and no request waits for long. The files of the checks are read before the first judgement.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from itertools import takewhile
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from emulator.api.log import Exchange
from emulator.bank.bank import Bank, Event
from emulator.bank.clock import moment, oslo_date, real_seconds
from emulator.bank.customers.consents import resource_shown_as
from emulator.bank.ids import prefix
from emulator.bank.kinds import ACCOUNT, CONSENT, PAYMENT, PSU, SCA, TRANSACTION
from emulator.conformance import END_OF_PAGE, PAGES

if TYPE_CHECKING:
    from emulator.api.service import BankService
    from emulator.conformance.auditor import Auditor
    from emulator.conformance.check import Belief

MOST_QUEUED = 8192  # observations
MOST_BYTES = 32 * 1024 * 1024  # of their bodies
WINDOW = timedelta(days=90)  # that a list of transactions goes back
MOST_OPENED = 20_000  # SCAs whose page a browser has opened that are remembered

Change = tuple[str, str | None, str, dict[str, Any]]
"""An event other than a request: its name, the TPP, the stamp of bank time, and its facts."""


class Conformance:
    """The report on the TPPs of one bank."""

    def __init__(self, bank: Bank, clock: Callable[[], float] = real_seconds) -> None:
        self._bank = bank
        self.clock = clock
        self._auditor: Auditor | None = None
        self._queue: deque[tuple[Exchange | Change, float, int]] = deque()  # with the real time, and bytes of bodies
        self._bytes = 0
        self._beliefs: dict[str, Belief] = {}
        self._opened: OrderedDict[str, None] = OrderedDict()
        # Called with each request that was answered, and with the token of each SCA whose page a browser opens.
        self.on_request: Callable[[Exchange], None] = lambda _: None
        self.on_page: Callable[[str], None] = lambda _: None
        bank.documents.listen(self.event)

    @property
    def on(self) -> bool:
        """Whether the setting `conformance` is on."""
        return self._bank.settings.conformance

    def request(self, exchange: Exchange) -> None:
        """Record a request that has been answered."""
        answered = exchange
        response = exchange.response
        size = len(exchange.request.body) + (len(response.body) if response is not None else 0)
        if size > 4 * END_OF_PAGE and exchange.operation in PAGES:
            exchange, size = exchange.ending(END_OF_PAGE), END_OF_PAGE
        self._add(exchange, size)
        self.on_request(answered)  # last: what follows from it is observed after it

    def page(self, token: str, tpp: str | None, *, link: str) -> None:
        """Record a browser at an SCA page; `link`: given, altered or unknown."""
        if link != "unknown":
            self._opened[token] = None
            if len(self._opened) > MOST_OPENED:
                self._opened.popitem(last=False)
            self.on_page(token)
        self._add(("page", tpp, self._bank.clock.stamp(), {"sca": token, "link": link}))

    def returned(self, redirect: str, tpp: str | None, *, sca: Mapping[str, Any], forged: bool) -> None:
        """Record that a browser was sent back to the TPP; `sca`: the SCA that ended, as far as it is known."""
        query = dict(parse_qsl(urlsplit(redirect).query))
        values: dict[str, Any] = {
            "outcome": "finalised" if "psu-id" in query else "failed",
            "sca": sca.get("id"),
            "purpose": sca.get("purpose"),
            "psu": query.get("psu-id"),
            "session": query.get("tpp-session-id"),
            "agreement": query.get("psu-corporate-id"),
            "context": query.get("context"),
            "redirectUri": sca.get("redirectUri"),
            "forged": forged,
        }
        self._add(("return", tpp, self._bank.clock.stamp(), values))

    def observe(self, tpp: str, value: Mapping[str, Any]) -> None:
        """Record what a run did: `{event: customer, present}` or `{event: return, redirect, forged}`."""
        if value["event"] == "customer":
            self._add(("customer", tpp, self._bank.clock.stamp(), {"present": value["present"]}))
        else:
            self.returned(value["redirect"], tpp, sca={}, forged=value.get("forged", False))

    def event(self, event: Event) -> None:
        """Record a change that the bank announces; a reset starts again."""
        if event["type"] == "reset":
            self.forget()
            return
        read = _READERS.get(event["type"])
        if read is not None and self.on:
            read(self, event)

    def _payment(self, event: Event) -> None:
        payment = self._bank.documents.get(PAYMENT, event["id"])
        if payment is None:
            return
        # several changes of one transaction are announced together, after the last of them
        earlier = takewhile(
            lambda one: (one["status"], one["at"]) != (event["status"], event["at"]), payment["history"]
        )
        previous = ["RCVD", *(one["status"] for one in earlier)][-1]
        values = {"payment": event["id"], "status": event["status"], "previous": previous}
        self._add(("payment", payment["tpp"], event["at"], values))

    def _consent(self, event: Event) -> None:
        consent = self._bank.documents.get(CONSENT, event["id"])
        if consent is None:
            return
        outcome = "given" if event["status"] == "valid" else "revoked"
        psu = self._bank.documents.first(PSU, key=prefix(consent["tpp"]) + consent["nationalId"])
        values = {
            "consent": event["id"],
            "outcome": outcome,
            "otherIds": bool(consent.get("ownIds")) and self._bank.documents.count(CONSENT, owner=consent["owner"]) > 1,
            "psu": psu["id"] if psu is not None else None,
        }
        self._add(("consent", consent["tpp"], event["at"], values))

    def _sca(self, event: Event) -> None:
        sca = self._bank.documents.get(SCA, event["id"])
        if sca is not None and sca.get("redirect"):
            self.returned(sca["redirect"], sca["tpp"], sca=sca, forged=False)

    def _notification(self, event: Event) -> None:
        if event["status"] == "sending":  # the reaction of the TPP may come before the status `sent`
            target = event["target"]
            payment = target if self._bank.documents.exists(PAYMENT, target) else None
            self._add(("notification", event["tpp"], event["at"], {"payment": payment}))

    def _add(self, seen: Exchange | Change, size: int = 0) -> None:
        """Have an observation judged."""
        self._queue.append((seen, self.clock(), size))
        self._bytes += size
        if len(self._queue) > MOST_QUEUED or self._bytes > MOST_BYTES:
            self.judge_some(2)

    def judge_some(self, most: int) -> int:
        """Judge at most `most` of the queued observations; returns how many are left."""
        queue = self._queue
        if queue:
            auditor = self._auditor_now()
            for _ in range(min(most, len(queue))):
                seen, received, size = queue.popleft()
                self._bytes -= size
                if isinstance(seen, Exchange):
                    auditor.request(seen, received)
                else:
                    auditor.change(*seen, received=received)
        return len(queue)

    def _judge(self) -> Auditor:
        self.judge_some(len(self._queue))
        return self._auditor_now()

    def _auditor_now(self) -> Auditor:
        if self._auditor is None:
            from emulator.conformance.auditor import Auditor
            from emulator.conformance.check import ready

            self._auditor = Auditor(ready())
        return self._auditor

    def forget(self) -> None:
        """Drop all observations and start again."""
        self._queue.clear()
        self._bytes = 0
        self._beliefs.clear()
        self._opened.clear()
        self._auditor = None

    def facts(self, exchange: Exchange, names: Iterable[str]) -> dict[str, Any]:
        """Facts of a request in the log, by name, for a run that waits for an occasion; None for an unknown name."""
        from emulator.conformance.facts import Observation

        at = moment(exchange.at).timestamp()
        observed = Observation("request", at=at, received=at, tpp=exchange.tpp, values={}, exchange=exchange)
        return {name: observed[name] for name in names}

    def opened(self) -> list[str]:
        """The SCAs whose page a browser has opened."""
        return list(self._opened)

    def claimable(self) -> dict[str, list[str]]:
        """The ids of payments and accounts whose claims the checks need."""
        payments, accounts = self._judge().claimable()
        return {"payments": sorted(payments), "accounts": sorted(accounts)}

    def believe(self, beliefs: Mapping[str, Mapping[str, Any]]) -> None:
        """Record the claims of the TPP, by the id of a payment or account; other ids are ignored."""
        from emulator.conformance.check import Belief, decimal, state_of

        for identity, belief in beliefs.items():
            payment = self._bank.documents.get(PAYMENT, identity)
            account = self._bank.documents.get(ACCOUNT, resource_shown_as(self._bank, identity))
            if payment is not None:
                true: dict[str, Any] = {"state": state_of(payment["status"])}
                self._beliefs[identity] = Belief({"state": str(belief.get("state"))}, true)
            elif account is not None:
                true = {"balance": Decimal(account["booked"]), "transactions": booked(self._bank, account["id"])}
                claimed = {"balance": decimal(belief.get("balance")), "transactions": belief.get("transactions")}
                self._beliefs[identity] = Belief(claimed, true, moment(account["lastChange"]).timestamp())

    def report(self) -> dict[str, Any]:
        """The report (`GET /_emulator/conformance`)."""
        from emulator.conformance.report import report

        auditor = self._judge()
        now = self._bank.clock.now().timestamp()
        return report(auditor.checks, auditor.verdicts(now, self.clock(), beliefs=self._beliefs))


def booked(bank: Bank, account: str) -> int:
    """How many booked transactions an account has in the last 90 days, as a list shows them."""
    since = (oslo_date(bank.clock.now()) - WINDOW).isoformat()
    return bank.documents.range_count(TRANSACTION, "shelf", group=f"{account}|booked", low=since)


def conformance_of(service: BankService) -> Conformance:
    """The report on the TPPs of the bank that the service serves."""
    if not isinstance(service.observer, Conformance):
        raise TypeError("the observer of a bank is its conformance report")
    return service.observer


_READERS: Mapping[str, Callable[[Conformance, Event], None]] = {
    "payment": Conformance._payment,
    "consent": Conformance._consent,
    "sca": Conformance._sca,
    "notification": Conformance._notification,
}
