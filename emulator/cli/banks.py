"""`bank-emulator banks`: the banks of a running process."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from emulator.cli.bank import ask, bank_options, bank_url, named, rows, show

EPILOG = "Example: bank-emulator banks make test-1 --seed 7"


@click.group(name="banks", epilog=EPILOG)
def command() -> None:
    """Banks, each with its own documents, clock, rules and log."""


def _rows(banks: list[dict[str, Any]]) -> None:
    rows(banks, "name", "baseUrl")


@command.command("list", epilog="Example: bank-emulator banks list --output json")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@bank_options
def list_(limit: int, url: str | None, output: str) -> None:
    """All banks, the default one first, the others by name."""
    show(ask(bank_url(url), "GET", f"banks?limit={limit}")["banks"], output, _rows)


@command.command(epilog=EPILOG)
@click.argument("name", callback=named)
@click.option("--fixtures", metavar="NAME", help="What it is made from.")
@click.option("--scenario", metavar="NAME", help="A ready scenario to apply.")
@click.option("--seed", type=int, help="Make its ids and chances repeat.")
@bank_options
def make(name: str, fixtures: str | None, scenario: str | None, seed: int | None, url: str | None, output: str) -> None:
    """Make the bank NAME, or make it new; prints its address."""
    chosen = {"fixtures": fixtures, "scenario": scenario, "seed": seed}
    body = {name: value for name, value in chosen.items() if value is not None}
    answer = ask(bank_url(url), "PUT", f"banks/{quote(name, safe='')}", body)
    show(answer, output, lambda value: click.echo(value["baseUrl"]))


@command.command(epilog="Example: bank-emulator banks delete test-1")
@click.argument("name", callback=named)
@bank_options
def delete(name: str, url: str | None, output: str) -> None:
    """The bank NAME is no more."""
    ask(bank_url(url), "DELETE", f"banks/{quote(name, safe='')}")
    show({"name": name}, output, lambda _: None)
