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
from emulator.client.tpp import Prepared, Tpp
from emulator.conformance.check import Check
from emulator.conformance.observer import Conformance
from emulator.conformance.runner import SimulatedCustomer
from emulator.settings import ServeSettings
from tests.conformance.shop import Shop

JSON = ("Content-Type", "application/json")
HOST = ("Host", "127.0.0.1:8080")
STEP = 0.5  # seconds between two looks of the customer


@lru_cache(maxsize=1)
def authority() -> CertificateAuthority:
    authority = CertificateAuthority(None, clock=real_now)
    authority.demo()
    authority.issue("ais", roles=["AISP"])
    return authority


class Refused(Exception):
    """The control interface refused what the test asked of it."""


class Plan:
    """The world of one TPP, armed for one check."""

    def __init__(self, check: Check, shop: type[Shop] = Shop) -> None:
        self.check = check
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
        for rule in reversed(check.arm.rules):
            self.control("POST", "/rules", rule)
        people = self.control("GET", "/people")["people"]
        self.national_id, other, self.debtor = persons(self, people)
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
        self.shop: Shop | None = None
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
        left = seconds
        while left > 0:
            step = min(STEP, left)
            left -= step
            self.seconds += step
            self.control("POST", "/clock/advance", {"by": f"{step}s"})
            self.customer.play()
            self.notify()

    def notify(self) -> None:
        """Send what is due, as the process does beside the requests."""
        bank = self.service.bank
        while due := notifications.claim(bank, by="plan", until=0.0, room={}, most=1, each=1):
            (notification,) = due
            if self.shop is not None:
                self.shop.notified(notification["body"])
            notifications.settle(bank, notification["id"], notifications.DeliveryResult(status=204), by="plan")

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
        self.shop = self._shop(self, self.tpp, task=self.check.arm.task, debtor=self.debtor)
        self.shop.run()
        self.customer.play()
        beliefs = {}
        for kind, identities in self.control("GET", "/conformance/claims").items():
            for identity in identities:
                belief = self.shop.claim(kind, identity)
                if belief is not None:
                    beliefs[identity] = belief
        self.control("PUT", "/conformance/claims", {"beliefs": beliefs})
        return {row["check"]: row for row in self.control("GET", "/conformance?over=true")["checks"]}


def persons(plan: Plan, people: list[dict[str, Any]]) -> tuple[str, str, str]:
    """The customer, somebody else, and an account that the customer can pay from."""
    from emulator.conformance.runner import debtor_of, persons_of

    person, other = persons_of(plan.control, plan.context)
    return person, other, debtor_of(plan.control, person)
