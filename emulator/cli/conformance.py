"""`bank-emulator conformance`: judge a TPP, by what a bank has seen or by a plan of checks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.bank import ask, connecting, rows, show, writable_file, write_file
from emulator.cli.explore import explore, http_address, program_options, replay, report_files, write_report
from emulator.cli.options import OrderedGroup, bank_options, bank_url, options, output_option
from emulator.failure import CheckFailed, Failed

if TYPE_CHECKING:
    from emulator.conformance.check import Check
    from emulator.conformance.program import Program

EPILOG = """\b
Example: bank-emulator conformance audit
Example: bank-emulator conformance run --command "npm run pay-once"
"""


@click.group(cls=OrderedGroup, name="conformance", epilog=EPILOG)
def command() -> None:
    """Judge the behaviour of a TPP, check by check."""


CLAIMS = "The address where the TPP reports its view."
group_option = click.option(
    "--group", "groups", multiple=True, metavar="GROUP", help="Only the checks of GROUP; may be repeated."
)


report_options = options(
    click.option("--only", "names", multiple=True, metavar="CHECK", help="Only CHECK; may be repeated."),
    group_option,
    report_files,
    click.option("--baseline", metavar="FILE", help="The file of checks that are known to fail."),
    click.option(
        "--write-baseline",
        metavar="FILE",
        callback=writable_file,
        help="Write the checks that fail to a baseline file.",
    ),
    click.option("--require-seen", is_flag=True, help="Exit 1 also if a check had no occasion (not-seen)."),
)


def chosen(names: tuple[str, ...], groups: tuple[str, ...]) -> list[Check]:
    """The checks of these names and groups, all of them without any; raises Failed for one that does not exist."""
    from emulator.bank.problems import unknown
    from emulator.conformance.check import GROUPS, ready

    checks = ready()
    for kind, given, known in (("check", names, [check.check for check in checks]), ("group", groups, GROUPS)):
        for name in given:
            if name not in known:
                raise Failed(unknown(name, known, f"There is no {kind}").rstrip("."))
    return [check for check in checks if (not names and not groups) or check.check in names or check.group in groups]


@command.command("list", epilog="Example: bank-emulator conformance list --group payments")
@group_option
@output_option
def list_(groups: tuple[str, ...], output: str) -> None:
    """List the checks, each with what it judges."""
    checks = chosen((), groups)
    shown = [check.model_dump(include={"check", "level", "group", "role", "about", "spec"}) for check in checks]
    show({"checks": shown}, output, lambda _: rows(shown, "check", "level", "about", noun="checks"))


@command.command("show", epilog="Example: bank-emulator conformance show repeats-a-lost-answer")
@click.argument("name", metavar="CHECK")
@output_option
def show_(name: str, output: str) -> None:
    """Print the file of a check."""
    from emulator.conformance.check import FOLDER

    (check,) = chosen((name,), ())
    file = (FOLDER / f"{check.check}.yaml").read_text(encoding="utf-8")
    show(check.model_dump(mode="json", by_alias=True, exclude_unset=True), output, lambda _: click.echo(file, nl=False))


@command.command(epilog="Example: bank-emulator conformance audit --html report.html")
@click.option("--claims", metavar="URL", callback=http_address, help=CLAIMS)
@report_options
@bank_options
def audit(
    url: str | None,
    output: str,
    claims: str | None,
    names: tuple[str, ...],
    groups: tuple[str, ...],
    require_seen: bool,
    **where: Any,
) -> None:
    """Judge the requests that a running bank has seen.

    They count since its start, reset, a restored snapshot or DELETE /_emulator/conformance. Exit 1 if a check of level
    `must` fails.
    """
    judged = {check.check for check in chosen(names, groups)}
    baseline = _baseline(where.pop("baseline"))
    address = bank_url(url)
    if claims is not None:
        _send_claims(address, claims)
    report = ask(address, "GET", "conformance")
    _check(
        _publish([row for row in report["checks"] if row["check"] in judged], output, baseline, **where),
        require_seen=require_seen,
    )


def _send_claims(address: str, claims: str) -> None:
    from emulator.conformance.program import claims_of

    beliefs, problems = claims_of(claims, ask(address, "GET", "conformance/claims"))
    for problem in problems:
        click.echo(f"bank-emulator: --claims: {problem}", err=True)
    ask(address, "PUT", "conformance/claims", {"beliefs": beliefs})


@command.command(epilog=EPILOG)
@program_options("check", CLAIMS)
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1, 64),
    default=1,
    help="Checks that run at the same time.",
)
@report_options
@bank_options
def run(
    url: str | None,
    output: str,
    program: Program,
    jobs: int,
    names: tuple[str, ...],
    groups: tuple[str, ...],
    require_seen: bool,
    **where: Any,
) -> None:
    """Run each check on a new bank.

    The emulator applies rules, acts as the customer and moves bank time, so that every check has its occasion.

    Without --command and --hook each check waits until you have used your TPP by hand. Without --url the command
    starts a bank of its own. Exit 1 if a check of level `must` fails, 2 if the TPP sends no request at all.
    """
    from emulator.conformance.runner import ANSWER_SECONDS, Plan, silence
    from emulator.conformance.runner import run as run_plan

    by_hand = program.command is None and program.hook is None
    if by_hand and jobs > 1:
        raise click.UsageError("--jobs goes with --command or --hook")
    checks, baseline = chosen(names, groups), _baseline(where.pop("baseline"))
    plan = Plan(program, _by_hand if by_hand else None, jobs)
    outcomes, shown = [], set[str]()
    with _bank(url) as address, closing(run_plan(checks, address, plan, connecting(ANSWER_SECONDS))) as ran:
        for outcome in ran:
            outcomes.append(outcome)
            _progress(outcome.row, outcome.problems, shown)
    report = _publish([outcome.row for outcome in outcomes], output, baseline, planned=True, **where)
    if (silent := silence(outcomes)) is not None:
        raise Failed(silent, page="judge-your-client")
    _check(report, require_seen=require_seen)


def _progress(row: Mapping[str, Any], problems: list[str], shown: set[str]) -> None:
    """Show a verdict, and how the command failed; what it has printed only for the first of several alike."""
    click.echo(f"{row['verdict']:<9} {row['check']}", err=True)
    for problem in problems[:1] if shown.issuperset(problems[:1]) else problems:
        click.echo(f"          {problem}", err=True)
    shown.update(problems[:1])


def _by_hand(check: Check, environment: Mapping[str, str]) -> None:
    click.echo(f"\n{check.check}: {check.about}\nTask: {check.arm.task}", err=True)
    for name, value in environment.items():
        click.echo(f"  {name}={value}", err=True)
    click.echo("Press Enter when your TPP is done.", err=True)
    if not sys.stdin.readline():
        raise Failed("stdin has ended: without --command or --hook each check waits for Enter")


@contextmanager
def _bank(url: str | None) -> Iterator[str]:
    """The running bank at `url`, else a new one in this process."""
    if url is not None:
        yield bank_url(url)
        return
    from emulator.assemble.local_banks import LocalBanks

    with closing(LocalBanks.in_memory()) as banks:
        yield banks.url


def _baseline(file: str | None) -> frozenset[str]:
    """The checks of the baseline file. It is read first, as a mistake in it would make a long run useless."""
    from emulator.conformance import report as reports
    from emulator.conformance.check import ready

    names = {check.check for check in ready()}
    return frozenset() if file is None else reports.read_baseline(Path(file), names)


def _publish(
    rows: list[dict[str, Any]],
    output: str,
    baseline: frozenset[str],
    *,
    planned: bool = False,
    write_baseline: str | None,
    **files: str | None,
) -> Mapping[str, Any]:
    """Apply the baseline to the report, print it and write its files; returns the report for the exit status.

    Failures that a new baseline has are `known` in it.
    """
    from emulator.conformance import report as reports

    report, fixed = reports.with_baseline(reports.summed(rows), baseline)
    show(report, output, lambda value: click.echo(reports.terminal(value, fixed=fixed, planned=planned)))
    write_report(files, report, junit=reports.junit_report, html=reports.html)
    if write_baseline is not None:
        write_file("--write-baseline", write_baseline, reports.baseline(report))
        report, _ = reports.with_baseline(report, {row["check"] for row in report["checks"]})
    return report


def _check(report: Mapping[str, Any], *, require_seen: bool) -> None:
    from emulator.conformance.report import exit_status

    if exit_status(report, require_seen=require_seen):
        failed = [row["check"] for row in report["checks"] if row["verdict"] == "fail"]
        unseen = [row["check"] for row in report["checks"] if row["verdict"] == "not-seen"]
        raise CheckFailed(f"failed: {', '.join(failed)}" if failed else f"not seen: {', '.join(unseen)}")


command.add_command(explore)
command.add_command(replay)
COMMANDS = {"conformance": command}
