"""`bank-emulator clock`: bank time of a running bank."""

from __future__ import annotations

from typing import Any

import click

from emulator.cli.bank import ask, bank_options, bank_url, show

EPILOG = "Example: bank-emulator clock advance 1h30m"


@click.group(name="clock", epilog=EPILOG)
def command() -> None:
    """Bank time: see it, set it, move it."""


def _text(clock: dict[str, Any]) -> None:
    click.echo(f"{clock['now']} {clock['mode']}")


@command.command("show", epilog="Example: bank-emulator clock show --output json")
@bank_options
def show_(url: str | None, output: str) -> None:
    """Bank time, and whether it runs (live) or stands (frozen)."""
    show(ask(bank_url(url), "GET", "clock"), output, _text)


@command.command("set", epilog="Example: bank-emulator clock set 2026-03-02T09:00:00+01:00 --mode frozen")
@click.argument("now", required=False)
@click.option("--mode", type=click.Choice(["live", "frozen"]), help="Let it run, or stand still.")
@bank_options
def set_(now: str | None, mode: str | None, url: str | None, output: str) -> None:
    """Set bank time to a later moment NOW, with its zone. It goes back only by a reset."""
    changes = {name: value for name, value in (("now", now), ("mode", mode)) if value is not None}
    show(ask(bank_url(url), "PUT", "clock", changes), output, _text)


@command.command(epilog=EPILOG)
@click.argument("by")
@bank_options
def advance(by: str, url: str | None, output: str) -> None:
    """Move bank time forward BY 10s, 1h30m, 3d, PT1H or the like. What is due happens in order."""
    show(ask(bank_url(url), "POST", "clock/advance", {"by": by}), output, _text)
