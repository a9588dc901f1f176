"""`bank-emulator sca`: customers of a running bank authenticate without a browser."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from emulator.cli.bank import ask, bank_options, bank_url, named, rows, show

EPILOG = "Example: bank-emulator sca approve latest --national-id 14888520059"


@click.group(name="sca", epilog=EPILOG)
def command() -> None:
    """Approve or reject what waits for a customer.

    TARGET is the last part of a scaRedirect address (or the whole address), the id of a payment, basket or consent,
    or latest.
    """


def _address(target: str, word: str) -> str:
    return f"sca/{quote(target.rstrip('/').rpartition('/')[2], safe='!=')}/{word}"


def _redirect(answer: dict[str, Any]) -> None:
    click.echo(answer["redirect"] or "the customer left; there is no redirect")


@command.command("list", epilog="Example: bank-emulator sca list --output json")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@bank_options
def list_(limit: int, url: str | None, output: str) -> None:
    """Open and past authentications, newest first."""
    found = ask(bank_url(url), "GET", f"sca?limit={limit}")["sca"]
    show(found, output, lambda value: rows(value, "created", "status", "purpose", "nationalId", "target", "id"))


@command.command(epilog=EPILOG)
@click.argument("target", callback=named, default="latest")
@click.option("--national-id", help="Who approves, where the request has not said it.")
@click.option("--method", help="How the customer authenticates.")
@click.option("--context", type=click.Choice(["PRIVATE", "CORPORATE"]))
@click.option("--agreement", help="The psuCorporateId of an agreement; left out: the first.")
@click.option("--account", "accounts", multiple=True, help="IBAN, BBAN or resourceId to share; may be repeated.")
@bank_options
def approve(
    target: str,
    national_id: str | None,
    method: str | None,
    context: str | None,
    agreement: str | None,
    accounts: tuple[str, ...],
    url: str | None,
    output: str,
) -> None:
    """Approve TARGET; prints where the browser would go."""
    chosen = {
        "nationalId": national_id,
        "method": method,
        "context": context,
        "agreement": agreement,
        "accounts": list(accounts) or None,
    }
    body = {name: value for name, value in chosen.items() if value is not None}
    show(ask(bank_url(url), "POST", _address(target, "approve"), body), output, _redirect)


@command.command(epilog="Example: bank-emulator sca reject latest")
@click.argument("target", callback=named, default="latest")
@bank_options
def reject(target: str, url: str | None, output: str) -> None:
    """The customer declines TARGET."""
    show(ask(bank_url(url), "POST", _address(target, "reject")), output, _redirect)


@command.command(epilog="Example: bank-emulator sca expire latest")
@click.argument("target", callback=named, default="latest")
@bank_options
def expire(target: str, url: str | None, output: str) -> None:
    """The customer is too late for TARGET."""
    show(ask(bank_url(url), "POST", _address(target, "expire")), output, _redirect)


@command.command(epilog="Example: bank-emulator sca fail latest --status 503 --system core")
@click.argument("target", callback=named, default="latest")
@click.option("--status", type=click.IntRange(400, 599))
@click.option("--code", help="A code of SPEC 7.")
@click.option("--message")
@click.option("--system", help="The internal system at fault.")
@bank_options
def fail(
    target: str,
    status: int | None,
    code: str | None,
    message: str | None,
    system: str | None,
    url: str | None,
    output: str,
) -> None:
    """A system of the bank fails during TARGET."""
    failure = {"status": status, "code": code, "message": message, "system": system}
    body = {name: value for name, value in failure.items() if value is not None}
    show(ask(bank_url(url), "POST", _address(target, "fail"), body), output, _redirect)
