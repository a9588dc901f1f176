"""A plan without sockets: one bank, one check armed, one TPP, and time that moves only when the TPP waits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from emulator.api.messages import Request, Response
from emulator.assemble import assemble
from emulator.assemble.application import BankApplication
from emulator.bank import notifications
from emulator.bank.clock import Beginning, real_now
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority
from emulator.client import clients as answers
from emulator.client.clients import Prepared, Tpp
from emulator.conformance.check import Check
from emulator.conformance.observer import Conformance
from emulator.conformance.runner import SimulatedCustomer, arm, persons_of
from emulator.settings import ServeSettings
from tests.explore.merchant import Merchant

JSON = ("Content-Type", "application/json")
HOST = ("Host", "127.0.0.1:8080")
STEP = 0.5  # seconds until the customer looks for the first time in a wait; each time it takes twice as long


@lru_cache(maxsize=1)
def authority() -> CertificateAuthority:
    authority = CertificateAuthority(None, clock=real_now)
    authority.demo()
    authority.issue("ais", roles=["AISP"])
    return authority


class Refused(Exception):
    """The control interface refused what the test asked of it."""


class Plan:
    """The world of one TPP, armed for one check.

    `frozen`: only bank time moves, as in a test that advances a clock and does not sleep; else real time moves too.
    """

    def __init__(self, check: Check, shop: type[Merchant] = Merchant, *, frozen: bool = False) -> None:
        self.check = check
        self.frozen = frozen
        self.seconds = datetime.now(UTC).timestamp()
        self.application: BankApplication = assemble(
            ServeSettings(ephemeral=True, allow_notify=(Host("shop.example"),)),
            authority=authority(),
            begins=Beginning(None, "frozen"),
        )
        self.service = self.application.default
        assert isinstance(self.service.observer, Conformance)
        self.conformance = self.service.observer
        self.conformance.clock = lambda: self.seconds
        self.context = check.arm.context
        self.control("PUT", "/settings", {"date_skew": 10**6, **check.arm.settings})
        arm(check, self.control)
        people = self.control("GET", "/people")["people"]
        self.national_id, other, self.debtor = persons_of(people, self.context)
        self.tpp_id = f"PSDNO-SBX-{shop.certificate}"
        self.tpp = Tpp(
            "http://127.0.0.1:8080",
            authority().find(shop.certificate),
            clock=lambda: datetime.fromtimestamp(self.seconds, UTC),
        )
        self.customer = SimulatedCustomer(
            check,
            self.control,
            self.tpp_id,
            self.national_id,
            other,
            visit=self.visited,
            clock=lambda: self.seconds,
        )
        self.shop: Merchant | None = None
        self._shop = shop

    def control(self, method: str, path: str, body: Any = None) -> Any:
        content = json.dumps(body or {}).encode() if method != "GET" else b""
        answer = self.application.handle(Request(method, f"/_emulator{path}", (HOST, JSON), content))
        assert isinstance(answer, Response)
        if answer.status >= 400:
            raise Refused(f"{method} {path}: {answer.body.decode()}")
        return json.loads(answer.body) if answer.body else None

    # What surrounds the TPP

    def send(self, prepared: Prepared) -> answers.Response | None:
        request = Request(prepared.method, prepared.target, tuple(prepared.headers.items()), prepared.body)
        answer = self.application.handle(request)
        assert isinstance(answer, Response)
        self.customer.play()
        self.notify()
        if answer.delivery.disconnect is not None:
            return None
        return answers.TppResponse(answer.status, answers.ResponseHeaders(answer.headers), answer.body)

    def wait(self, seconds: float) -> None:
        left, step = seconds, STEP
        while left > 0:
            # Only a customer who is at the bank does anything while the TPP waits.
            at_the_bank = set(self.control("GET", "/conformance/opened")["opened"]) - self.customer._done
            step = min(step, left) if at_the_bank else left
            left -= step
            self._advance(step)
            step *= 2
            if at_the_bank:
                self.customer.play()
            self.notify()

    def _advance(self, seconds: float) -> None:
        self.seconds += 0.0 if self.frozen else seconds
        self.control("POST", "/clock/advance", {"by": f"{seconds}s"})

    def notify(self) -> None:
        """Send what is due, as the process does beside the requests."""
        bank = self.service.bank
        while due := notifications.claim(bank, most=1, each=1):
            (notification,) = due
            if self.shop is not None:
                self.shop.notified(notification["body"])
            notifications.settle(bank, notification["id"], notifications.DeliveryResult(status=204))

    def browse(self, link: str) -> None:
        parts = urlsplit(link)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        self.application.handle(Request("GET", target, (HOST,)))

    def customer_is_there(self) -> bool:
        return self.customer.present

    def visited(self, redirect: str) -> None:
        assert self.shop is not None
        self.shop.returned(redirect)

    # The verdicts

    def judge(self) -> dict[str, dict[str, Any]]:
        """Let the TPP do the check's task, and give each check's row of the report."""
        self.play(self._shop)
        return self.report()

    def play(self, shop: type[Merchant]) -> None:
        """Let a TPP do the check's task."""
        self.shop = shop(self, self.tpp, tasks=(self.check.arm.task,), debtor=self.debtor)
        self.shop.run()
        self.customer.play()

    def another_day(self) -> None:
        """Bring about the check's occasion once more, after a day on which nothing happens."""
        self._advance(26 * 3600)
        self.control("DELETE", "/rules")
        for rule in reversed(self.check.arm.rules):
            self.control("POST", "/rules", rule)
        self.control("POST", "/conformance/observations", {"event": "customer", "tpp": self.tpp_id, "present": True})
        self.customer.present = True
        self.customer._left = [step.times for step in self.check.arm.clock]

    def report(self) -> dict[str, dict[str, Any]]:
        """Each check's row of the report, after the TPP was asked what it believes."""
        assert self.shop is not None
        beliefs = {}
        for kind, identities in self.control("GET", "/conformance/claims").items():
            for identity in identities:
                belief = self.shop.claim(kind, identity)
                if belief is not None:
                    beliefs[identity] = belief
        self.control("PUT", "/conformance/claims", {"beliefs": beliefs})
        return {row["check"]: row for row in self.control("GET", "/conformance")["checks"]}
