"""Asks the control interface of a running bank and prints its answers; a whole command as one row of data."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlencode

import click

from emulator.cli.options import bank_options, bank_url, check_name, trusted_ca
from emulator.failure import CheckFailed, Failed, working_with
from emulator.settings import variable
from emulator.terminal import json_text, one_line

if TYPE_CHECKING:
    from emulator.scenario.transport import Running

CONTROL_TIMEOUT = 600.0  # seconds: a large `generate` takes minutes


def control_token() -> str | None:
    """The token of the control interface, from BANK_EMULATOR_CONTROL_TOKEN."""
    token = variable("CONTROL_TOKEN")
    if token is not None and not token.isprintable():  # http.client refuses it too, but its message shows the token
        raise Failed("BANK_EMULATOR_CONTROL_TOKEN holds a line break or another control character")
    return token


def connecting(timeout: float = CONTROL_TIMEOUT) -> partial[Running]:
    """Gives the bank at an address, with the token and the CA of the running command; for any thread."""
    from emulator.scenario.transport import Running

    return partial(Running, token=control_token(), ca=trusted_ca(), timeout=timeout)


def ask(url: str, method: str, path: str, body: Any = None) -> Any:
    """The JSON answer of the control interface of the bank at `url`; `path` follows `/_emulator/`.

    Raises Failed, and Refused if the bank answers 400.
    """
    return connecting()(url).ask(method, f"/{path}", body)


@contextmanager
def progress(url: str, kind: str) -> Iterator[None]:
    """Show the progress that events of this kind report, on one line of a terminal (stderr), as `advancing, 40 %`."""
    if not sys.stderr.isatty():
        yield
        return
    over = Event()
    shown = 0
    stream: Iterator[dict[str, Any]] = iter(())
    with suppress(Failed):  # the request itself fails with the same error
        # opened first: the stream has what happens from its begin on, and this thread the options
        stream = connecting()(url).events()

    def follow() -> None:
        nonlocal shown
        with suppress(Failed):
            for event in stream:
                if over.is_set():
                    return
                if event["type"] == kind and "done" in event:
                    line = f"{event['status']}, {100 * event['done'] // max(event['of'], 1)} %"
                    click.echo(f"\r{line.ljust(shown)}", nl=False, err=True)
                    shown = len(line)

    Thread(target=follow, daemon=True).start()
    try:
        yield
    finally:
        over.set()
        if shown:
            click.echo("", err=True)


def logged(bank: Running, request: str) -> dict[str, Any]:
    """One whole entry of the request log, by its number or as `latest`; raises Failed if there is none."""
    if request == "latest":
        entries = bank.ask("GET", "/requests?limit=1")["requests"]
        if not entries:
            raise Failed("the request log is empty")
        request = entries[0]["id"]
    exchange: dict[str, Any] = bank.ask("GET", f"/requests/{quote(request, safe='')}")
    return exchange


def show(value: Any, output: str, text: Callable[[Any], None]) -> None:
    """Print an answer as JSON, or by `text`."""
    if output == "json":
        click.echo(json_text(value, indent=2))
    else:
        text(value)


def rows(entries: Sequence[dict[str, Any]], *columns: str, noun: str) -> None:
    """Print members of entries in columns; a dash stands for a missing one.

    On a terminal there is also a heading. If there are no entries, stderr has the line "no <noun>".
    """
    table = [[_cell(entry.get(column)) for column in columns] for entry in entries]
    if not table:
        click.echo(f"no {noun}", err=True)
    elif sys.stdout.isatty():
        table.insert(0, list(columns))
    widths = [max((len(row[index]) for row in table), default=0) for index in range(len(columns))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def echo_notes(rules: Sequence[dict[str, Any]]) -> None:
    """Print what the author of each rule may not expect of it."""
    for rule in rules:
        for note in rule.get("notes", ()):
            click.echo(f"  {rule['name']}: {note}")


def writable_file(_context: click.Context, option: click.Parameter, file: str | None) -> str | None:
    """The callback of an option whose file is written at the end: refuses one that cannot be there, before the work."""
    if file is not None:
        folder = Path(file).absolute().parent
        why = errno.EISDIR if Path(file).is_dir() else None if folder.is_dir() else errno.ENOENT
        if why is not None:
            raise Failed(f"{option.opts[0]} {file}: {os.strerror(why)}")
    return file


def write_file(option: str, file: str, text: str) -> None:
    """Write the file that `option` names; raises Failed."""
    with working_with(f"{option} {file}"):
        Path(file).write_text(text, encoding="utf-8")


def hint(text: str, *, nl: bool = True) -> None:
    """Print `text` on stderr if that is a terminal, for people only."""
    if sys.stderr.isatty():
        click.echo(text, nl=nl, err=True)


def _cell(value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, list):
        return ", ".join(_cell(entry) for entry in value)
    if isinstance(value, dict):
        return " ".join(_cell(entry) for entry in value.values())
    return str(value).lower() if isinstance(value, bool) else one_line(str(value))


# Commands as rows of data

Text = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class ControlCommand:
    """One command: its request, method and path below `/_emulator/`, and how its answer is shown.

    `example` is what follows the name of the command in the example of its help.
    A name in braces in the path is an argument of the command; `params` go into the query of a GET or into the JSON
    body, under their names. `body` makes the body in another way. `view` selects what is shown of the answer, and
    `text` prints that for people. `failure` names what is wrong according to the answer (exit status 1), empty for
    nothing. `progress` is the kind of the events that report the progress of long work.
    """

    about: str
    request: str
    example: str = ""
    params: tuple[click.Parameter, ...] = ()
    view: Callable[[Any], Any] = lambda answer: answer
    text: Text = lambda _: None
    body: Callable[[Mapping[str, Any]], Any] | None = None
    failure: Callable[[Any], str] = lambda _: ""
    progress: str = ""

    def run(self, *, url: str | None, output: str, **values: Any) -> None:
        """Send the request and show its answer; an answer without content shows the parameters of the path instead."""
        method, _, template = self.request.partition(" ")
        in_path = {name: value for name, value in values.items() if f"{{{name}}}" in template}
        path = template.format(**{name: quote(value, safe="!=") for name, value in in_path.items()})
        others = members({name: value for name, value in values.items() if name not in in_path})
        content = others if self.body is None else self.body(others)
        if method == "GET" and content:
            try:
                path, content = f"{path}?{urlencode(content)}", None
            except UnicodeEncodeError:
                raise click.UsageError("a value is not UTF-8") from None
        with progress(bank_url(url), self.progress) if self.progress else nullcontext():
            answer = ask(bank_url(url), method, path, None if content == {} else content)
        show(in_path if answer is None else self.view(answer), output, self.text)
        if failure := self.failure(answer):
            raise CheckFailed(failure)

    def command(self, *words: str) -> click.Command:
        """The command of these words, such as `clock` and `set`."""

        @bank_options
        def run(**values: Any) -> None:
            self.run(**values)

        in_path = map(name_argument, re.findall(r"{(\w+)}", self.request))
        params = [*in_path, *self.params]
        example = " ".join(["Example: bank-emulator", *words, self.example]).rstrip()
        return click.command(words[-1], params=params, help=self.about, epilog=example)(run)


def members(values: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON members of parameters, without those that are not given."""
    given = {name: value for name, value in values.items() if value not in (None, ())}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def listing(
    about: str, noun: str, text: Text, *params: click.Option, limit: int = 20, example: str = "--output json"
) -> ControlCommand:
    """The command that lists a noun, which is the path and the member of the answer; `limit` 0: it has no limit."""
    params = (*params, limit_option(limit)) if limit else params
    return ControlCommand(about, f"GET {noun}", example, params, itemgetter(noun), text)


def name_argument(name: str, **options: Any) -> click.Argument:
    """An argument that is a name or an id; see `check_name`."""
    return click.Argument([name], callback=check_name, **options)


def limit_option(default: int) -> click.Option:
    about = "At most that many."
    return click.Option(["--limit"], metavar="N", type=click.IntRange(1, 1000), default=default, help=about)


def json_value(text: str | bytes) -> Any:
    """The value of JSON text; ValueError for other text, and for what no bank reads: deep nesting and NaN."""
    from emulator.api.json_body import DEEPEST, too_deep

    text = text if isinstance(text, str) else text.decode()
    if too_deep(text):
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    return json.loads(text, parse_constant=_no_number)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def json_body(parameter: str) -> Callable[[Mapping[str, Any]], Any]:
    """The body of a request from one argument, which is JSON."""

    def body(values: Mapping[str, Any]) -> Any:
        try:
            return json_value(values[parameter])
        except ValueError as error:
            raise click.UsageError(f"{parameter.upper()} is not JSON: {error}") from error

    return body


def table(noun: str, *columns: str) -> Text:
    """Prints one entry or a list of them; see `rows`."""
    return lambda value: rows(value if isinstance(value, list) else [value], *columns, noun=noun)


def line(member: str) -> Text:
    return lambda value: click.echo(value[member])
