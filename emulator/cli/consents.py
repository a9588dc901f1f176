"""`bank-emulator consents`: who shares what with whom at a running bank."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from emulator.cli.bank import ask, bank_options, bank_url, named, rows, show

EPILOG = "Example: bank-emulator consents revoke 3f2b..."


@click.group(name="consents", epilog=EPILOG)
def command() -> None:
    """Consents: all of them, and taking one back as the customer."""


def _rows(consents: list[dict[str, Any]]) -> None:
    rows(consents, "lastSca", "status", "tpp", "nationalId", "context", "consentId")


@command.command("list", epilog="Example: bank-emulator consents list --output json")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@bank_options
def list_(limit: int, url: str | None, output: str) -> None:
    """All consents, newest first."""
    show(ask(bank_url(url), "GET", f"consents?limit={limit}")["consents"], output, _rows)


@command.command(epilog=EPILOG)
@click.argument("consent", callback=named)
@bank_options
def revoke(consent: str, url: str | None, output: str) -> None:
    """The customer takes CONSENT back at the bank."""
    answer = ask(bank_url(url), "POST", f"consents/{quote(consent, safe='!=')}/revoke")
    show(answer, output, lambda value: _rows([value]))
