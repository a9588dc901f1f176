"""Signed requests to this bank or any other: `request` sends one, `proxy` signs those of curl or a REST client."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.bank.errors import STATUS
from emulator.cli.bank import ask, connecting, hint, json_value
from emulator.cli.options import bank_url, check_name, identity_of, signer_options, stdin, trusted_ca, url_option
from emulator.failure import CheckFailed, Failed, Refused, working_with
from emulator.httpsig.sendable import one_line_each
from emulator.terminal import json_text, one_line

if TYPE_CHECKING:
    from emulator.client import AsyncTppClient


EPILOG = """\b
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
TIMEOUT = 30.0  # seconds


@click.command(epilog=EPILOG)
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
    if sys.stdout is None or not sys.stdout.isatty():
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
    "--port", type=click.IntRange(0, 65535), metavar="N", default=0, help="The port to listen on; 0 picks a free one."
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
    proxy = SigningProxy(client, log=(lambda _: None) if quiet or sys.stderr is None else _log())
    try:
        asyncio.run(proxy.run("127.0.0.1", port, lambda address: ready([address])))
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


COMMANDS = {"request": request, "proxy": proxy}
