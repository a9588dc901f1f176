"""`bank-emulator ledger`: whether the money of a running bank adds up."""

from __future__ import annotations

from typing import Any

import click

from emulator.cli.bank import ask, bank_options, bank_url, rows, show
from emulator.cli.failure import CheckFailed


@click.command(name="ledger", epilog="Example: bank-emulator ledger --output json")
@bank_options
def command(url: str | None, output: str) -> None:
    """Every account recomputed from its bookings. Exit 1 when the money does not add up."""
    report = ask(bank_url(url), "GET", "ledger")
    show(report, output, _text)
    if not report["balanced"]:
        raise CheckFailed("the ledger does not balance")


def _text(report: dict[str, Any]) -> None:
    rows(report["accounts"], "iban", "currency", "opening", "bookings", "balance", "reserved")
    click.echo("balanced" if report["balanced"] else "NOT balanced")
