"""Talking to the control interface of a running bank, for the commands that do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import click

from emulator.cli.failure import Failed, Refused
from emulator.cli.folders import bank_url, trusted_ca, url_option
from emulator.settings import variable

if TYPE_CHECKING:
    from emulator.scenario.transport import Answer, Running

Command = TypeVar("Command", bound=Callable[..., Any])

LONGEST_WAIT = 600.0  # seconds: a large `generate` takes a while


def bank_options(command: Command) -> Command:
    """The options --url and --output of a command that asks a running bank."""
    output = click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
    return url_option(output(command))


def named(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Refuse an empty name or id, as a variable gives that was not set: its address is that of all there are.

    One whose bytes are no UTF-8 has no address.
    """
    if value == "":
        raise click.BadParameter("it is empty", context, option)
    try:
        quote(value or "")
    except UnicodeEncodeError:
        raise click.BadParameter("it is not UTF-8", context, option) from None
    return value


def control_token() -> str | None:
    """The token that the control interface asks for, from BANK_EMULATOR_CONTROL_TOKEN."""
    token = variable("CONTROL_TOKEN")
    if token is not None and not token.isprintable():  # what refuses it further on would show it
        raise Failed("BANK_EMULATOR_CONTROL_TOKEN holds a line break or another control character")
    return token


def reached(url: str, ask_it: Callable[[Running], Answer], *, patience: float) -> Answer:
    """What the bank at `url` answers within `patience` seconds; Failed when none comes."""
    from emulator.scenario.transport import Running, TransportFailed

    try:
        answer = ask_it(Running(url, token=control_token(), ca=trusted_ca(), timeout=patience))
    except TransportFailed as failed:
        raise Failed(str(failed)) from failed
    except OSError as error:
        raise Failed(f"{url} does not answer: {error}") from error
    if answer.lost:
        raise Failed(f"{url} closed the connection without an answer")
    return answer


def ask(url: str, method: str, path: str, body: Any = None) -> Any:
    """What the control interface of the bank at `url` answers; `path` follows `/_emulator/`. Failed, Refused."""
    if body is None and method in ("POST", "PUT"):
        body = {}
    answer = reached(url, lambda bank: bank.control(method, f"/{path}", body), patience=LONGEST_WAIT)
    return _told(url, answer)


def _told(url: str, answer: Answer) -> Any:
    """What an answer of the control interface says; Failed where something else than a bank gives it, Refused."""
    value = answer.json()
    if answer.status != 204 and not isinstance(value, dict):
        raise _stranger(url)
    if answer.status >= 400:
        raise _refused(value, answer.status)
    return value


def _stranger(url: str) -> Failed:
    return Failed(f"{url} answers, but not as a bank does; is that another program?")


def logged(url: str, request: str) -> dict[str, Any]:
    """One exchange of a bank's log whole, by its number or as `latest`; Failed when it is not there."""
    if request == "latest":
        entries = ask(url, "GET", "requests?limit=1")["requests"]
        if not entries:
            raise Failed("the log is empty")
        request = entries[0]["id"]
    found: dict[str, Any] = ask(url, "GET", f"requests/{quote(request, safe='')}")
    return found


def _refused(value: dict[str, Any], status: int) -> Failed:
    """A refusal, its sentences in one line."""
    messages = value.get("tppMessages")
    if not messages:
        return Failed(f"the bank answered {status}")
    told = [f"{entry['path']}: {entry['text']}" if entry.get("path") else entry["text"] for entry in messages]
    hint = ""
    if status == 401:
        hint = f" (BANK_EMULATOR_CONTROL_TOKEN {'is another token' if control_token() else 'is not set'})"
    return Refused("; ".join(told), messages) if status == 400 else Failed("; ".join(told) + hint)


def show(value: Any, output: str, text: Callable[[Any], None]) -> None:
    """Print an answer as JSON, or by `text`."""
    if output == "json":
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        text(value)


def rows(entries: Sequence[dict[str, Any]], *columns: str) -> None:
    """Print the named members of entries in columns; what is missing is a dash. People are told what each column is."""
    table = [[_cell(entry.get(column)) for column in columns] for entry in entries]
    if table and sys.stdout is not None and sys.stdout.isatty():
        table.insert(0, list(columns))
    widths = [max((len(row[index]) for row in table), default=0) for index in range(len(columns))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _cell(value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, list):
        return ", ".join(_cell(entry) for entry in value)
    if isinstance(value, dict):
        return " ".join(_cell(entry) for entry in value.values())
    return str(value).lower() if isinstance(value, bool) else str(value)


def events(url: str) -> Iterator[dict[str, Any]]:
    """What happens at a bank from this call on, until it stops; raises Failed."""
    from http.client import HTTPException

    from emulator.scenario.transport import EVENTS, Answer, TransportFailed, connection_to

    try:
        connection = connection_to(url, ca=trusted_ca())
    except TransportFailed as failed:
        raise Failed(str(failed)) from failed
    headers = {"Authorization": f"Bearer {control_token()}"} if control_token() else {}
    try:
        connection.request("GET", f"{urlsplit(url).path}/_emulator/events", headers=headers)
        answer = connection.getresponse()
        if not (answer.getheader("Content-Type") or "").startswith(EVENTS):
            _told(url, Answer(answer.status, body=answer.read()))
            raise _stranger(url)
    except (OSError, HTTPException) as error:
        raise Failed(f"{url} does not answer: {error}") from error

    def told() -> Iterator[dict[str, Any]]:
        with closing(connection):
            try:
                while line := answer.readline():
                    if line.startswith(b"data: "):
                        yield json.loads(line[6:])
            except (OSError, HTTPException) as error:
                raise Failed(f"{url} does not answer: {error}") from error

    return told()


__all__ = ["ask", "bank_options", "bank_url", "control_token", "events", "logged", "named", "reached", "rows", "show"]
