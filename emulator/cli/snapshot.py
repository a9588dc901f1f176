"""`bank-emulator snapshot`: going back to how a running bank was."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from emulator.cli.bank import ask, bank_options, bank_url, named, rows, show

EPILOG = "Example: bank-emulator snapshot save before-payday"


@click.group(name="snapshot", epilog=EPILOG)
def command() -> None:
    """Documents, clock, rules and settings under a name."""


def _address(name: str) -> str:
    return f"snapshots/{quote(name, safe='')}"


@command.command("list", epilog="Example: bank-emulator snapshot list --output json")
@bank_options
def list_(url: str | None, output: str) -> None:
    """All snapshots, newest first."""
    found = ask(bank_url(url), "GET", "snapshots")["snapshots"]
    show(found, output, lambda value: rows(value, "created", "name"))


@command.command(epilog=EPILOG)
@click.argument("name", callback=named)
@bank_options
def save(name: str, url: str | None, output: str) -> None:
    """Keep the bank as it stands under NAME."""
    show(ask(bank_url(url), "PUT", _address(name)), output, _named)


@command.command(epilog="Example: bank-emulator snapshot load before-payday")
@click.argument("name", callback=named)
@bank_options
def load(name: str, url: str | None, output: str) -> None:
    """Make the bank what it was at NAME."""
    show(ask(bank_url(url), "POST", f"{_address(name)}/restore"), output, _named)


@command.command(epilog="Example: bank-emulator snapshot delete before-payday")
@click.argument("name", callback=named)
@bank_options
def delete(name: str, url: str | None, output: str) -> None:
    """Let go of NAME."""
    ask(bank_url(url), "DELETE", _address(name))
    show({"name": name}, output, _named)


def _named(answer: dict[str, Any]) -> None:
    click.echo(answer["name"])
