"""`bank-emulator mcp`: the bank for agents."""

from __future__ import annotations

import os
import re
import signal
from contextlib import closing
from typing import TYPE_CHECKING

import click

from emulator.cli.bank import control_token, hint
from emulator.cli.options import data_option, state_option, url_option
from emulator.failure import Failed, needs_extra, working_with
from emulator.signals import ending_signals

if TYPE_CHECKING:
    from emulator.agents.desk import Desk

PAGE = "agents"
EPILOG = """\b
An agent starts it, such as by {"command": "bank-emulator", "args": ["mcp"]}.
Example: bank-emulator mcp --http 8765
"""


@click.command(name="mcp", epilog=EPILOG)
@click.option("--http", metavar="[HOST:]PORT", help="Serve streamable HTTP here, at /mcp; 0 picks a free port.")
@click.option("--command", "shell", metavar="CMD", help="The command that runs your client, for the tool run_checks.")
@url_option
@state_option
@data_option
@click.pass_context
def command(context: click.Context, /, http: str | None, **_: str | None) -> None:
    """Serve the bank to agents by the Model Context Protocol."""
    host, port = _address(http)
    if host not in ("127.0.0.1", "localhost", "::1") and control_token() is None:
        raise Failed(
            f"--http {http} can be reached from other machines and requires BANK_EMULATOR_CONTROL_TOKEN", page=PAGE
        )
    with needs_extra("mcp", "mcp", page=PAGE):
        from emulator.agents.server import BankServer, serve_http
    from emulator.agents.desk import Desk
    from emulator.cli.serve import ready

    with closing(Desk(context)) as desk:
        server = BankServer(desk)
        if http is None:
            hint("It speaks the Model Context Protocol on stdin and stdout; an agent starts it. Ctrl+C ends it.")
            # A thread waits for stdin, which would keep the process from ending in the usual way.
            for number in ending_signals():
                signal.signal(number, lambda *_: _end(desk))
            server.run("stdio")
            return
        with working_with(f"--http {http}", page=PAGE):
            serve_http(
                server,
                host,
                port,
                token=control_token(),
                listening=lambda address: ready([address]),
                ending=desk.stop,
            )


def _address(http: str | None) -> tuple[str, int]:
    host, _, port = (http or "0").rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise Failed(f"--http {http}: takes PORT or HOST:PORT, with a port from 0 to 65535", page=PAGE)
    return host.strip("[]") or "127.0.0.1", int(port)


def _end(desk: Desk) -> None:
    desk.close()
    os._exit(0)


COMMANDS = {"mcp": command}
