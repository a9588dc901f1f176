"""Options that the commands share which run a TPP and judge it, and their checks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, cast

import click

from emulator.cli.bank import writable_file, write_file
from emulator.cli.options import Command, words
from emulator.failure import Failed
from emulator.signals import end_as_interrupted


def report_files(command: Command) -> Command:
    """The options that name files of the report; see `write_report`."""
    for name, form in (("json", "JSON"), ("html", "one HTML page"), ("junit", "JUnit XML")):
        about = f"Write the report as {form}."
        option = click.option(f"--{name}", f"{name}_file", metavar="FILE", callback=writable_file, help=about)
        command = option(command)
    return command


def write_report(
    where: Mapping[str, str | None], report: Any, *, junit: Callable[[Any], str], html: Callable[[Any], str]
) -> None:
    """Write the report to the files that the options name."""
    as_json = partial(json.dumps, indent=2, ensure_ascii=False)
    for name, text in (("junit", junit), ("html", html), ("json", as_json)):
        file = where[f"{name}_file"]
        if file is not None:
            write_file(f"--{name}", file, text(report))


def http_address(context: click.Context, option: click.Parameter, address: str | None) -> str | None:
    """The callback of an option whose value is an address: refuses one that is none."""
    if address is not None and not context.resilient_parsing and not address.startswith(("http://", "https://")):
        raise click.UsageError(f"{option.opts[0]} takes an http or https address")
    return address


def _program(context: click.Context, _option: click.Parameter, shell: str | None) -> str | None:
    """The callback of --command: refuses one that is no program."""
    if shell is not None and not context.resilient_parsing:
        if not (command := words(shell)):
            raise click.UsageError("--command is empty or has an unclosed quotation mark")
        if shutil.which(command[0]) is None:
            raise Failed(f"--command: there is no program {command[0]} that can be run")
    return shell


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
            callback=_program,
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
            show_default=True,
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
