"""`bank-emulator reset`: a running bank made new."""

from __future__ import annotations

import click

from emulator.cli.bank import ask, bank_options, bank_url, show


@click.command(name="reset", epilog="Example: bank-emulator reset --fixtures known-state --scenario slow-bank")
@click.option("--fixtures", metavar="NAME", help="What it is made from; left out: what the bank was made with.")
@click.option("--scenario", metavar="NAME", help="A ready scenario to apply afterwards.")
@bank_options
def command(fixtures: str | None, scenario: str | None, url: str | None, output: str) -> None:
    """The whole bank new. Documents, clock, settings, rules and request log begin anew; snapshots stay."""
    chosen = {"fixtures": fixtures, "scenario": scenario}
    answer = ask(bank_url(url), "POST", "reset", {name: value for name, value in chosen.items() if value is not None})
    show(answer, output, lambda value: click.echo(f"{value['fixtures']} {value['scenario'] or ''}".rstrip()))
