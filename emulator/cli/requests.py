"""`bank-emulator requests`: what a running bank was asked, and what it answered."""

from __future__ import annotations

import json
from typing import Any

import click

from emulator.cli.bank import ask, bank_options, bank_url, events, logged, named, show

EPILOG = "Example: bank-emulator requests tail"


@click.group(name="requests", epilog=EPILOG)
def command() -> None:
    """The request log: follow it, look at one whole, count, clear."""


def _line(entry: dict[str, Any]) -> str:
    rules = f"  [{', '.join(entry['rules'])}]" if entry.get("rules") else ""
    wrong = "".join(f"  {message['code']} {message.get('path', '')}".rstrip() for message in entry.get("messages", []))
    status = entry["status"] or "---"
    return f"{entry['id']:>6} {entry['at']} {status} {entry['method']} {entry['target']}{wrong}{rules}"


@command.command(epilog=EPILOG)
@click.option("--last", type=click.IntRange(0, 1000), default=10, show_default=True, help="Begin with so many.")
@click.option("--follow/--no-follow", default=True, show_default=True, help="Go on with what comes.")
@bank_options
def tail(last: int, follow: bool, url: str | None, output: str) -> None:
    """The last requests, then each as it comes. One line each, with --output json a JSON object."""
    address = bank_url(url)

    def tell(entry: dict[str, Any]) -> None:
        click.echo(json.dumps(entry, ensure_ascii=False) if output == "json" else _line(entry))

    coming = events(address) if follow else ()  # before the list is asked for: what comes meanwhile is in one of them
    shown = ask(address, "GET", f"requests?limit={last}")["requests"] if last else []
    for entry in reversed(shown):
        tell(entry)
    known = {entry["id"] for entry in shown}
    for event in coming:
        if event["type"] == "request" and event["id"] not in known:
            tell(event)


@command.command("show", epilog="Example: bank-emulator requests show latest")
@click.argument("request", callback=named, default="latest")
@bank_options
def show_(request: str, url: str | None, output: str) -> None:
    """One exchange whole, with the diagnosis of its signature. REQUEST is its number, or latest."""
    show(logged(bank_url(url), request), output, _exchange)


def _exchange(entry: dict[str, Any]) -> None:
    click.echo(_line(entry))
    _message(f"> {entry['method']} {entry['target']}", entry["request"])
    if "response" in entry:
        _message(f"< {entry['response']['status']}", entry["response"])
    signature = entry.get("signature")
    if signature is not None:
        click.echo("\nsignature: " + ("valid" if signature.get("valid") else "refused"))
        click.echo(json.dumps(signature, indent=2, ensure_ascii=False))


def _message(first: str, message: dict[str, Any]) -> None:
    click.echo(f"\n{first}")
    for name, value in message["headers"]:
        click.echo(f"{first[0]} {name}: {value}")
    if message["body"]:
        click.echo(f"\n{message['body']}")


@command.command(epilog="""Example: bank-emulator requests count '{"operation": "createPayment", "status": 201}'""")
@click.argument("match", default="{}")
@bank_options
def count(match: str, url: str | None, output: str) -> None:
    """How many requests fit MATCH. It is JSON of what `when` is in a rule, with status besides."""
    try:
        wanted = json.loads(match)
    except ValueError as error:
        raise click.UsageError(f"MATCH is no JSON: {error}") from error
    answer = ask(bank_url(url), "POST", "requests/count", {"match": wanted})
    show(answer, output, lambda value: click.echo(value["count"]))


@command.command(epilog="Example: bank-emulator requests clear")
@bank_options
def clear(url: str | None, output: str) -> None:
    """Forget all requests."""
    ask(bank_url(url), "DELETE", "requests")
    show({}, output, lambda _: None)
