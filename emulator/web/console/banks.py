"""Pages that change a bank as a whole: snapshots, reset, generated customers, further banks of the process."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Response, Steps
from emulator.bank import fixtures
from emulator.bank.errors import counted
from emulator.bank.kinds import ACCOUNT, CONSENT, CUSTOMER, PAYMENT
from emulator.web.console.screen import ControlRefused, Screen, quote_segment

COUNTED = (
    (CUSTOMER, "customer"),
    (ACCOUNT, "account"),
    (PAYMENT, "payment"),
    (CONSENT, "consent"),
)


def contents(screen: Screen) -> list[str]:
    """What a reset would delete, counted in words: `4 customers`, `12 payments`."""
    return [counted(count, word) for kind, word in COUNTED if (count := screen.bank.documents.count(kind))]


def _present_state(screen: Screen) -> list[str]:
    """What a reset and the restoring of a snapshot replace."""
    return [*contents(screen), "the present bank time", "rules and scenario", "settings"]


def snapshots(screen: Screen) -> Response:
    """List the snapshots of this bank."""
    return screen.page("snapshots", snapshots=screen.control.every("snapshots"))


def save_snapshot(screen: Screen) -> Steps:
    """Save the state of the bank under a name."""
    name = screen.form.get("snapshot")
    exists = any(snapshot["name"] == name for snapshot in screen.control.every("snapshots"))
    if exists and not screen.confirmed:
        lost = [f"the snapshot {name}"]
        return screen.confirmation(f"Replace the snapshot {name}?", "Replace it", lost=lost, back=["snapshots"])
    yield from screen.control.ask_in_steps("PUT", f"snapshots/{quote_segment(name)}", {})
    return screen.go("snapshots", done="saved")


def restore_snapshot(screen: Screen) -> Steps:
    """Restore the bank from a snapshot."""
    name = screen.params["name"]
    if not screen.confirmed:
        lost = _present_state(screen)
        return screen.confirmation(f"Restore the snapshot {name}?", "Restore it", lost=lost, back=["snapshots"])
    yield from screen.control.ask_in_steps("POST", f"snapshots/{quote_segment(name)}/restore", {})
    return screen.go("snapshots", done="restored")


def delete_snapshot(screen: Screen) -> Response:
    """Delete a snapshot."""
    name = screen.params["name"]
    if not screen.confirmed:
        lost = [f"the snapshot {name}"]
        return screen.confirmation(f"Delete the snapshot {name}?", "Delete it", lost=lost, back=["snapshots"])
    screen.control.ask("DELETE", f"snapshots/{quote_segment(name)}")
    return screen.go("snapshots", done="deleted")


def show_reset(screen: Screen) -> Response:
    """Show what a reset deletes, and a choice of fixtures."""
    return screen.page("reset", fixtures=fixtures.names(), contents=contents(screen))


def reset(screen: Screen) -> Steps:
    """Reset the bank to the fixture that it was created from, or to another one."""
    fixture = screen.form.get("fixtures")
    if not screen.confirmed:
        title = f"Reset the bank to {fixture}?" if fixture else "Reset the bank?"
        lost = [*_present_state(screen), "the request log"]
        return screen.confirmation(title, "Reset the bank", lost=lost, back=["reset"])
    yield from screen.control.ask_in_steps("POST", "reset", {"fixtures": fixture} if fixture else {})
    return screen.go("reset", done="reset")


def show_generate(screen: Screen) -> Response:
    """Show the form for generated customers."""
    return screen.page("generate")


def generate(screen: Screen) -> Steps:
    """Generate customers with accounts and transactions."""
    numbers: dict[str, Any] = {}
    for name in ("customers", "accountsPerCustomer", "transactionsPerAccount", "days", "seed"):
        text = screen.form.get(name)
        if text:
            numbers[name] = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
    yield from screen.control.ask_in_steps("POST", "generate", numbers)
    return screen.go("generate", done="generated")


def banks(screen: Screen) -> Response:
    """List the banks of this process, each with the address of its console."""
    before = screen.home.removesuffix("/console").removesuffix(screen.request.prefix)
    listed = [
        {**bank, "console": f"{before}{'' if bank['name'] == 'default' else '/banks/' + bank['name']}/console"}
        for bank in screen.control.every("banks")
    ]
    return screen.page("banks", banks=listed)


def create_bank(screen: Screen) -> Steps:
    """Create a bank; refused if it exists, since the control interface would replace it."""
    name = screen.form.get("bank")
    if any(bank["name"] == name for bank in screen.control.every("banks")):
        raise ControlRefused(409, [f"The bank {name} exists. Its own console can reset it."], frozenset({"name"}))
    yield from screen.control.ask_in_steps("PUT", f"banks/{quote_segment(name)}", {})
    return screen.go("banks", done="bank-created")


def delete_bank(screen: Screen) -> Steps:
    """Delete another bank and its documents."""
    name = screen.params["name"]
    if not screen.confirmed:
        lost = ["all of its documents", "its snapshots"]
        return screen.confirmation(f"Delete the bank {name}?", "Delete it", lost=lost, back=["banks"])
    yield from screen.control.ask_in_steps("DELETE", f"banks/{quote_segment(name)}")
    return screen.go("banks", done="deleted")
