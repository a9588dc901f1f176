"""The first page: bank time, counts, open authentications, the latest requests."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Response, Steps
from emulator.bank.authentication import sca_control
from emulator.bank.kinds import ACCOUNT, BANK, CONSENT, CUSTOMER, PAYMENT
from emulator.scenario import target
from emulator.web.console import payments
from emulator.web.console.screen import Screen

STEPS = ("10s", "1m", "1h", "1d")
COUNTED = (
    ("customers", CUSTOMER, "Customers"),
    ("customers", ACCOUNT, "Accounts"),
    ("payments", PAYMENT, "Payments"),
    ("consents", CONSENT, "Consents"),
)


def show(screen: Screen) -> Response:
    """Show the overview."""
    bank = screen.bank
    created = BANK.read(bank.documents)
    return screen.page(
        "overview",
        steps=STEPS,
        counts=[(page, bank.documents.count(kind), label) for page, kind, label in COUNTED],
        requests_kept=sum(1 for _ in screen.service.log.newest()),
        fixtures=created["fixtures"] if created is not None else "",
        scenario=scenario(screen),
        rules=rules(screen),
        waiting=[{**sca, "asks": payments.asked_for(screen, sca)} for sca in sca_control.waiting(bank, 5)],
        exchanges=[exchange.summary() for exchange in screen.service.log.entries(limit=8)],
    )


def scenario(screen: Screen) -> dict[str, Any] | None:
    """The scenario that was applied last, in the shape of its YAML."""
    return target.applied(screen.bank)


def rules(screen: Screen) -> list[dict[str, Any]]:
    """The active scripted rules, each with `count`: its name and how often it has matched and acted."""
    answer = screen.control.ask("GET", "rules?limit=1000")
    return [{**rule, "count": count} for rule, count in zip(answer["rules"], answer["counts"], strict=True)]


def change_clock(screen: Screen) -> Steps:
    """Advance bank time by a duration, freeze it or let it run."""
    by, mode = screen.form.get("by"), screen.form.get("mode")
    if mode:
        yield from screen.control.ask_in_steps("PUT", "clock", {"mode": mode})
    else:
        yield from screen.control.ask_in_steps("POST", "clock/advance", {"by": by})
    return screen.go(done="clock")
