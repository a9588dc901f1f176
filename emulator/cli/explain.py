"""`bank-emulator explain`: why the signature of a captured request fails."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import TYPE_CHECKING

import click

from emulator.cli.bank import logged
from emulator.cli.failure import CheckFailed, Failed
from emulator.cli.options import bank_url, check_name, stdin, url_option
from emulator.terminal import json_text, printable

if TYPE_CHECKING:
    from emulator.api.signature.explain import Explanation

EPILOG = """\b
FILE holds the request as raw HTTP, as `curl -v` printed it, or as JSON of
the request log; - reads stdin. For a request of the log the bank's own
verdict is shown; a capture is checked again, followed by what was assumed.
Example: curl -v ... 2>&1 | bank-emulator explain -
Example: bank-emulator explain --request latest
"""
LARGEST = 64 * 1024 * 1024  # bytes


@click.command(name="explain", epilog=EPILOG)
@click.argument("file", required=False)
@click.option(
    "--request",
    "request_id",
    callback=check_name,
    metavar="ID",
    help="A request of a running bank's log; latest: the last one.",
)
@click.option("--body", metavar="FILE", help="The body, where the capture does not show it.")
@click.option(
    "--profile",
    type=click.Choice(["documented", "lenient"]),
    help="How strict the bank is that a capture was sent to.  [default: documented]",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@url_option
def command(
    file: str | None, request_id: str | None, body: str | None, profile: str | None, output: str, url: str | None
) -> None:
    """Say whether a signature is valid, and if not, why. Exit 1 when it is not."""
    if (file is None) == (request_id is None):
        raise Failed("explain takes a FILE (or -), or --request ID")
    if request_id is not None and (body or profile):
        raise Failed("--body and --profile are for a FILE; the bank has checked the requests of its log already")
    from emulator.api.signature.capture import CaptureUnreadable

    try:
        verdict = _logged(request_id, url) if request_id is not None else _checked(file or "-", body, profile)
    except CaptureUnreadable as error:
        raise Failed(f"{file or 'the log entry'}: {error}") from error
    click.echo(json_text(verdict.data, indent=2) if output == "json" else printable(verdict.text.rstrip("\n")))
    if not verdict.valid:
        raise CheckFailed("")


def _logged(request: str, url: str | None) -> Explanation:
    from emulator.api.signature.explain import explain_verdict

    entry = logged(bank_url(url), request)
    if "signature" not in entry:
        texts = "; ".join(message.get("text", message["code"]) for message in entry.get("messages", []))
        answered = f"request {entry['id']} was answered {entry['status']} before its signature was checked"
        raise Failed(f"{answered}: {texts}" if texts else answered)
    return explain_verdict(entry["signature"])


def _checked(file: str, body: str | None, profile: str | None) -> Explanation:
    from emulator.api.signature import SignaturePolicy
    from emulator.api.signature.explain import explain
    from emulator.bank.clock import real_now

    captured = _read(file)
    given = None if body is None else _bytes(body)
    policy = None if profile is None else SignaturePolicy(profile)
    return explain(captured, now=real_now(), body=given, policy=policy)


def _bytes(file: str) -> bytes:
    try:
        with Path(file).open("rb") as opened:
            return _whole(file, opened.read(LARGEST + 1))
    except OSError as error:
        raise Failed(f"{file}: {error.strerror}") from error


def _read(file: str) -> str:
    content = _whole("stdin", stdin(LARGEST + 1)) if file == "-" else _bytes(file)
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # what PowerShell writes when output is redirected
        return content.decode("utf-16", "replace")
    return content.decode("utf-8", "surrogateescape")


def _whole(name: str, content: bytes) -> bytes:
    if len(content) > LARGEST:
        raise Failed(f"{name} is longer than {LARGEST // 1024 // 1024} MiB")
    return content


COMMANDS = {"explain": command}
