"""The requests of a TPP, signed and sent by `request` and `proxy`, followed by `requests` and `events`, and explained.

`explain` tells why the signature of a request is not valid, be it of the log or captured elsewhere.
"""

from __future__ import annotations

import logging
import os
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.bank.errors import STATUS
from emulator.cli.bank import ControlCommand, ask, connecting, hint, json_body, json_value, logged, show
from emulator.cli.options import (
    OrderedGroup,
    bank_options,
    bank_url,
    check_name,
    identity_of,
    output_option,
    signer_options,
    stdin,
    trusted_ca,
    url_option,
)
from emulator.failure import CheckFailed, Failed, Refused, working_with
from emulator.httpsig.sendable import one_line_each
from emulator.terminal import json_text, one_line, printable, request_line

if TYPE_CHECKING:
    from emulator.client import AsyncTppClient

REQUEST_EPILOG = """\b
Headers that every request needs are added unless -H sets them;
-H 'Name;' omits one. A Signature set with -H is sent unchanged.
Example: bank-emulator request GET /v1/accounts -H 'Accept-Language: nb'
Example: bank-emulator request POST /v1/payments/sepa-credit-transfers \\
           --json @payment.json
"""
PROXY_EPILOG = """\b
After an SCA the customer's browser returns to the proxy, which then adds
PSU-ID and session to every request; --login does this without a browser.
Requests from web pages of other sites are refused.
Example: bank-emulator proxy --port 9090 --login 14888520059 &
         curl http://127.0.0.1:9090/v1/accounts
"""
EXPLAIN_EPILOG = """\b
FILE holds a captured request: raw HTTP, the output of `curl -v`, HAR, or JSON
of the request log; - reads stdin. It is checked again, and what had to be
assumed is printed too. With --request the verdict of the bank is printed.
Example: curl -v ... 2>&1 | bank-emulator explain -
Example: bank-emulator explain --request latest
"""
TIMEOUT = 30.0  # seconds


@click.command(epilog=REQUEST_EPILOG)
@click.argument("method")
@click.argument("path")
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="'Name: value'", help="Set a header; may be repeated."
)
@click.option("--json", "content", metavar="TEXT|@FILE", help="The body, sent unchanged; @- reads stdin.")
@click.option("-i", "--include", is_flag=True, help="Also print status and headers of the answer (stderr).")
@click.option("--fail", is_flag=True, help="Exit with 1 if the status is 400 or above.")
@url_option
@signer_options
def request(
    method: str,
    path: str,
    headers: tuple[str, ...],
    content: str | None,
    include: bool,
    fail: bool,
    url: str | None,
    **signing: Any,
) -> None:
    """Send a signed request and print the answer. Its status goes to stderr."""
    from emulator.client.clients import Tpp

    address = bank_url(url)
    signer = identity_of(**signing)
    try:
        prepared = Tpp(address, signer).prepare(method, path, body=_body(content), headers=_headers(headers))
        prepared.check()
    except ValueError as error:
        raise Failed(str(error)) from error
    answer = connecting(TIMEOUT)(address).send(prepared)
    if answer.lost:
        raise Failed(f"{address} closed the connection without an answer")
    click.echo(f"HTTP {answer.status}", err=True)
    if include:
        for name, value in answer.headers:
            click.echo(one_line(f"{name}: {value}"), err=True)
    if answer.body:
        click.echo(_formatted(answer.body))
    if answer.status >= 400 and (code := _code(answer.body)):
        hint(f"  next     bank-emulator docs {code}")
    if fail and answer.status >= 400:
        raise CheckFailed("")


def _body(content: str | None) -> bytes | None:
    if content is None or not content.startswith("@"):
        return None if content is None else content.encode("utf-8", "surrogateescape")
    with working_with(f"--json {content}"):
        return stdin() if content == "@-" else Path(content[1:]).read_bytes()


def _headers(given: tuple[str, ...]) -> dict[str, str | None]:
    headers: list[tuple[str, str | None]] = []
    for text in given:
        name, colon, value = text.partition(":")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise Failed(f"-H {name}: UTF-8 was expected")
        if not colon and text.endswith(";"):
            headers.append((text[:-1].strip(), None))
        elif colon and name.strip():
            headers.append((name.strip(), value.strip()))
        else:
            raise Failed(f"-H takes 'Name: value' (or 'Name;' to omit one), not {text!r}")
    return one_line_each(headers)


def _formatted(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    if not sys.stdout.isatty():
        return text
    try:
        return json_text(json_value(text), indent=2)
    except ValueError:
        return text


def _code(body: bytes) -> str | None:
    """The first error code of a refusal, if the manual has a section about it."""
    try:
        code = json_value(body)["tppMessages"][0]["code"]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return code if isinstance(code, str) and code in STATUS else None


@click.command(epilog=PROXY_EPILOG)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    show_default=False,
    help="The port to listen on; 0 picks a free one.",
)
@click.option("--to", "target", metavar="URL", help="The bank to forward to, instead of --url; http or https.")
@click.option(
    "--login",
    metavar="NATIONAL-ID",
    callback=check_name,
    help="Log this customer in without a browser; works with this emulator only.",
)
@click.option("--quiet", is_flag=True, help="Do not log requests to stderr.")
@url_option
@signer_options
def proxy(
    port: int,
    target: str | None,
    login: str | None,
    quiet: bool,
    url: str | None,
    **signing: Any,
) -> None:
    """Run a proxy that signs requests for a bank."""
    import asyncio

    from emulator.cli.serve import ready
    from emulator.client import AsyncTppClient
    from emulator.client.proxy import ANSWER_TIMEOUT, SigningProxy

    signer = identity_of(**signing)
    bank = bank_url(target, "--to") if target else bank_url(url)
    try:
        client = AsyncTppClient(bank, signer, ca=trusted_ca(), timeout=ANSWER_TIMEOUT)
    except ValueError as error:
        raise Failed(str(error)) from error
    except OSError as error:
        raise Failed(f"{trusted_ca()} cannot be read as a CA: {error.strerror or error}") from error
    if login is not None:
        _log_in(client, login)
    proxy = SigningProxy(client, log=(lambda _: None) if quiet else _log())
    try:
        asyncio.run(proxy.run(port, lambda address: ready([address])))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)  # without what asyncio adds
        raise Failed(f"--port {port}: {reason}") from error


def _log() -> Callable[[str], None]:
    """Writes lines on stderr; a request waits for no reader of them."""
    from emulator.cli.logs import LineWriter

    writer = LineWriter(sys.stderr.fileno())
    return lambda text: writer.emit(logging.makeLogRecord({"msg": text}))


def _log_in(client: AsyncTppClient, national_id: str) -> None:
    """Create a session and a consent at the bank, as an SCA that the customer approves does."""
    from emulator.api.certificates import read_certificate

    tpp_id = read_certificate(client.identity.header).tpp.id
    try:
        client.use_session(ask(client.base_url, "POST", "sessions", {"tpp": tpp_id, "nationalId": national_id}))
    except Refused as error:
        raise Failed(f"--login {national_id}: {error.messages[0]['text']}") from error
    click.echo(f"customer {national_id} is logged in", err=True)


@click.group(cls=OrderedGroup, epilog="Example: bank-emulator requests tail")
def requests() -> None:
    """Follow, show, count and clear the requests of the log."""


@requests.command(epilog="Example: bank-emulator requests tail --last 5")
@click.option("--last", type=click.IntRange(0, 1000), metavar="N", default=10, help="Start with the last N.")
@click.option("--follow/--no-follow", default=True, help="Continue with new requests.")
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
    show(logged(connecting()(bank_url(url)), request), output, _exchange)


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
    entry = logged(connecting()(bank_url(url)), request)
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


COMMANDS = {"request": request, "proxy": proxy, "requests": requests, "events": events, "explain": explain}
