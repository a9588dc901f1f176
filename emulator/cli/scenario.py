"""`bank-emulator scenario`: list, check, apply and play scenarios."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from emulator import packaged
from emulator.bank import fixtures
from emulator.bank.errors import counted
from emulator.bank.problems import InputRefused
from emulator.cli.bank import (
    ControlCommand,
    ask,
    connecting,
    echo_notes,
    progress,
    rows,
    show,
    table,
    writable_file,
    write_file,
)
from emulator.cli.options import (
    DEFAULT_URL,
    OrderedGroup,
    bank_options,
    bank_url,
    ca_option,
    complete_scenario,
    data_option,
    named_values,
    output_option,
)
from emulator.failure import CheckFailed, Failed, Refused
from emulator.settings import ServeSettings
from emulator.terminal import one_line

if TYPE_CHECKING:
    from emulator.scenario.player import Played, StepResult
    from emulator.scenario.transport import Transport

EPILOG = "Example: bank-emulator scenario play my-shop.yaml --junit stories.xml"


@click.group(cls=OrderedGroup, name="scenario", epilog=EPILOG)
def command() -> None:
    """List, check, apply and play scenarios. A ready one has a NAME, your own is a FILE."""


@command.command("list", epilog="Example: bank-emulator scenario list --output json")
@output_option
@data_option
def list_(output: str) -> None:
    """List the ready scenarios, and those of --data."""
    from emulator.scenario import loader
    from emulator.scenario.loader import ScenarioRefused

    shown = []
    for name, scenario in loader.listed():
        if isinstance(scenario, ScenarioRefused):
            click.echo(f"bank-emulator: {one_line(scenario.one_line())}", err=True)
            continue
        only = "only" if scenario.play_only else None
        shown.append({"name": name, "summary": scenario.summary, "play": only, "parameters": scenario.parameters})
    show(shown, output, table("scenarios", "name", "play", "summary"))


@command.command("show", epilog="Example: bank-emulator scenario show lost-answer > my-shop.yaml")
@click.argument("name", shell_complete=complete_scenario)
@output_option
@data_option
def show_(name: str, output: str) -> None:
    """Print a scenario, to read it or to start your own from it."""
    from emulator.scenario import loader

    scenario = loader.named_or_file(name)
    text = scenario.origin.text
    if name in loader.library():  # editors find the schema of a copy at the bank, not in the folder
        text = text.replace("=scenario.schema.json", f"={_bank()}/_emulator/scenario-schema.json", 1)
    show(dict(scenario.source), output, lambda _: click.echo(text, nl=False))


def _bank() -> str:
    """The address of the bank, for a command that does not need it to run."""
    try:
        return bank_url(None)
    except Failed:
        return DEFAULT_URL


@command.command(epilog="Example: bank-emulator scenario check scenarios/*.yaml")
@click.argument("files", nargs=-1)
@output_option
@data_option
def check(files: tuple[str, ...], output: str) -> None:
    """Check FILES without a running bank. Prints every problem with line and column; exit 1 if there is any.

    Without FILES it checks the fixtures and scenarios of --data. A file whose `from` names a fixture is also applied to
    a new bank in this process; its story is not played.
    """
    from emulator.scenario.loader import ScenarioMissing

    files = files or tuple(str(path) for kind in packaged.NAMES for path in packaged.own(kind).values())
    if not files:
        raise click.UsageError("name the FILES, or a folder of your own with --data")
    results: list[dict[str, Any]] = []
    for file in files:
        problems: list[dict[str, Any]] = []
        notes: list[str] = []
        try:
            notes = _check(file)
        except ScenarioMissing:
            raise
        except InputRefused as refused:
            problems = [
                {"line": problem.line, "column": problem.column, "path": problem.where(), "text": problem.text}
                for problem in refused.problems
            ]
            for line in refused.lines() if output == "text" else ():
                click.echo(line)
        else:
            if output == "text":
                click.echo("\n".join([f"{file}: fine", *(f"  {note}" for note in notes)]))
        results.append({"file": file, "mistakes": problems, **({"notes": notes} if notes else {})})
    if output == "json":
        click.echo(json.dumps(results, indent=2, ensure_ascii=False))
    if any(result["mistakes"] for result in results):
        raise CheckFailed("")


def _check(file: str) -> list[str]:
    """The notes on a file; raises InputRefused if it cannot be read, or applied to the fixture that it names."""
    from emulator.scenario import loader

    own = {str(path): (kind, name) for kind in packaged.NAMES for name, path in packaged.own(kind).items()}
    kind, name = own.get(file, ("scenarios", file))
    if kind == "fixtures":
        fixtures.check(file)
        return []
    scenario = loader.named_or_file(name)
    if scenario.start.base in fixtures.names() and not scenario.play_only:
        transport = _transports(None)()  # creating the bank takes most of the time
        answer = transport.control("POST", "/scenario", dict(scenario.source))
        if answer.status != 200:
            raise scenario.origin.refused_by(answer.messages())
    return scenario.notes


@command.command(epilog="Example: bank-emulator scenario apply lost-answer --set creditor='ACME*'")
@click.argument("source", metavar="NAME|FILE", shell_complete=complete_scenario)
@click.option(
    "--set",
    "values",
    metavar="NAME=VALUE",
    multiple=True,
    callback=named_values,
    help="Set a parameter of the scenario; may be repeated.",
)
@click.option("--yes", is_flag=True, help="Replace data of the bank without asking.")
@data_option
@bank_options
def apply(source: str, values: dict[str, str], yes: bool, url: str | None, output: str) -> None:
    """Apply a scenario to a running bank: its start, then its rules.

    Asks before it replaces documents, rules or the clock of the bank.
    """
    from emulator.scenario import loader

    scenario = loader.named_or_file(source, values)
    body = dict(scenario.source)
    try:
        with progress(bank_url(url), "scenario"):
            lost = ask(bank_url(url), "POST", "scenario/preview", body)["lost"]
        if lost and not yes:
            _confirm(scenario.name, lost)
        with progress(bank_url(url), "scenario"):
            answer = ask(bank_url(url), "POST", "scenario", body)
    except Refused as refused:
        raise scenario.origin.refused_by(refused.messages) from refused
    show(answer, output, lambda value: click.echo(_done(value)))


def _confirm(name: str, lost: list[str]) -> None:
    """Ask on a terminal before data is replaced; raises Failed without a terminal, or if the answer is no."""
    text = f"{name} replaces {', '.join(lost)}"
    if not sys.stdin.isatty():
        raise Failed(f"{text}; --yes applies it")
    if not click.confirm(f"{text}. Apply it?", err=True):
        raise Failed(f"{name} was not applied")


def _done(answer: dict[str, Any]) -> str:
    """One line about what was changed, and one for each note about payments that are not."""
    notes = (f"  {note}" for note in answer.get("notes", ()))
    return "\n".join([f"{answer['scenario']}: {applied(answer)}", *notes])


def applied(answer: Mapping[str, Any]) -> str:
    """What applying a scenario has changed, or would change."""
    clock = answer["clock"]
    documents = "documents replaced" if answer["reset"] else "documents stay"
    settings = "".join(f", {name}={json.dumps(value)}" for name, value in answer["settings"].items())
    return f"{documents}, bank time {clock['now']} {clock['mode']}, {counted(answer['rules'], 'rule')}{settings}"


def _status_text(rules: list[dict[str, Any]]) -> None:
    rows(rules, "scenario", "name", "matched", "acted", noun="rules of scenarios")
    echo_notes(rules)


STATUS = ControlCommand(
    "List the rules of applied scenarios. Shows how often each has matched and acted, and what it does not change.",
    "GET rules?limit=1000",
    view=lambda answer: [count for count in answer["counts"] if count["scenario"] is not None],
    text=_status_text,
)
command.add_command(STATUS.command("scenario", "status"))


@command.command(epilog=EPILOG)
@click.argument("sources", nargs=-1, metavar="NAME|FILE...", shell_complete=complete_scenario)
@click.option("--all", "every", is_flag=True, help="Play all ready scenarios.")
@click.option("--junit", metavar="FILE", callback=writable_file, help="Also write the results as JUnit XML.")
@output_option
@click.option("--url", metavar="URL", help="Play on the running bank at URL, which is reset.")
@click.option("--here", is_flag=True, help="Play on the bank of BANK_EMULATOR_URL, or the default one; it is reset.")
@data_option
@ca_option
def play(sources: tuple[str, ...], every: bool, junit: str | None, output: str, url: str | None, here: bool) -> None:
    """Play stories, step by step. Exit 1 if one fails, 2 if one cannot start.

    Each story plays on a new bank in this process, or with --url or --here on a running bank, to which its scenario is
    applied first.
    """
    from emulator.scenario import loader
    from emulator.scenario.player import junit_report as report
    from emulator.scenario.player import play as play_story

    chosen = [*(loader.library() if every else ()), *sources]
    if not chosen:
        raise click.UsageError("name a scenario or a file, or use --all")
    scenarios = [loader.named_or_file(source) for source in chosen]
    transport = _transports(bank_url(url) if url or here else None)
    stories: list[Played] = []
    for scenario in scenarios:
        if output == "text":
            click.echo(f"{scenario.name}: {scenario.summary}" if scenario.summary else scenario.name)
            if not scenario.story:
                click.echo("  it has no story: only its start is tried")
        stories.append(play_story(scenario, transport(), on_step=_show_step if output == "text" else None))
    if output == "json":
        click.echo(json.dumps([story.as_json() for story in stories], indent=2, ensure_ascii=False))
    if junit is not None:
        write_file("--junit", junit, report(stories))
    if output == "text" and len(stories) > 1:
        click.echo(f"{sum(story.passed for story in stories)} of {len(stories)} passed")
    failed = [story.scenario for story in stories if not story.passed]
    if failed:
        text = f"{len(failed)} of {len(stories)} failed: {', '.join(failed)}"
        raise Failed(text) if any(story.refused for story in stories) else CheckFailed(text)


def _transports(url: str | None) -> Callable[[], Transport]:
    """Gives the transport of each story: the running bank at `url`, else a new bank in this process each time."""
    if url is not None:
        from emulator.scenario.transport import TIMEOUT

        ask(url, "GET", "clock")  # a bank that does not answer is not a failed story
        running = connecting(TIMEOUT)(url)
        return lambda: running
    from emulator.assemble.composition import separate_bank

    return partial(separate_bank, ServeSettings())


def _show_step(result: StepResult) -> None:
    """Print one line for a step; for a failed one also what was expected and what was received."""
    click.echo(f"  {result.number:>3} {result.outcome:<7} {result.title}")
    if result.outcome != "failed":
        return
    for difference in result.differences:
        click.echo(f"      {difference}")
    for name, value in (("expected", result.expected), ("received", result.received())):
        if value is not None:
            text = json.dumps(value, ensure_ascii=False)
            click.echo(f"      {name}: {text if len(text) <= 1000 else f'{text[:1000]} ...'}")


COMMANDS = {"scenario": command}
