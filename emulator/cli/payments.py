"""`bank-emulator payments`: the payments of a running bank."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from emulator.cli.bank import ask, bank_options, bank_url, named, rows, show

EPILOG = "Example: bank-emulator payments advance 3f2b... --to ACSC"


@click.group(name="payments", epilog=EPILOG)
def command() -> None:
    """Payments: all of them, and the next status by hand."""


def _rows(payments: list[dict[str, Any]]) -> None:
    columns = ("created", "transactionStatus", "service", "product", "instructedAmount", "creditorName", "paymentId")
    rows(payments, *columns)


@command.command("list", epilog="Example: bank-emulator payments list --output json")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@bank_options
def list_(limit: int, url: str | None, output: str) -> None:
    """All payments, newest first."""
    show(ask(bank_url(url), "GET", f"payments?limit={limit}")["payments"], output, _rows)


@command.command(epilog=EPILOG)
@click.argument("payment", callback=named)
@click.option("--to", metavar="STATUS", help="Go to this status; left out: one step.")
@bank_options
def advance(payment: str, to: str | None, url: str | None, output: str) -> None:
    """Take the next step of PAYMENT, or go to a status. Dates and missing money are no hindrance."""
    body = {} if to is None else {"to": to}
    answer = ask(bank_url(url), "POST", f"payments/{quote(payment, safe='!=')}/advance", body)
    show(answer, output, lambda value: _rows([value]))
