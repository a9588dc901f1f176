"""Pages about a bank as a whole, its settings and snapshots, the banks of the process, and the TPPs of its CA."""

from __future__ import annotations

import json
from typing import Any

from emulator.api.messages import Response, Steps
from emulator.bank import fixtures
from emulator.bank.authentication import sca_control
from emulator.bank.kinds import ACCOUNT, BANK, CONSENT, CUSTOMER, PAYMENT
from emulator.bank.settings import from_text, json_or_text, schemas
from emulator.scenario import target
from emulator.web.console import payments, scenarios
from emulator.web.console.screen import ControlRefused, Screen, quote_segment

CLOCK_STEPS = ("10s", "1m", "1h", "1d")
COUNTED = (  # the page that lists them, their kind, and one of them in words
    ("customers", CUSTOMER, "customer"),
    ("customers", ACCOUNT, "account"),
    ("payments", PAYMENT, "payment"),
    ("consents", CONSENT, "consent"),
)
ROLES = (("PISP", "Payments and baskets"), ("AISP", "Accounts and consents"))
FLAWS = (
    ("", "None: a valid certificate"),
    ("expired", "Expired"),
    ("not-yet-valid", "Not valid yet"),
    ("unknown-ca", "From an unknown CA"),
    ("no-roles", "PSD2 statement without roles"),
    ("leading-zero-serial", "Serial number with a leading zero"),
    ("special-characters", "Special characters in the name"),
)


def overview(screen: Screen) -> Response:
    bank = screen.bank
    created = BANK.read(bank.documents)
    return screen.page(
        "overview",
        steps=CLOCK_STEPS,
        counts=[(page, bank.documents.count(kind), f"{word.capitalize()}s") for page, kind, word in COUNTED],
        requests_kept=sum(1 for _ in screen.service.log.newest()),
        fixtures=created["fixtures"] if created is not None else "",
        scenario=target.applied(bank),
        rules=scenarios.active_rules(screen),
        waiting=[{**sca, "asks": payments.asked_for(screen, sca)} for sca in sca_control.waiting(bank, 5)],
        exchanges=[exchange.summary() for exchange in screen.service.log.entries(limit=8)],
    )


def change_clock(screen: Screen) -> Steps:
    by, mode = screen.form.get("by"), screen.form.get("mode")
    if mode:
        yield from screen.ask_in_steps("PUT", "clock", {"mode": mode})
    else:
        yield from screen.ask_in_steps("POST", "clock/advance", {"by": by})
    return screen.go(done="clock")


def settings(screen: Screen) -> Response:
    current = screen.bank.settings.as_document()
    return screen.page(
        "settings",
        fields=[
            {
                "name": name,
                "text": schema["description"],
                "choices": ("false", "true") if schema.get("type") == "boolean" else schema.get("enum"),
                "was": screen.form.get(f"{name}-was", _as_text(current[name])),
                "value": screen.form.get(name, _as_text(current[name])),
            }
            for name, schema in schemas().items()
        ],
    )


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {inner}" for name, inner in value.items())
    return str(value)


def save_settings(screen: Screen) -> Response:
    """Send the changed settings only, since others may have been changed elsewhere meanwhile."""
    form = screen.form
    typed = {name: form.get(name) for name in schemas() if name in form}
    changes = {name: from_text(name, text) for name, text in typed.items() if text != form.get(f"{name}-was")}
    screen.ask("PUT", "settings", changes)
    return screen.go("settings", done="settings")


def _present_state(screen: Screen) -> list[str]:
    """What a reset and the restoring of a snapshot replace."""
    return [*target.contents(screen.bank), "the present bank time", "rules and scenario", "settings"]


def snapshots(screen: Screen) -> Response:
    return screen.page("snapshots", snapshots=screen.every("snapshots"))


def save_snapshot(screen: Screen) -> Steps:
    name = screen.form.get("snapshot")
    exists = any(snapshot["name"] == name for snapshot in screen.every("snapshots"))
    if exists and not screen.confirmed:
        lost = [f"the snapshot {name}"]
        return screen.confirmation(f"Replace the snapshot {name}?", "Replace it", lost=lost, back=["snapshots"])
    yield from screen.ask_in_steps("PUT", f"snapshots/{quote_segment(name)}", {})
    return screen.go("snapshots", done="saved")


def restore_snapshot(screen: Screen) -> Steps:
    name = screen.params["name"]
    if not screen.confirmed:
        lost = _present_state(screen)
        return screen.confirmation(f"Restore the snapshot {name}?", "Restore it", lost=lost, back=["snapshots"])
    yield from screen.ask_in_steps("POST", f"snapshots/{quote_segment(name)}/restore", {})
    return screen.go("snapshots", done="restored")


def delete_snapshot(screen: Screen) -> Steps:
    name = screen.params["name"]
    if not screen.confirmed:
        lost = [f"the snapshot {name}"]
        return screen.confirmation(f"Delete the snapshot {name}?", "Delete it", lost=lost, back=["snapshots"])
    yield from screen.ask_in_steps("DELETE", f"snapshots/{quote_segment(name)}")
    return screen.go("snapshots", done="deleted")


def show_reset(screen: Screen) -> Response:
    """Show what a reset deletes, and a choice of fixtures."""
    return screen.page("reset", fixtures=fixtures.names(), contents=target.contents(screen.bank))


def reset(screen: Screen) -> Steps:
    """Reset the bank to the fixture that it was created from, or to another one."""
    fixture = screen.form.get("fixtures")
    if not screen.confirmed:
        title = f"Reset the bank to {fixture}?" if fixture else "Reset the bank?"
        lost = [*_present_state(screen), "the request log"]
        return screen.confirmation(title, "Reset the bank", lost=lost, back=["reset"])
    yield from screen.ask_in_steps("POST", "reset", {"fixtures": fixture} if fixture else {})
    return screen.go("reset", done="reset")


def generate(screen: Screen) -> Steps:
    numbers: dict[str, Any] = {}
    for name in ("customers", "accountsPerCustomer", "transactionsPerAccount", "days", "seed"):
        text = screen.form.get(name)
        if text:
            numbers[name] = json_or_text(text)
    yield from screen.ask_in_steps("POST", "generate", numbers)
    return screen.go("generate", done="generated")


def banks(screen: Screen) -> Response:
    before = screen.home.removesuffix("/console").removesuffix(screen.request.prefix)
    listed = [
        {**bank, "console": f"{before}{'' if bank['name'] == 'default' else '/banks/' + bank['name']}/console"}
        for bank in screen.every("banks")
    ]
    return screen.page("banks", banks=listed)


def create_bank(screen: Screen) -> Steps:
    """Create a bank; refused if it exists, since the control interface would replace it."""
    name = screen.form.get("bank")
    if any(bank["name"] == name for bank in screen.every("banks")):
        raise ControlRefused(409, [f"The bank {name} exists. Its own console can reset it."], frozenset({"name"}))
    yield from screen.ask_in_steps("PUT", f"banks/{quote_segment(name)}", {})
    return screen.go("banks", done="bank-created")


def delete_bank(screen: Screen) -> Steps:
    name = screen.params["name"]
    if not screen.confirmed:
        lost = ["all of its documents", "its snapshots"]
        return screen.confirmation(f"Delete the bank {name}?", "Delete it", lost=lost, back=["banks"])
    yield from screen.ask_in_steps("DELETE", f"banks/{quote_segment(name)}")
    return screen.go("banks", done="deleted")


def tpps(screen: Screen) -> Response:
    return screen.page("tpps", tpps=screen.every("tpps"), roles=ROLES, flaws=FLAWS)


def issue_tpp(screen: Screen) -> Steps:
    """Issue a TPP; certificate and key are shown once, on the page that answers."""
    form = screen.form
    body = {"name": form.get("name"), "roles": form.all("roles"), "replace": "replace" in form}
    for member in ("organizationIdentifier", "flaw"):
        if form.get(member):
            body[member] = form.get(member)
    issued = yield from screen.ask_in_steps("POST", "tpps", body)
    return screen.page("tpp_issued", tpp=issued, flaw=form.get("flaw"), flaws=dict(FLAWS))
