"""The command line: one table of commands; the module of a command is imported when it is called."""

from __future__ import annotations

import os
import re
import select
import stat
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from errno import EDQUOT, EFBIG, ENOSPC
from importlib import import_module
from io import TextIOWrapper, UnsupportedOperation

import click

from emulator import __version__
from emulator.cli.options import OrderedGroup
from emulator.failure import Failed, Refused
from emulator.terminal import LossyStream, PrintableStream, one_line

LAST_SECONDS = 2.0  # that the line about a failure waits for a reader of stderr

# The module of each command, where its own table COMMANDS lists it; what a newcomer needs comes first.
COMMANDS: dict[str, str] = {
    "serve": "emulator.cli.serve",
    "tpp": "emulator.cli.tpp",
    "request": "emulator.cli.requests",
    "proxy": "emulator.cli.requests",
    "explain": "emulator.cli.requests",
    "openapi": "emulator.cli.export",
    "collection": "emulator.cli.export",
    "state": "emulator.cli.state",
    "scenario": "emulator.cli.scenario",
    "conformance": "emulator.cli.conformance",
    "clock": "emulator.cli.control",
    "sca": "emulator.cli.sca",
    "payments": "emulator.cli.control",
    "consents": "emulator.cli.control",
    "notifications": "emulator.cli.control",
    "requests": "emulator.cli.requests",
    "events": "emulator.cli.requests",
    "reset": "emulator.cli.control",
    "snapshot": "emulator.cli.control",
    "settings": "emulator.cli.control",
    "rules": "emulator.cli.control",
    "banks": "emulator.cli.control",
    "people": "emulator.cli.control",
    "ledger": "emulator.cli.control",
    "generate": "emulator.cli.control",
    "mcp": "emulator.agents.command",
    "docs": "emulator.cli.export",
    "completion": "emulator.cli.export",
}
# The manual page that the error names when the bank refuses the request of a command.
PAGES = {
    "banks": "several-banks",
    "generate": "prepare-data",
    "rules": "scenario-language",
    "settings": "settings",
}


class _Commands(Mapping[str, click.Command]):
    """The table as a mapping for click: looking a command up imports its module."""

    def __getitem__(self, name: str) -> click.Command:
        commands: dict[str, click.Command] = import_module(COMMANDS[name]).COMMANDS
        return commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@click.group(
    cls=OrderedGroup,
    commands=_Commands(),
    invoke_without_command=True,
    epilog="Example: bank-emulator serve --port 0 --ephemeral",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True},
)
@click.option(  # read in `run`, so that it works after the command too
    "--debug", is_flag=True, expose_value=False, help="Show a traceback with an error, after any command."
)
@click.version_option(__version__, message="%(version)s")
@click.pass_context
def group(context: click.Context) -> None:
    """A standalone sandbox bank for open banking developers."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit status: 0 success, 1 a check failed, 2 wrong usage, 3 damaged state.

    An error is one line on stderr. --debug, anywhere on the line, adds the traceback.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    with _streams():
        return _run(arguments)


@contextmanager
def _streams() -> Iterator[None]:
    """What a command reads and prints. A stream that is closed has nothing, and takes everything.

    Control characters are escaped in all terminal output, such as the body of an answer. Letters that the code page of
    the terminal or of a pipe lacks are replaced. What cannot be written on stderr is dropped: the command has done its
    work all the same.
    """
    given = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    with ExitStack() as opened:
        for name, stream in given.items():
            stream = stream or opened.enter_context(open(os.devnull, "r" if name == "stdin" else "w"))
            if isinstance(stream, TextIOWrapper) and stream.errors == "strict" and name != "stdin":
                stream.reconfigure(errors="replace")
            lossy = LossyStream(stream) if name == "stderr" else stream
            setattr(sys, name, PrintableStream(lossy) if name != "stdin" and stream.isatty() else lossy)
        try:
            yield
        finally:
            for name, stream in given.items():
                setattr(sys, name, stream)


def _run(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    try:
        result = group.main(
            [argument for argument in arguments if argument != "--debug"],
            prog_name="bank-emulator",
            standalone_mode=False,
        )
    except SystemExit as exit_request:
        # click exits with 1 when stdout is closed, as by `| head`: no check has failed.
        return 141 if exit_request.code else 0  # what a shell reports for SIGPIPE
    except (Exception, KeyboardInterrupt) as error:
        if debug and not isinstance(error, click.exceptions.Exit):
            traceback.print_exc()
        return _report(error, next((word for word in arguments if word in COMMANDS), ""))
    return result if isinstance(result, int) else 0


def _report(error: BaseException, command: str) -> int:
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and error.ctx is not None:
        click.echo(error.ctx.get_help())
        return 2
    if isinstance(error, Failed):
        text, status = str(error), error.status
        page = error.page or (PAGES.get(command, "") if isinstance(error, Refused) else "")
        text += f" (see bank-emulator docs {page})" if text and page else ""
    elif isinstance(error, click.ClickException):
        text, status = _usage(error), 2
    elif isinstance(error, (KeyboardInterrupt, click.Abort)):
        return 130  # what a shell reports for SIGINT
    elif isinstance(error, OSError) and error.filename:
        text, status = f"{error.filename}: {error.strerror or error}", 2
    elif isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT, EFBIG):
        text, status = f"the output cannot be written: {error.strerror}", 2
    elif isinstance(error, MemoryError) or str(error) == "can't start new thread":
        text, status = "there is not enough memory, or the system allows no more threads (--debug shows where)", 2
    else:
        text, status = f"{type(error).__name__}: {error} (--debug shows the traceback)", 2
    if text:
        with suppress(OSError):  # stderr is closed or its disk is full: the exit status still reports the error
            _write_last(f"bank-emulator: {one_line(' '.join(text.split()))}\n")
    return status


def _write_last(line: str) -> None:
    """Write the line on stderr; a pipe that nobody reads is given up, so that the process ends."""
    try:
        descriptor = sys.stderr.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except UnsupportedOperation:  # a stream of this process, such as a test's
        is_pipe = False
    if not is_pipe:
        click.echo(line, nl=False, err=True)
        return
    data = line.encode(errors="backslashreplace")
    while data and select.select([], [descriptor], [], LAST_SECONDS)[1]:
        data = data[os.write(descriptor, data[: select.PIPE_BUF]) :]  # so much never waits


def _usage(error: click.ClickException) -> str:
    text = error.format_message()
    text = re.sub("is not a valid integer( range)?", "is not a whole number", text)  # click's names of its types
    text = text.replace("is not a valid float range", "is not a number")
    if isinstance(error, click.NoSuchOption) and error.option_name[1:].isdecimal():
        text = f"{text.rstrip('.')}: a value that begins with - is written after --"
    if isinstance(error, click.UsageError) and error.ctx is not None:
        text = f"{text.rstrip('.')} (see {error.ctx.command_path} --help)"
    return text
