"""`bank-emulator proxy`: plain curl or a REST client talks to a bank through it, signed."""

from __future__ import annotations

import asyncio
import os

import click

from emulator.cli.failure import Failed
from emulator.cli.options import bank_url, identity_of, signer_options, trusted_ca, url_option
from emulator.cli.serve import ready

EPILOG = """\b
After an SCA the customer's browser comes back to the proxy, which sends
PSU-ID and session from then on.
Example: bank-emulator proxy --port 9090 &
         curl http://127.0.0.1:9090/v1/accounts
"""


@click.command(name="proxy", epilog=EPILOG)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on; 0 picks a free one.")
@click.option("--to", "target", metavar="URL", help="The bank to pass requests on to, http or https.")
@click.option("--quiet", is_flag=True, help="Do not log requests on stderr.")
@url_option
@signer_options
def command(
    port: int,
    target: str | None,
    quiet: bool,
    url: str | None,
    state: str | None,
    tpp: str,
    certificate: str | None,
    key: str | None,
) -> None:
    """Sign what comes in and forward it to a bank."""
    from emulator.client import AsyncTppClient
    from emulator.client.proxy import PATIENCE, SigningProxy

    signer = identity_of(state=state, tpp=tpp, certificate=certificate, key=key)
    bank = bank_url(target, "--to") if target else bank_url(url)
    try:
        client = AsyncTppClient(bank, signer, ca=trusted_ca(), timeout=PATIENCE)
    except ValueError as error:
        raise Failed(str(error)) from error
    except OSError as error:
        raise Failed(f"{trusted_ca()} cannot be read as a CA: {error.strerror or error}") from error
    proxy = SigningProxy(client, log=(lambda _: None) if quiet else (lambda text: click.echo(text, err=True)))
    try:
        asyncio.run(proxy.run("127.0.0.1", port, lambda address: ready([address])))
    except OSError as error:
        told = os.strerror(error.errno) if error.errno else str(error)  # asyncio wraps it in words of its own
        raise Failed(f"--port {port}: {told}") from error


COMMANDS = {"proxy": command}
