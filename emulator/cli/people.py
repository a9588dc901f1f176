"""`bank-emulator people`: everybody whom a running bank knows."""

from __future__ import annotations

from typing import Any

import click

from emulator.cli.bank import ask, bank_options, bank_url, rows, show


@click.command(name="people", epilog="Example: bank-emulator people --output json")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@bank_options
def command(limit: int, url: str | None, output: str) -> None:
    """People with identity number, accounts and agreements. Newest first."""
    show(ask(bank_url(url), "GET", f"people?limit={limit}")["people"], output, _text)


def _text(people: list[dict[str, Any]]) -> None:
    shown = [
        {
            **person,
            "accounts": [f"{account['iban']} {account['currency']}" for account in person["accounts"]],
            "agreements": [agreement["name"] for agreement in person["agreements"]],
        }
        for person in people
    ]
    rows(shown, "nationalId", "name", "accounts", "agreements")
