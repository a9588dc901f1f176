"""The group of commands, read from one table; a command's module is imported when it is called."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from importlib import import_module

import click

from emulator import __version__
from emulator.cli.failure import Failed

# One module a noun, with an attribute `command` (a click command or group).
COMMANDS: dict[str, str] = {
    "serve": "emulator.cli.serve",
    "tpp": "emulator.cli.tpp",
    "request": "emulator.cli.request",
    "proxy": "emulator.cli.proxy",
    "explain": "emulator.cli.explain",
    "openapi": "emulator.cli.openapi",
    "collection": "emulator.cli.collection",
    "state": "emulator.cli.state",
    "scenario": "emulator.cli.scenario",
    "clock": "emulator.cli.clock",
    "sca": "emulator.cli.sca",
    "payments": "emulator.cli.payments",
    "consents": "emulator.cli.consents",
    "requests": "emulator.cli.requests",
    "reset": "emulator.cli.reset",
    "snapshot": "emulator.cli.snapshot",
    "settings": "emulator.cli.settings",
    "rules": "emulator.cli.rules",
    "banks": "emulator.cli.banks",
    "people": "emulator.cli.people",
    "ledger": "emulator.cli.ledger",
    "generate": "emulator.cli.generate",
    "completion": "emulator.cli.completion",
}


class _Commands(MutableMapping[str, click.Command]):
    """The table as click wants it: a command is imported when it is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        command: click.Command = import_module(COMMANDS[name]).command
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __setitem__(self, name: str, command: click.Command) -> None:
        raise TypeError("commands stand in the table")

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands stand in the table")


def _group(debug: bool) -> None:
    """A standalone sandbox bank for open banking developers."""
    del debug  # read in `run`, so that it works behind the command as well
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


class _InOrder(click.Group):
    """Lists its commands as the table does: what a newcomer needs comes first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx  # click sorts by name; the order is the same wherever it is asked for
        return list(self.commands)


group = _InOrder(
    commands=_Commands(),
    callback=_group,
    help=_group.__doc__,
    params=[click.Option(["--debug"], is_flag=True, help="Show a traceback with an error, after any command.")],
    epilog="Example: bank-emulator serve --port 0 --ephemeral",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
group = click.version_option(__version__, message="%(version)s")(group)


def run(arguments: list[str] | None = None) -> int:
    """Run a command; the answer is the exit status: 0 fine, 1 a check failed, 2 wrong use, 3 damaged state.

    An error is one line on stderr; the traceback comes with --debug, anywhere on the line.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    try:
        result = group.main(
            [argument for argument in arguments if argument != "--debug"],
            prog_name="bank-emulator",
            standalone_mode=False,
        )
    except SystemExit as ended:
        # With 1 click ends where nobody reads on, as in `| head`: no check has failed.
        return 141 if ended.code else 0  # what a shell reports for SIGPIPE
    except (Exception, KeyboardInterrupt) as error:
        if debug and not isinstance(error, click.exceptions.Exit):
            traceback.print_exc()
        return _tell(error)
    return result if isinstance(result, int) else 0


def _tell(error: BaseException) -> int:
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and error.ctx is not None:
        click.echo(error.ctx.get_help())
        return 2
    if isinstance(error, Failed):
        text, status = str(error), error.status
    elif isinstance(error, click.ClickException):
        text, status = _usage(error), 2
    elif isinstance(error, (KeyboardInterrupt, click.Abort)):
        return 130  # what a shell reports for SIGINT
    else:
        text, status = f"{type(error).__name__}: {error} (--debug shows where)", 2
    if text:
        with suppress(OSError):  # the status tells it where nobody reads stderr, or its disk is full
            click.echo(f"bank-emulator: {' '.join(text.split())}", err=True)
    return status


def _usage(error: click.ClickException) -> str:
    text = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        text = f"{text.rstrip('.')} (see {error.ctx.command_path} --help)"
    return text
