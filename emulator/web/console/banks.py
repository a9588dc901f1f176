"""Pages that change a bank as a whole: snapshots, reset, generated customers, further banks of the process."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Response, Steps
from emulator.bank import fixtures
from emulator.bank.kinds import ACCOUNT, CONSENT, CUSTOMER, PAYMENT
from emulator.web.console.screen import ControlRefused, Question, Screen, quote_segment

COUNTED = (
    (CUSTOMER, "customer"),
    (ACCOUNT, "account"),
    (PAYMENT, "payment"),
    (CONSENT, "consent"),
)
_ALL = ("the present bank time", "rules and scenario", "settings")


def contents(screen: Screen) -> list[str]:
    """What a reset would delete, counted in words: `4 customers`, `12 payments`."""
    counts = [(screen.bank.documents.count(kind), word) for kind, word in COUNTED]
    return [f"{count} {word}{'s' if count != 1 else ''}" for count, word in counts if count]


def snapshots(screen: Screen, refused: ControlRefused | None = None) -> Response:
    """List the snapshots of this bank."""
    return screen.page("snapshots", refused=refused, snapshots=screen.control.every("snapshots"))


def save_snapshot(screen: Screen) -> Response | Steps:
    """Save the state of the bank under a name."""
    name = screen.form.get("snapshot")
    exists = any(snapshot["name"] == name for snapshot in screen.control.every("snapshots"))
    if exists and not screen.confirmed:
        return screen.ask(
            Question(f"Replace the snapshot {name}?", "Replace it", lost=(f"the snapshot {name}",)), "snapshots"
        )
    return _change(screen, snapshots, "PUT", f"snapshots/{quote_segment(name)}", {}, done="saved")


def restore_snapshot(screen: Screen) -> Response | Steps:
    """Restore the bank from a snapshot."""
    name = screen.params["name"]
    if not screen.confirmed:
        lost = (*contents(screen), *_ALL)
        return screen.ask(Question(f"Restore the snapshot {name}?", "Restore it", lost=lost, danger=True), "snapshots")
    return _change(screen, snapshots, "POST", f"snapshots/{quote_segment(name)}/restore", {}, done="restored")


def delete_snapshot(screen: Screen) -> Response | Steps:
    """Delete a snapshot."""
    name = screen.params["name"]
    if not screen.confirmed:
        lost = (f"the snapshot {name}",)
        return screen.ask(Question(f"Delete the snapshot {name}?", "Delete it", lost=lost, danger=True), "snapshots")
    return _change(screen, snapshots, "DELETE", f"snapshots/{quote_segment(name)}", done="deleted")


def show_reset(screen: Screen, refused: ControlRefused | None = None) -> Response:
    """Show what a reset deletes, and a choice of fixtures."""
    return screen.page("reset", refused=refused, fixtures=fixtures.names(), contents=contents(screen))


def reset(screen: Screen) -> Response | Steps:
    """Reset the bank to the fixture that it was created from, or to another one."""
    fixture = screen.form.get("fixtures")
    if not screen.confirmed:
        lost = (*contents(screen), *_ALL, "the request log")
        title = f"Reset the bank to {fixture}?" if fixture else "Reset the bank?"
        return screen.ask(Question(title, "Reset the bank", lost=lost, danger=True), "reset")
    return _change(screen, show_reset, "POST", "reset", {"fixtures": fixture} if fixture else {}, done="reset")


def show_generate(screen: Screen, refused: ControlRefused | None = None) -> Response:
    """Show the form for generated customers."""
    return screen.page("generate", refused=refused)


def generate(screen: Screen) -> Steps:
    """Generate customers with accounts and transactions."""
    numbers: dict[str, Any] = {}
    for name in ("customers", "accountsPerCustomer", "transactionsPerAccount", "days", "seed"):
        text = screen.form.get(name)
        if text:
            numbers[name] = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
    try:
        yield from screen.control.ask_in_steps("POST", "generate", numbers)
    except ControlRefused as refused:
        return show_generate(screen, refused)
    return screen.go("generate", done="generated")


def banks(screen: Screen, refused: ControlRefused | None = None) -> Response:
    """List the banks of this process."""
    return screen.page("banks", refused=refused, banks=_banks(screen))


def _banks(screen: Screen) -> list[dict[str, str]]:
    """Every bank with the address of its console."""
    before = screen.home.removesuffix("/console").removesuffix(screen.request.prefix)
    return [
        {**bank, "console": f"{before}{'' if bank['name'] == 'default' else '/banks/' + bank['name']}/console"}
        for bank in screen.control.every("banks")
    ]


def create_bank(screen: Screen) -> Response | Steps:
    """Create a bank; refused if it exists, since the control interface would replace it."""
    name = screen.form.get("bank")
    if any(bank["name"] == name for bank in _banks(screen)):
        text = f"The bank {name} exists. Its own console can reset it."
        return banks(screen, ControlRefused(409, [text], frozenset({"name"})))
    return _change(screen, banks, "PUT", f"banks/{quote_segment(name)}", {}, done="bank-created")


def delete_bank(screen: Screen) -> Response | Steps:
    """Delete another bank and its documents."""
    name = screen.params["name"]
    if not screen.confirmed:
        lost = ("all of its documents", "its snapshots")
        return screen.ask(Question(f"Delete the bank {name}?", "Delete it", lost=lost, danger=True), "banks")
    return _change(screen, banks, "DELETE", f"banks/{quote_segment(name)}", done="deleted")


def _change(screen: Screen, page: Any, method: str, path: str, body: Any = None, *, done: str) -> Steps:
    """Send a change to the control interface, then show the page again with the result or the reasons of a refusal."""
    try:
        yield from screen.control.ask_in_steps(method, path, body)
    except ControlRefused as refused:
        response: Response = page(screen, refused)
        return response
    address = {snapshots: "snapshots", show_reset: "reset", banks: "banks"}[page]
    return screen.go(address, done=done)
