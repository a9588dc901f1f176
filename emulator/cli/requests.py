"""`requests` and `events`: the request log and the event stream of a running bank."""

from __future__ import annotations

from typing import Any

import click

from emulator.cli.bank import ControlCommand, ask, bank_options, json_body, line, logged, show
from emulator.cli.bank import events as stream
from emulator.cli.options import OrderedGroup, bank_url, check_name
from emulator.terminal import json_text, one_line, printable


@click.group(cls=OrderedGroup, epilog="Example: bank-emulator requests tail")
def requests() -> None:
    """Follow, show, count and clear the requests of the log."""


def _line(entry: dict[str, Any]) -> str:
    rules = f"  [{', '.join(entry['rules'])}]" if entry.get("rules") else ""
    notes = f"  ({' '.join(entry['notes'])})" if entry.get("notes") else ""
    errors = "".join(f"  {message['code']} {message.get('path', '')}".rstrip() for message in entry.get("messages", []))
    status = entry["status"] or "---"
    return one_line(
        f"{entry['id']:>6} {entry['at']} {status} {entry['method']} {entry['target']}{errors}{rules}{notes}"
    )


@requests.command(epilog="Example: bank-emulator requests tail --last 5")
@click.option(
    "--last", type=click.IntRange(0, 1000), metavar="N", default=10, show_default=True, help="Start with the last N."
)
@click.option("--follow/--no-follow", default=True, show_default=True, help="Continue with new requests.")
@bank_options
def tail(last: int, follow: bool, url: str | None, output: str) -> None:
    """Print the last requests, then each new one. One line each; with --output json a JSON object."""
    address = bank_url(url)

    def print_entry(entry: dict[str, Any]) -> None:
        click.echo(json_text(entry) if output == "json" else _line(entry))

    new = stream(address) if follow else ()  # opened first, so that no request between the list and the stream is lost
    entries = ask(address, "GET", f"requests?limit={last}")["requests"] if last else []
    for entry in reversed(entries):
        print_entry(entry)
    printed = {entry["id"] for entry in entries}
    for event in new:
        if event["type"] == "request" and event["id"] not in printed:
            print_entry(event)


@requests.command("show", epilog="Example: bank-emulator requests show latest")
@click.argument("request", callback=check_name, default="latest")
@bank_options
def show_(request: str, url: str | None, output: str) -> None:
    """Print a request with its answer and signature diagnosis. REQUEST is its number, or latest."""
    show(logged(bank_url(url), request), output, _exchange)


def _exchange(entry: dict[str, Any]) -> None:
    click.echo(_line(entry))
    _message(f"> {entry['method']} {entry['target']}", entry["request"])
    if "response" in entry:
        _message(f"< {entry['response']['status']}", entry["response"])
    signature = entry.get("signature")
    if signature is not None:
        click.echo("\nsignature: " + ("valid" if signature.get("valid") else "refused"))
        click.echo(json_text(signature, indent=2))


def _message(first: str, message: dict[str, Any]) -> None:
    click.echo(f"\n{one_line(first)}")
    for name, value in message["headers"]:
        click.echo(one_line(f"{first[0]} {name}: {value}"))
    if message["body"]:
        click.echo(printable(f"\n{message['body']}"))


COUNT = ControlCommand(
    "Count the requests that match MATCH. It is JSON, as `when` of a rule; it may also have a status.",
    "POST requests/count",
    """bank-emulator requests count '{"operation": "createPayment"}'""",
    params=(click.Argument(["match"], default="{}"),),
    body=lambda values: {"match": json_body("match")(values)},
    text=line("count"),
)
CLEAR = ControlCommand("Delete all requests from the log.", "DELETE requests", "bank-emulator requests clear")
requests.add_command(COUNT.command("count"))
requests.add_command(CLEAR.command("clear"))


@click.group(epilog="Example: bank-emulator events tail")
def events() -> None:
    """Follow the events of the bank: requests and changes."""


@events.command("tail", epilog="Example: bank-emulator events tail --output json")
@bank_options
def events_tail(url: str | None, output: str) -> None:
    """Print each event as it happens. One line each; with --output json a JSON object."""
    for event in stream(bank_url(url)):
        if output == "json":
            click.echo(json_text(event))
        elif event["type"] == "request":
            click.echo(f"request {_line(event).lstrip()}")
        else:
            line = f"{event['type']} {event.get('id', '')} {event['at']} {event.get('status', '')}"
            click.echo(one_line(line.rstrip()))


COMMANDS = {"requests": requests, "events": events}
