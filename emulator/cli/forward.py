"""A command that forwards to the control interface of a running bank, as one row of data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from urllib.parse import quote, urlencode

import click

from emulator.cli.bank import ask, bank_options, progress, rows, show
from emulator.cli.failure import CheckFailed
from emulator.cli.options import bank_url, check_name

Text = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class ControlCommand:
    """One command: its request, method and path below `/_emulator/`, and how its answer is shown.

    A name in braces in the path is an argument of the command; `params` go into the query of a GET or into the JSON
    body, in camel case. `body` makes the body in another way. `view` selects what is shown of the answer, and `text`
    prints that for people. `failure` names what is wrong according to the answer (exit status 1), empty for nothing.
    `progress` is the kind of the events that report the progress of long work.
    """

    about: str
    request: str
    example: str
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
        others = {name: value for name, value in values.items() if name not in in_path}
        content = self.body(others) if self.body is not None else members(others)
        if method == "GET" and content:
            path, content = f"{path}?{urlencode(content)}", None
        with progress(bank_url(url), self.progress, percent) if self.progress else nullcontext():
            answer = ask(bank_url(url), method, path, None if content == {} else content)
        show(in_path if answer is None else self.view(answer), output, self.text)
        if failure := self.failure(answer):
            raise CheckFailed(failure)

    def command(self, name: str) -> click.Command:
        """The click command of this row."""

        @bank_options
        def run(**values: Any) -> None:
            self.run(**values)

        in_path = map(name_argument, re.findall(r"{(\w+)}", self.request))
        params = [*in_path, *self.params]
        return click.command(name, params=params, help=self.about, epilog=f"Example: {self.example}")(run)


def percent(event: Mapping[str, Any]) -> str:
    """How far long work is, as `advancing, 40 %`."""
    return f"{event['status']}, {100 * event['done'] // max(event['of'], 1)} %"


def members(values: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON members of parameters: in camel case, without those that are not given."""
    lists = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {_camel_case(name): value for name, value in lists.items() if value is not None and value != []}


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def listing(about: str, noun: str, text: Text, *, limit: int = 20) -> ControlCommand:
    """The command `list` of a noun, which is the path and the member of the answer."""
    return ControlCommand(
        about,
        f"GET {noun}",
        f"bank-emulator {noun} list --output json",
        params=(limit_option(limit),),
        view=itemgetter(noun),
        text=text,
    )


def name_argument(name: str, **options: Any) -> click.Argument:
    """An argument that is a name or an id; see `check_name`."""
    return click.Argument([name], callback=check_name, **options)


def limit_option(default: int) -> click.Option:
    """The option --limit of a list."""
    about = "At most that many."
    return click.Option(
        ["--limit"], metavar="N", type=click.IntRange(1, 1000), default=default, show_default=True, help=about
    )


def json_body(parameter: str) -> Callable[[Mapping[str, Any]], Any]:
    """The body of a request from one argument, which is JSON."""

    def body(values: Mapping[str, Any]) -> Any:
        try:
            return json.loads(values[parameter])
        except ValueError as error:
            raise click.UsageError(f"{parameter.upper()} is not JSON: {error}") from error

    return body


def table(noun: str, *columns: str) -> Text:
    """Prints one entry or a list of them; see `rows`."""
    return lambda value: rows(value if isinstance(value, list) else [value], *columns, noun=noun)


def line(member: str) -> Text:
    """Prints one member of an answer."""
    return lambda value: click.echo(value[member])
