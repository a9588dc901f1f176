"""`bank-emulator proxy`: signs the requests of curl or a REST client and forwards them to a bank."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from emulator.cli.bank import ask
from emulator.cli.failure import Failed
from emulator.cli.options import bank_url, check_name, identity_of, signer_options, trusted_ca, url_option
from emulator.cli.serve import ready

if TYPE_CHECKING:
    from emulator.client import AsyncTppClient

EPILOG = """\b
After an SCA the customer's browser returns to the proxy, which then adds
PSU-ID and session to every request; --login does this without a browser.
Requests from web pages of other sites are refused.
Example: bank-emulator proxy --port 9090 --login 14888520059 &
         curl http://127.0.0.1:9090/v1/accounts
"""


@click.command(name="proxy", epilog=EPILOG)
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
def command(
    port: int,
    target: str | None,
    login: str | None,
    quiet: bool,
    url: str | None,
    state: str | None,
    tpp: str,
    certificate: str | None,
    key: str | None,
) -> None:
    """Run a proxy that signs requests for a bank."""
    from emulator.client import AsyncTppClient
    from emulator.client.proxy import ANSWER_TIMEOUT, SigningProxy

    signer = identity_of(state=state, tpp=tpp, certificate=certificate, key=key)
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
    client.use_session(ask(client.base_url, "POST", "sessions", {"tpp": tpp_id, "nationalId": national_id}))
    click.echo(f"customer {national_id} is logged in", err=True)


COMMANDS = {"proxy": command}
