"""`bank-emulator explain`: why the signature of a captured request fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from emulator.cli.failure import CheckFailed, Failed
from emulator.cli.folders import bank_url, url_option

EPILOG = """\b
FILE holds the request as raw HTTP, as `curl -v` printed it, or as JSON of the request log; - reads stdin.
Example: curl -v ... 2>&1 | bank-emulator explain -
Example: bank-emulator explain --request latest
"""
LARGEST = 4 * 1024 * 1024


@click.command(name="explain", epilog=EPILOG)
@click.argument("file", required=False)
@click.option("--request", "request_id", metavar="ID", help="A request of a running bank's log; latest: the last one.")
@click.option("--body", metavar="FILE", help="The body, where the capture does not show it.")
@click.option("--profile", type=click.Choice(["documented", "lenient"]), default="documented", show_default=True)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@url_option
def command(
    file: str | None, request_id: str | None, body: str | None, profile: str, output: str, url: str | None
) -> None:
    """Say whether a signature holds, and if not, why; exit 1 when it does not."""
    from emulator.api.signature import SignaturePolicy
    from emulator.api.signature.explain import CaptureUnreadable, explain
    from emulator.bank.clock import real_now

    if (file is None) == (request_id is None):
        raise Failed("explain takes a FILE (or -), or --request ID")
    captured = _read(file) if file is not None else _from_log(request_id or "latest", url)
    given = None if body is None else _bytes(body)
    policy = SignaturePolicy("lenient" if profile == "lenient" else "documented")
    try:
        found = explain(captured, now=real_now(), body=given, policy=policy)
    except CaptureUnreadable as error:
        raise Failed(f"{file or 'the log entry'}: {error}") from error
    click.echo(json.dumps(found.data, indent=2, ensure_ascii=False) if output == "json" else found.text)
    if not found.valid:
        raise CheckFailed("")


def _bytes(file: str) -> bytes:
    try:
        with Path(file).open("rb") as opened:
            return opened.read(LARGEST)
    except OSError as error:
        raise Failed(f"{file}: {error.strerror}") from error


def _read(file: str) -> str:
    content = sys.stdin.buffer.read(LARGEST) if file == "-" else _bytes(file)
    return content.decode("utf-8", "surrogateescape")


def _from_log(request_id: str, url: str | None) -> str:
    from emulator.cli.bank import ask

    if request_id == "latest":
        entries = ask(bank_url(url), "GET", "requests?limit=1")["requests"]
        if not entries:
            raise Failed("the log is empty")
        request_id = entries[0]["id"]
    return json.dumps(ask(bank_url(url), "GET", f"requests/{request_id}"))
