"""`bank-emulator explain`: why the signature of a request is not valid."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import TYPE_CHECKING

import click

from emulator.cli.bank import logged
from emulator.cli.failure import CheckFailed, Failed
from emulator.cli.options import bank_url, check_name, output_option, stdin, url_option
from emulator.terminal import json_text, printable

if TYPE_CHECKING:
    from emulator.api.signature.explain import Explanation

EPILOG = """\b
FILE holds a captured request: raw HTTP, the output of `curl -v`, or JSON of
the request log; - reads stdin. It is checked again, and what had to be
assumed is printed too. With --request the verdict of the bank is printed.
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
def command(
    file: str | None, request_id: str | None, body: str | None, profile: str | None, output: str, url: str | None
) -> None:
    """Explain why the signature of a request is valid or not. Exit 1 if it is not."""
    if (file is None) == (request_id is None):
        raise Failed("explain takes a FILE (or -), or --request ID")
    if request_id is not None and (body or profile):
        raise Failed("--body and --profile go with a FILE; requests of the log were checked by the bank")
    from emulator.api.signature.captures import CaptureUnreadable

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
            return _limited(file, opened.read(LARGEST + 1))
    except OSError as error:
        raise Failed(f"{file}: {error.strerror}") from error


def _read(file: str) -> str:
    content = _limited("stdin", stdin(LARGEST + 1)) if file == "-" else _bytes(file)
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # as PowerShell writes redirected output
        return content.decode("utf-16", "replace")
    return content.decode("utf-8", "surrogateescape")


def _limited(name: str, content: bytes) -> bytes:
    if len(content) > LARGEST:
        raise Failed(f"{name} is longer than {LARGEST // 1024 // 1024} MiB")
    return content


COMMANDS = {"explain": command}
