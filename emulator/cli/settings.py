"""`bank-emulator settings`: what a running bank does differently."""

from __future__ import annotations

import json
from typing import Any

import click

from emulator.cli.bank import ask, bank_options, bank_url, show

EPILOG = "Example: bank-emulator settings progression=immediate calendar=norway"


@click.command(name="settings", epilog=EPILOG)
@click.argument("changes", nargs=-1, metavar="[NAME=VALUE]...")
@bank_options
def command(changes: tuple[str, ...], url: str | None, output: str) -> None:
    """Show all settings; with NAME=VALUE change these first. A VALUE that is JSON is taken as such."""
    address = bank_url(url)
    if changes:
        answer = ask(address, "PUT", "settings", dict(_change(change) for change in changes))
    else:
        answer = ask(address, "GET", "settings")
    show(answer, output, _text)


def _change(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"a change is written NAME=VALUE, not {text!r}")
    if name.endswith("_limit"):
        return name, value  # an amount is text
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _text(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        click.echo(f"{name}={value if isinstance(value, str) else json.dumps(value)}")
