"""Pages about a bank as a whole, its settings, snapshots and scenarios, the banks of the process, and its TPPs."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from emulator.api.messages import Response, Steps
from emulator.bank import fixtures
from emulator.bank.authentication import sca_control
from emulator.bank.kinds import ACCOUNT, BANK, CONSENT, CUSTOMER, PAYMENT
from emulator.bank.settings import from_text, schemas
from emulator.bank.threads import in_thread
from emulator.scenario import loader, target
from emulator.scenario.loader import ScenarioRefused
from emulator.web.console import payments
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
PARAMETER = "set-"  # before the name of a parameter in a form
EXAMPLE = """scenario: my-scenario
summary: What this shows, in a sentence.
start:
  from: current
rules:
  - name: the first answer comes late
    when: {operation: getAccounts}
    times: {first: 1}
    then: {delay: 2s}
"""


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
        rules=active_rules(screen),
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


def banks(screen: Screen) -> Response:
    before = screen.home.removesuffix("/console").removesuffix(screen.request.prefix)
    listed = [
        {**bank, "console": f"{before}{'' if bank['name'] == 'default' else '/banks/' + bank['name']}/console"}
        for bank in screen.every("banks")
    ]
    return screen.page("banks", banks=listed)


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


# Scenarios


def active_rules(screen: Screen) -> list[dict[str, Any]]:
    """The active scripted rules, each with `count`: its name and how often it has matched and acted."""
    answer = screen.ask("GET", "rules?limit=1000")
    return [{**rule, "count": count} for rule, count in zip(answer["rules"], answer["counts"], strict=True)]


def scenario_listing(screen: Screen) -> Response:
    return screen.page(
        "scenarios", scenarios=screen.every("scenarios"), active=target.applied(screen.bank), rules=active_rules(screen)
    )


def scenario(screen: Screen) -> Response:
    name = screen.params["name"]
    path = loader.library().get(name)
    if path is None:
        return screen.missing("scenario")
    return _editor(screen, path.read_text(encoding="utf-8"), name=name)


def own_scenario(screen: Screen, *, checked: bool = False) -> Response:
    """Show the editor with the text of the form, at first a small example."""
    return _editor(screen, screen.form.typed("text") if "text" in screen.form else EXAMPLE, checked=checked)


def _editor(screen: Screen, text: str, *, name: str = "", checked: bool = False) -> Response:
    ready = next((line for line in screen.every("scenarios") if line["name"] == name), None) if name else None
    return screen.page("scenario", text=text, name=name, ready=ready, checked=checked, lines=text.count("\n") + 2)


def check_scenario(screen: Screen) -> Steps:
    """Check the text of the form without applying it; shows every problem with its line."""
    text = screen.form.typed("text")
    try:
        yield from in_thread(partial(loader.from_text, text, "scenario.yaml"))  # a long one takes half a second
    except ScenarioRefused as refused:
        raise ControlRefused(400, refused.lines()) from refused
    return own_scenario(screen, checked=True)


def apply_scenario(screen: Screen) -> Steps:
    """Apply a ready scenario by its name, or the text of the form; asks first if data would be lost."""
    name = screen.form.get("name")
    fields = {key.removeprefix(PARAMETER): value for key, value in screen.form.pairs() if key.startswith(PARAMETER)}
    # an empty field means the default
    body = {"name": name, "parameters": {key: value for key, value in fields.items() if value.strip()}}
    sent: dict[str, Any] = {"body": body} if name else {"yaml": screen.form.typed("text")}
    try:
        if not screen.confirmed:
            preview = yield from screen.ask_in_steps("POST", "scenario/preview", **sent)
            if preview["lost"]:
                title, back = f"Apply {preview['scenario']}?", ["scenarios", name] if name else ["scenarios"]
                lost, clock = preview["lost"], preview["clock"]
                return screen.confirmation(title, "Apply it", lost=lost, back=back, clock=clock)
        applied = yield from screen.ask_in_steps("POST", "scenario", **sent)
    except ControlRefused as refused:
        if name and name not in loader.library():
            raise
        screen.refused, screen.params = refused, {"name": name}
        return scenario(screen) if name else own_scenario(screen)
    return screen.page("applied", applied=applied)
