"""`requests`, `events` and `explain`: the request log and the event stream of a running bank, and why the signature of
a request is not valid."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import Any

import click

from emulator.cli.bank import ControlCommand, ask, bank_options, connecting, json_body, logged, show
from emulator.cli.options import OrderedGroup, bank_url, check_name, output_option, stdin, url_option
from emulator.failure import CheckFailed, Failed, working_with
from emulator.terminal import json_text, one_line, printable, request_line

EXPLAIN_EPILOG = """\b
FILE holds a captured request: raw HTTP, the output of `curl -v`, HAR, or JSON
of the request log; - reads stdin. It is checked again, and what had to be
assumed is printed too. With --request the verdict of the bank is printed.
Example: curl -v ... 2>&1 | bank-emulator explain -
Example: bank-emulator explain --request latest
"""


@click.group(cls=OrderedGroup, epilog="Example: bank-emulator requests tail")
def requests() -> None:
    """Follow, show, count and clear the requests of the log."""


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
        click.echo(json_text(entry) if output == "json" else request_line(entry))

    new = (
        connecting()(address).events() if follow else ()
    )  # opened first, so that no request between the list and the stream is lost
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
    click.echo(request_line(entry))
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


def _counted(answer: dict[str, Any]) -> None:
    cut = f", and perhaps {answer['cut']} of whose bodies the log has only a part" if "cut" in answer else ""
    click.echo(f"{answer['count']}{cut}")


COUNT = ControlCommand(
    "Count the requests that match MATCH. It is JSON, as `when` of a rule; it may also have a status.",
    "POST requests/count",
    """'{"operation": "createPayment"}'""",
    params=(click.Argument(["match"], default="{}"),),
    body=lambda values: {"match": json_body("match")(values)},
    text=_counted,
)
CLEAR = ControlCommand("Delete all requests from the log.", "DELETE requests")
requests.add_command(COUNT.command("requests", "count"))
requests.add_command(CLEAR.command("requests", "clear"))


@click.group(epilog="Example: bank-emulator events tail")
def events() -> None:
    """Follow the events of the bank: requests and changes."""


@events.command("tail", epilog="Example: bank-emulator events tail --output json")
@bank_options
def events_tail(url: str | None, output: str) -> None:
    """Print each event as it happens. One line each; with --output json a JSON object."""
    for event in connecting()(bank_url(url)).events():
        if output == "json":
            click.echo(json_text(event))
        elif event["type"] == "request":
            click.echo(f"request {request_line(event)}")
        else:
            line = f"{event['type']} {event.get('id', '')} {event['at']} {event.get('status', '')}"
            click.echo(one_line(line.rstrip()))


@click.command(epilog=EXPLAIN_EPILOG)
@click.argument("file", required=False)
@click.option(
    "--request",
    "request_id",
    callback=check_name,
    metavar="ID",
    help="A request of the log of a running bank, or latest.",
)
@click.option("--body", metavar="FILE", help="The body of the request, if FILE does not hold it.")
@click.option(
    "--profile",
    type=click.Choice(["documented", "lenient"]),
    help="The profile of the bank that the capture was sent to.  [default: documented]",
)
@output_option
@url_option
def explain(
    file: str | None, request_id: str | None, body: str | None, profile: str | None, output: str, url: str | None
) -> None:
    """Explain why the signature of a request is valid or not. Exit 1 if it is not."""
    if (file is None) == (request_id is None):
        raise Failed("explain takes a FILE (or -), or --request ID")
    if request_id is not None and (body or profile):
        raise Failed("--body and --profile go with a FILE; requests of the log were checked by the bank")
    from emulator.api.signature.explain import CaptureUnreadable, as_text

    try:
        verdict = _logged(request_id, url) if request_id is not None else _checked(file or "-", body, profile)
        text = as_text(verdict)
    except CaptureUnreadable as error:
        raise Failed(f"{file or 'the log entry'}: {error}") from error
    click.echo(json_text(verdict, indent=2) if output == "json" else printable(text.rstrip("\n")))
    if not verdict["valid"]:
        raise CheckFailed("")


def _logged(request: str, url: str | None) -> dict[str, Any]:
    entry = logged(bank_url(url), request)
    if "signature" not in entry:
        texts = "; ".join(message.get("text", message["code"]) for message in entry.get("messages", []))
        answered = f"request {entry['id']} was answered {entry['status']} before its signature was checked"
        raise Failed(f"{answered}: {texts}" if texts else answered)
    signature: dict[str, Any] = entry["signature"]
    return signature


def _checked(file: str, body: str | None, profile: str | None) -> dict[str, Any]:
    from emulator.api.signature.explain import explain
    from emulator.bank.clock import real_now
    from emulator.bank.settings import Settings

    captured = _read(file)
    given = None if body is None else _bytes(body)
    settings = None if profile is None else Settings(profile)
    return explain(captured, now=real_now(), body=given, settings=settings)


def _bytes(file: str) -> bytes:
    with working_with(file):
        return Path(file).read_bytes()


def _read(file: str) -> str:
    content = stdin() if file == "-" else _bytes(file)
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # as PowerShell writes redirected output
        return content.decode("utf-16", "replace")
    return content.decode("utf-8", "surrogateescape")


COMMANDS = {"requests": requests, "events": events, "explain": explain}
