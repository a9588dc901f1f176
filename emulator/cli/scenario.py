"""`bank-emulator scenario`: list, check, apply and play scenarios."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.bank import fixtures
from emulator.bank.errors import counted
from emulator.cli.bank import ask, bank_options, control_token, rows, show
from emulator.cli.failure import CheckFailed, Failed, Refused
from emulator.cli.options import DEFAULT_URL, bank_url, ca_option, complete_scenario, trusted_ca

if TYPE_CHECKING:
    from emulator.scenario.model import Scenario
    from emulator.scenario.player import Played, StepResult
    from emulator.scenario.problems import ScenarioRefused
    from emulator.scenario.transport import Transport

EPILOG = "Example: bank-emulator scenario play my-shop.yaml --junit stories.xml"
OUTPUT = click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.group(name="scenario", epilog=EPILOG)
def command() -> None:
    """Scenarios: ready ones by NAME, your own by FILE."""


def _loaded(source: str, values: Mapping[str, Any] | None = None) -> Scenario:
    from emulator.scenario import loader
    from emulator.scenario.problems import ScenarioRefused

    try:
        return loader.named_or_file(source, values)
    except ScenarioRefused as refused:
        raise _failed(refused) from refused


def _failed(refused: ScenarioRefused) -> Failed:
    return Failed(refused.one_line())


@command.command("list", epilog="Example: bank-emulator scenario list --output json")
@OUTPUT
def list_(output: str) -> None:
    """The ready scenarios."""
    from emulator.scenario import loader

    ready = [_loaded(name) for name in loader.library()]
    shown = [
        {
            "name": scenario.name,
            "summary": scenario.summary,
            "play": "only" if scenario.play_only else None,
            "parameters": {name: parameter.default for name, parameter in scenario.parameters.items()},
        }
        for scenario in ready
    ]
    show(shown, output, lambda value: rows(value, "name", "play", "summary", noun="scenarios"))


@command.command("show", epilog="Example: bank-emulator scenario show lost-answer > my-shop.yaml")
@click.argument("name", shell_complete=complete_scenario)
@OUTPUT
def show_(name: str, output: str) -> None:
    """A scenario as it stands, to read or to begin your own with."""
    from emulator.scenario import loader

    scenario = _loaded(name)
    ready = loader.library().get(name)
    text = (ready or Path(name)).read_text("utf-8")
    if ready is not None:  # its schema is in the same folder; editors find that of a copy at the bank
        text = text.replace("=scenario.schema.json", f"={_bank()}/_emulator/scenario-schema.json", 1)
    show(dict(scenario.source), output, lambda _: click.echo(text, nl=False))


def _bank() -> str:
    """Where the bank is, for a command that does not ask it."""
    try:
        return bank_url(None)
    except Failed:
        return DEFAULT_URL


@command.command(epilog="Example: bank-emulator scenario check scenarios/*.yaml")
@click.argument("files", nargs=-1, required=True)
@OUTPUT
def check(files: tuple[str, ...], output: str) -> None:
    """Check FILES without a running bank. Every problem has its line and column; exit 1 when there is one.

    A file whose `from` names a fixture is also started, on a new bank in this process; its story is not played.
    """
    from emulator.scenario.problems import ScenarioMissing, ScenarioRefused

    results: list[dict[str, Any]] = []
    for file in files:
        mistakes: list[dict[str, Any]] = []
        try:
            _check(file)
        except ScenarioMissing as missing:
            raise _failed(missing) from missing
        except ScenarioRefused as refused:
            mistakes = [
                {"line": m.line, "column": m.column, "path": m.where(), "text": m.text} for m in refused.problems
            ]
            for line in refused.lines() if output == "text" else ():
                click.echo(line)
        else:
            if output == "text":
                click.echo(f"{file}: fine")
        results.append({"file": file, "mistakes": mistakes})
    if output == "json":
        click.echo(json.dumps(results, indent=2, ensure_ascii=False))
    if any(result["mistakes"] for result in results):
        raise CheckFailed("")


def _check(file: str) -> None:
    """Refuse what cannot be read, and what the fixture that it names does not fit; raises ScenarioRefused."""
    from emulator.scenario import loader

    scenario = loader.named_or_file(file)
    if scenario.start.base in fixtures.names() and not scenario.play_only:
        transport = _transports(None)()  # most of the time goes there: made only where it is needed
        answer = transport.control("POST", "/scenario", dict(scenario.source))
        if answer.status != 200:
            raise scenario.origin.refused_by(answer.json()["tppMessages"])


def _values(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE of each --set."""
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", context, option)
        values[name] = value
    return values


def _typed(source: str, values: Mapping[str, str]) -> dict[str, Any]:
    """The values as text, or as JSON for a parameter whose default is no text."""
    declared = _loaded(source).parameters if values else {}
    typed: dict[str, Any] = dict(values)
    for name, value in values.items():
        if name in declared and not isinstance(declared[name].default, str):
            try:
                typed[name] = json.loads(value)
            except ValueError as error:
                raise click.UsageError(f"--set {name}: {value!r} is not JSON as its default is") from error
    return typed


@command.command(epilog="Example: bank-emulator scenario apply lost-answer --set creditor='ACME*'")
@click.argument("source", metavar="NAME|FILE", shell_complete=complete_scenario)
@click.option("--set", "values", metavar="NAME=VALUE", multiple=True, callback=_values, help="Choose a parameter.")
@click.option("--yes", is_flag=True, help="Do not ask before something of the bank is lost.")
@bank_options
def apply(source: str, values: dict[str, str], yes: bool, url: str | None, output: str) -> None:
    """Start a running bank as a scenario says and add its rules.

    Where documents, rules or the clock of the bank would be lost, you are asked first.
    """
    scenario = _loaded(source, _typed(source, values))
    body = dict(scenario.source)
    try:
        lost = ask(bank_url(url), "POST", "scenario/preview", body)["lost"]
        if lost and not yes:
            _confirm(scenario.name, lost)
        answer = ask(bank_url(url), "POST", "scenario", body)
    except Refused as refused:
        raise _failed(scenario.origin.refused_by(refused.messages)) from refused
    show(answer, output, lambda value: click.echo(_done(value)))


def _confirm(name: str, lost: list[str]) -> None:
    """Ask on a terminal before something is lost; Failed without a terminal, or if the answer is no."""
    text = f"{name} replaces {', '.join(lost)}"
    if sys.stdin is None or not sys.stdin.isatty():
        raise Failed(f"{text}; --yes applies it")
    if not click.confirm(f"{text}. Apply it?", err=True):
        raise Failed(f"{name} was not applied")


def _done(answer: dict[str, Any]) -> str:
    """What was done, in a line."""
    clock = answer["clock"]
    documents = "documents replaced" if answer["reset"] else "documents stay"
    settings = "".join(f", {name}={json.dumps(value)}" for name, value in answer["settings"].items())
    rules = counted(answer["rules"], "rule")
    return f"{answer['scenario']}: {documents}, bank time {clock['now']} {clock['mode']}, {rules}{settings}"


@command.command(epilog="Example: bank-emulator scenario status")
@bank_options
def status(url: str | None, output: str) -> None:
    """The rules of the applied scenarios. Each tells how often it has matched and acted."""
    counts = ask(bank_url(url), "GET", "rules?limit=1000")["counts"]
    shown = [count for count in counts if count["scenario"] is not None]
    show(shown, output, lambda value: rows(value, "scenario", "name", "matched", "acted", noun="rules of scenarios"))


@command.command(epilog=EPILOG)
@click.argument("sources", nargs=-1, metavar="NAME|FILE...", shell_complete=complete_scenario)
@click.option("--all", "every", is_flag=True, help="Play all ready scenarios.")
@click.option("--junit", metavar="FILE", help="Also write the results as JUnit XML.")
@OUTPUT
@click.option("--url", metavar="URL", help="Play on the running bank there, which is reset.")
@click.option("--here", is_flag=True, help="Play on the running bank that the other commands ask, which is reset.")
@ca_option
def play(sources: tuple[str, ...], every: bool, junit: str | None, output: str, url: str | None, here: bool) -> None:
    """Play stories, step by step. Exit 1 when one fails, 2 when one cannot start.

    Each plays on a new bank in this process, whatever the environment says. With --url or --here it plays on a running
    bank, which is then started as the scenario says.
    """
    from emulator.scenario import loader
    from emulator.scenario.player import junit_report as report
    from emulator.scenario.player import play as play_story

    chosen = [*(loader.library() if every else ()), *sources]
    if not chosen:
        raise click.UsageError("name a scenario or a file, or say --all")
    scenarios = [_loaded(source) for source in chosen]
    transport = _transports(bank_url(url) if url or here else None)
    stories: list[Played] = []
    for scenario in scenarios:
        if output == "text":
            click.echo(f"{scenario.name}: {scenario.summary}")
            if not scenario.story:
                click.echo("  it tells no story: nothing but its start is tried")
        stories.append(play_story(scenario, transport(), on_step=_show_step if output == "text" else None))
    if output == "json":
        click.echo(json.dumps([story.as_json() for story in stories], indent=2, ensure_ascii=False))
    if junit is not None:
        _write(Path(junit), report(stories))
    if output == "text" and len(stories) > 1:
        click.echo(f"{sum(story.passed for story in stories)} of {len(stories)} passed")
    failed = [story.scenario for story in stories if not story.passed]
    if failed:
        text = f"{len(failed)} of {len(stories)} failed: {', '.join(failed)}"
        raise Failed(text) if any(story.refused for story in stories) else CheckFailed(text)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise Failed(f"--junit {file}: {error.strerror}") from error


def _transports(url: str | None) -> Callable[[], Transport]:
    """Gives the transport for each story: the running bank at `url`, or a new bank in this process every time."""
    if url is not None:
        from emulator.scenario.transport import Running

        ask(url, "GET", "clock")  # a bank that does not answer is no story that fails
        running = Running(url, token=control_token(), ca=trusted_ca())
        return lambda: running
    from emulator.assemble.transports import new_transports

    return new_transports()


def _show_step(result: StepResult) -> None:
    """One line for a step that went well; what was expected and what came for one that did not."""
    click.echo(f"  {result.number:>3} {result.outcome:<7} {result.title}")
    if result.outcome != "failed":
        return
    for difference in result.differences:
        click.echo(f"      {difference}")
    for word, value in (("expected", result.expected), ("found", result.received())):
        if value is not None:
            text = json.dumps(value, ensure_ascii=False)
            click.echo(f"      {word}: {text if len(text) <= 1000 else f'{text[:1000]} ...'}")


COMMANDS = {"scenario": command}
