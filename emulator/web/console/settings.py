"""The settings of the bank, the TPPs of the sandbox CA, and a form to issue a certificate."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from emulator.api.messages import Response
from emulator.bank.settings import schemas
from emulator.web.console.screen import Screen


def show(screen: Screen) -> Response:
    """Show all settings of this bank."""
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


def _as_value(name: str, text: str) -> Any:
    """The value that a field's text stands for; the control interface refuses text that is no valid value."""
    kind = schemas()[name].get("type")
    if kind == "array":
        with suppress(ValueError):
            return json.loads(text)
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind == "integer" and text.isascii() and text.isdigit() and len(text) < 12:
        return int(text)
    setting, _, count = re.sub(r'[{}" ]', "", text).partition(":")  # `polls: 3`, or the JSON form of it
    if name == "progression" and setting == "polls":
        return {"polls": int(count) if count.isascii() and count.isdigit() and len(count) < 6 else count}
    return text


def save(screen: Screen) -> Response:
    """Send the changed settings only, since others may have been changed elsewhere meanwhile."""
    form = screen.form
    typed = {name: form.get(name) for name in schemas() if name in form}
    changes = {name: _as_value(name, text) for name, text in typed.items() if text != form.get(f"{name}-was")}
    screen.control.ask("PUT", "settings", changes)
    return screen.go("settings", done="settings")


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


def tpps(screen: Screen) -> Response:
    """List all issued TPPs, with the form for a new one."""
    return screen.page(
        "tpps",
        tpps=screen.control.every("tpps"),
        roles=ROLES,
        flaws=FLAWS,
    )


def issue_tpp(screen: Screen) -> Response:
    """Issue a TPP; certificate and key are shown once, on the page that answers."""
    form = screen.form
    body = {"name": form.get("name"), "roles": form.all("roles"), "replace": "replace" in form}
    for member in ("organizationIdentifier", "flaw"):
        if form.get(member):
            body[member] = form.get(member)
    issued = screen.control.ask("POST", "tpps", body)
    return screen.page("tpp_issued", tpp=issued, flaw=form.get("flaw"), flaws=dict(FLAWS))
