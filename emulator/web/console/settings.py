"""Settings, snapshots, reset, made-up customers and further banks."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from emulator.api.messages import Response
from emulator.bank import fixtures
from emulator.bank.settings import SCHEMAS
from emulator.web.console.screen import ControlRefused, Screen


def show(screen: Screen, refused: ControlRefused | None = None) -> Response:
    """All settings of this bank; `refused`: why the form was."""
    kept = screen.bank.settings.as_document()
    return screen.page(
        "settings",
        refused=refused,
        fields=[
            {
                "name": name,
                "text": schema["description"],
                "choices": ("false", "true") if schema.get("type") == "boolean" else schema.get("enum"),
                "was": screen.form.get(f"{name}-was", _as_text(kept[name])),
                "value": screen.form.get(name, _as_text(kept[name])),
            }
            for name, schema in SCHEMAS.items()
        ],
    )


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {inner}" for name, inner in value.items())
    return str(value)


def _as_value(name: str, text: str) -> Any:
    """What the form's text means; what it cannot mean is left for the control interface to refuse."""
    kind = SCHEMAS[name].get("type")
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind == "integer" and text.isascii() and text.isdigit() and len(text) < 12:
        return int(text)
    setting, _, count = re.sub(r'[{}" ]', "", text).partition(":")  # polls: 3, or as a refusal writes it
    if name == "progression" and setting == "polls":
        return {"polls": int(count) if count.isascii() and count.isdigit() and len(count) < 6 else count}
    return text


def save(screen: Screen) -> Response:
    """Merge what somebody has changed in the form into the settings; others may have changed the rest meanwhile."""
    form = screen.form
    typed = {name: form.get(name) for name in SCHEMAS if name in form}
    changes = {name: _as_value(name, text) for name, text in typed.items() if text != form.get(f"{name}-was")}
    try:
        screen.control.ask("PUT", "settings", changes)
    except ControlRefused as refused:
        return show(screen, refused)
    return screen.go("settings", done="settings")


def snapshots(screen: Screen, refused: ControlRefused | None = None) -> Response:
    """Snapshots, reset, made-up customers, other banks."""
    return screen.page(
        "snapshots",
        refused=refused,
        snapshots=screen.control.every("snapshots"),
        banks=_banks(screen),
        fixtures=fixtures.names(),
    )


def _banks(screen: Screen) -> list[dict[str, str]]:
    """Every bank with the address of its console."""
    before = screen.home.removesuffix("/console").removesuffix(screen.request.prefix)
    return [
        {**bank, "console": f"{before}{'' if bank['name'] == 'default' else '/banks/' + bank['name']}/console"}
        for bank in screen.control.every("banks")
    ]


def _change(screen: Screen, done: str, method: str, path: str, body: Any = None) -> Response:
    try:
        screen.control.ask(method, path, body)
    except ControlRefused as refused:
        return snapshots(screen, refused)
    return screen.go("snapshots", done=done)


def save_snapshot(screen: Screen) -> Response:
    """Keep the bank as it stands under a name."""
    return _change(screen, "saved", "PUT", f"snapshots/{_segment(screen.form.get('snapshot'))}", {})


def restore_snapshot(screen: Screen) -> Response:
    """Make the bank what it was."""
    return _change(screen, "restored", "POST", f"snapshots/{_segment(screen.params['name'])}/restore", {})


def delete_snapshot(screen: Screen) -> Response:
    """Let go of a snapshot."""
    return _change(screen, "deleted", "DELETE", f"snapshots/{_segment(screen.params['name'])}")


def reset(screen: Screen) -> Response:
    """The whole bank new: from what it was made with, unless a fixture is chosen."""
    fixture = screen.form.get("fixtures")
    return _change(screen, "reset", "POST", "reset", {"fixtures": fixture} if fixture else {})


def generate(screen: Screen) -> Response:
    """Customers made up, with accounts and transactions."""
    wish: dict[str, Any] = {}
    for name in ("customers", "accountsPerCustomer", "transactionsPerAccount", "days", "seed"):
        text = screen.form.get(name)
        if text:
            wish[name] = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
    return _change(screen, "generated", "POST", "generate", wish)


def make_bank(screen: Screen) -> Response:
    """Another bank beside those that there are: the control interface would make one of these anew."""
    name = screen.form.get("bank")
    if any(bank["name"] == name for bank in _banks(screen)):
        said = f"There is a bank {name} already. Its own console can reset it."
        return snapshots(screen, ControlRefused(409, [said], frozenset({"name"})))
    return _change(screen, "bank-made", "PUT", f"banks/{_segment(name)}", {})


def delete_bank(screen: Screen) -> Response:
    """Close another bank for good."""
    return _change(screen, "deleted", "DELETE", f"banks/{_segment(screen.params['name'])}")


def _segment(name: str) -> str:
    return quote(name, safe="") or "-"


ROLES = (("PISP", "Payments and baskets"), ("AISP", "Accounts and consents"))
FLAWS = (
    ("", "None: a good certificate"),
    ("expired", "Expired"),
    ("not-yet-valid", "Not valid yet"),
    ("unknown-ca", "From a CA that nobody knows"),
    ("no-roles", "PSD2 statement without roles"),
    ("leading-zero-serial", "Serial number with a leading zero"),
    ("special-characters", "Special characters in the name"),
)


def tpps(screen: Screen, refused: ControlRefused | None = None) -> Response:
    """Every TPP that was issued, with the form for a new one."""
    return screen.page(
        "tpps",
        refused=refused,
        tpps=screen.control.every("tpps"),
        roles=ROLES,
        flaws=FLAWS,
    )


def issue_tpp(screen: Screen) -> Response:
    """A new TPP; certificate and key are shown once, on the answer itself."""
    form = screen.form
    wish = {"name": form.get("name"), "roles": form.all("roles"), "replace": "replace" in form}
    for member in ("organizationIdentifier", "flaw"):
        if form.get(member):
            wish[member] = form.get(member)
    try:
        issued = screen.control.ask("POST", "tpps", wish)
    except ControlRefused as refused:
        return tpps(screen, refused)
    return screen.page("tpp_issued", tpp=issued, flaw=form.get("flaw"), flaws=dict(FLAWS))
