"""`bank-emulator conformance explore` and `replay`: search for the fault that breaks a TPP, and play it again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from emulator.bank.errors import counted
from emulator.cli.bank import hint, show, writable_file, write_file
from emulator.cli.options import Command, options, output_option, runnable
from emulator.failure import CheckFailed, Failed, needs_extra, working_with
from emulator.signals import end_as_interrupted

if TYPE_CHECKING:
    from emulator.conformance.program import Program
    from emulator.explore.judge import Process
    from emulator.explore.schedule import Task
    from emulator.explore.search import Breakage, SearchProgress

PAGE = "find-the-fault"
TASKS: tuple[Task, ...] = ("pay", "read", "pay-and-cancel", "basket", "pay-bulk", "read-unattended")
MOST_RUNS = 1_000_000
DEFAULT_RUNS = 200
WIDTH = 70  # columns of the line of a terminal that shows the progress
NO_PROGRESS = f"\r{'':<{WIDTH}}\r"


# Options of all commands that run a TPP and judge it


def _report_file(name: str, form: str) -> Callable[[Command], Command]:
    about = f"Write the report as {form}."
    return click.option(f"--{name}", f"{name}_file", metavar="FILE", callback=writable_file, help=about)


# The files of the report; see `write_report`.
report_files = options(
    _report_file("junit", "JUnit XML"), _report_file("html", "one HTML page"), _report_file("json", "JSON")
)


def write_report(
    where: Mapping[str, str | None], report: Any, *, junit: Callable[[Any], str], html: Callable[[Any], str]
) -> None:
    """Write the report to the files that the options name."""
    as_json = partial(json.dumps, indent=2, ensure_ascii=False)
    for name, text in (("junit", junit), ("html", html), ("json", as_json)):
        file = where[f"{name}_file"]
        if file is not None:
            write_file(f"--{name}", file, text(report))


def http_address(_context: click.Context, option: click.Parameter, address: str | None) -> str | None:
    """The callback of an option whose value is an address: refuses one that is none."""
    if address is not None and not address.startswith(("http://", "https://")):
        raise click.UsageError(f"{option.opts[0]} takes an http or https address")
    return address


def program_options(each: str, claims: str) -> Callable[[Command], Command]:
    """The options that name the TPP, which does a task for each check or run; `claims`: the help of --claims.

    The command gets them as `program`. From then on signals end all as Ctrl+C does: their default would leave the
    programs and the files with their keys behind.
    """

    def decorate(command: Command) -> Command:
        @click.option(
            "--command",
            "shell",
            metavar="CMD",
            callback=lambda _context, _option, shell: None if shell is None else runnable(shell),
            help=f"The command that runs the TPP, once for each {each}.",
        )
        @click.option(
            "--hook",
            metavar="URL",
            callback=http_address,
            help=f"The address to POST each {each} to; it answers when the TPP is done.",
        )
        @click.option(
            "--timeout",
            metavar="SECONDS",
            type=click.FloatRange(0.1, 3600),
            default=30.0,
            help=f"The time for one {each}.",
        )
        @click.option("--claims", metavar="URL", callback=http_address, help=claims)
        @wraps(command)
        def with_program(
            *, shell: str | None, hook: str | None, claims: str | None, timeout: float, **values: Any
        ) -> Any:
            from emulator.conformance.program import Program

            end_as_interrupted()
            if shell is not None and hook is not None:
                raise click.UsageError("use --command or --hook, not both")
            if values.get("jobs", 1) > 1 and claims is not None and f"{{{each}}}" not in claims:
                raise click.UsageError(f"--jobs needs {{{each}}} in --claims, as all banks have the same accounts")
            return command(program=Program(shell, hook, claims, timeout), **values)

        return cast(Command, with_program)

    return decorate


# The search, and what it has saved

tpp_options = options(
    program_options("run", "Where the TPP reports its view; {run} in it stands for BANK_RUN."),
    report_files,
    output_option,
)


@click.command(
    epilog='Example: bank-emulator conformance explore --command "node shop.mjs" --claims http://127.0.0.1:9000/{run}'
)
@click.option(
    "--runs", metavar="N", type=click.IntRange(1, MOST_RUNS), help=f"Schedules to play.  [default: {DEFAULT_RUNS}]"
)
@click.option(
    "--minutes", metavar="N", type=click.FloatRange(0.01, 100_000), help="Search that long, instead of --runs."
)
@click.option("--seed", metavar="N", type=click.IntRange(0, 10**12), default=0, help="Draws others.")
@click.option("--jobs", metavar="N", type=click.IntRange(1, 64), default=1, help="Runs at a time.")
@click.option(
    "--task",
    "tasks",
    multiple=True,
    type=click.Choice(TASKS),
    metavar="TASK",
    help=f"Only this task of {', '.join(TASKS)}; may be repeated.",
)
@click.option("--restarts", is_flag=True, help="Also kill the command, and start it again.")
@click.option("--save", metavar="DIR", help="Write each schedule that fails to a file in this folder.")
@tpp_options
def explore(
    *,
    program: Program,
    runs: int | None,
    minutes: float | None,
    seed: int,
    jobs: int,
    tasks: tuple[Task, ...],
    restarts: bool,
    save: str | None,
    output: str,
    **where: str | None,
) -> None:
    """Search for a combination of faults that breaks your TPP.

    Draws schedules: tasks, faults, acts of the customer, time that passes. Plays each on a bank of its own, judges
    what the TPP did and claims, and makes every schedule that fails as small as possible. Exit 1 if one was found.
    """
    if runs is not None and minutes is not None:
        raise click.UsageError("use --runs or --minutes, not both")
    if restarts and program.command is None:
        raise click.UsageError("--restarts needs --command")
    client = _client(program, restarts=restarts)
    with needs_extra("explore", "conformance explore", page=PAGE):
        from emulator.explore import search
    from emulator.assemble.local_banks import LocalBanks
    from emulator.conformance.program import RunFailed
    from emulator.explore import report

    if save is not None:
        with working_with(f"--save {save}"):
            Path(save).mkdir(parents=True, exist_ok=True)
    shown = 0

    def progress(now: SearchProgress) -> None:
        nonlocal shown
        for breakage in now.found[shown:]:
            shown += 1
            _tell(breakage, save, err=output == "json")
        text = f"{now.drawn} schedules, {now.runs} runs, {len(now.found)} found, {len(now.kinds)} kinds of fault"
        hint(f"\r{text:<{WIDTH}}", nl=False)

    stopped: KeyboardInterrupt | RunFailed | None = None  # what a long search came to before is reported all the same
    with closing(LocalBanks.in_memory()) as banks:
        looking = search.Search(banks, client, tasks or TASKS, base=seed, jobs=jobs)
        done = looking.progress
        try:
            looking.run(runs or DEFAULT_RUNS, seconds=None if minutes is None else minutes * 60, report=progress)
        except (KeyboardInterrupt, RunFailed) as error:
            stopped = error
            if isinstance(error, RunFailed) and not done.drawn:
                raise
    progress(done)
    hint(NO_PROGRESS, nl=False)
    cases = [report.case(breakage.name, breakage.finding, breakage.outcome) for breakage in done.found]
    cases = cases or [
        {"name": counted(done.drawn, "schedule"), "what": "", "text": "", "schedule": "", "described": []}
    ]
    _publish(report.document(done), cases, "Faults that break the TPP", report.summary(done), output, where)
    if stopped is not None:
        raise stopped
    if done.found:
        raise CheckFailed(f"found: {', '.join(breakage.name for breakage in done.found)}", page=PAGE)


@click.command(epilog='Example: bank-emulator conformance replay found/ --command "node shop.mjs"')
@click.argument("path", metavar="FILE|DIR")
@click.option("--as-scenario", is_flag=True, help="Print the schedule as a scenario instead of playing it.")
@tpp_options
def replay(
    path: str,
    *,
    as_scenario: bool,
    program: Program,
    output: str,
    **where: str | None,
) -> None:
    """Play again what `explore` has saved, in a file or a folder. Exit 1 while one fails."""
    from emulator.bank.problems import InputRefused
    from emulator.conformance.program import RunFailed
    from emulator.explore import report, schedule

    try:
        read = schedule.from_path(Path(path))
    except InputRefused as refused:
        raise Failed(str(refused), page=PAGE) from refused
    if as_scenario:
        _print_scenarios(read)
        return
    client = _client(program, restarts=True)
    from emulator.assemble.local_banks import LocalBanks
    from emulator.explore.judge import replay as play_again

    cases: list[dict[str, Any]] = []
    err, stopped = output == "json", None
    with closing(LocalBanks.in_memory()) as banks:
        try:
            for (file, _), outcome in zip(read, play_again([one for _, one in read], banks, client), strict=True):
                finding = next(iter(outcome.findings), None)
                if outcome.silent:
                    raise RunFailed("the TPP sent no request" + (f": {finding.text}" if finding else ""))
                cases.append(report.case(file.stem, finding, outcome))
                click.echo(f"{'pass' if finding is None else 'FAIL':<5} {file.stem}", err=err)
                if finding is not None:
                    click.echo(f"      {finding.text}\n\n{report.drawing(outcome.rows, finding)}\n", err=err)
        except RunFailed as failed:
            stopped = failed
            if not cases:
                raise
    red = [one["name"] for one in cases if one["what"]]
    text = f"{counted(len(cases), 'schedule')} played again, {len(red)} fail"
    _publish({"schedules": cases}, cases, "Schedules played again", text, output, where)
    if stopped is not None:
        raise stopped
    if red:
        raise CheckFailed(f"failed: {', '.join(red)}", page=PAGE)


def _client(program: Program, *, restarts: bool) -> Process:
    from emulator.explore.judge import Process

    if program.command is None and program.hook is None:
        raise click.UsageError("use --command or --hook")
    return Process(program, restarts and program.command is not None)


def _tell(breakage: Breakage, folder: str | None, *, err: bool) -> None:
    """Print a failure, on stderr where stdout is for JSON, and write its file."""
    from emulator.explore import report

    hint(NO_PROGRESS, nl=False)
    click.echo(report.failure_text(breakage), err=err)
    if folder is not None:
        saved = breakage.outcome.schedule.model_copy(update={"found": breakage.finding.text})
        file = Path(folder, f"{breakage.name}.yaml")
        write_file("--save", str(file), saved.text())
        click.echo(f"\n  saved: {file}", err=err)
    click.echo("", err=err)


def _print_scenarios(read: Sequence[tuple[Path, Any]]) -> None:
    from emulator.explore import schedule

    texts = []
    for file, one in read:
        name = re.sub(r"[^a-z0-9-]+", "-", file.stem.lower()).strip("-")[:60] or "explored"
        try:
            texts.append(schedule.scenario_of(one, name))
        except ValueError as reason:
            raise Failed(f"{file}: {reason}", page=PAGE) from reason
    click.echo("---\n".join(texts), nl=False)


def _publish(
    value: Any,
    cases: Sequence[Mapping[str, Any]],
    title: str,
    text: str,
    output: str,
    files: Mapping[str, str | None],
) -> None:
    """Print the report, as JSON or this text, and write its files."""
    from emulator.explore import report

    junit, html = (lambda _: report.junit_report(cases)), (lambda _: report.html(cases, title=title, text=text))
    show(value, output, lambda _: click.echo(text))
    write_report(files, value, junit=junit, html=html)
