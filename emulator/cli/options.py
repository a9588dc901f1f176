"""Options that several commands share, the values that they stand for (bank, state directory, TPP), and completion."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from unicodedata import normalize
from urllib.parse import quote

import click
from click.shell_completion import CompletionItem

from emulator.failure import Damaged, Failed, working_with
from emulator.httpsig.sendable import address_of
from emulator.settings import ServeSettings, data_folder, variable

if TYPE_CHECKING:
    from emulator.ca import CertificateAuthority
    from emulator.client.signing import Identity

Command = TypeVar("Command", bound=Callable[..., Any])


class OrderedGroup(click.Group):
    """A group that lists its commands in the order of definition; click would sort them by name."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.commands)


DEFAULT_URL = "http://127.0.0.1:8080"
_CA = "emulator.cli.ca"


def state_directory(given: str | None) -> Path:
    """--state, else BANK_EMULATOR_STATE, else the default of `serve`."""
    return Path(given or variable("STATE") or ServeSettings().state)


def check_name(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A name or id in NFC, as the bank has it; refuses one that is empty, as the path would be that of the whole list,
    and one that is not UTF-8.
    """
    if value == "":
        raise click.BadParameter("must not be empty", context, option)
    try:
        quote(value or "")
    except UnicodeEncodeError:
        raise click.BadParameter("must be UTF-8", context, option) from None
    return None if value is None else normalize("NFC", value)


def named_values(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """The callback of a parameter of several NAME=VALUE: the values by name."""
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", context, option)
        values[name] = value
    return values


def options(*each: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several options as one; they are listed in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(each):
            command = option(command)
        return command

    return decorate


state_option = click.option(
    "--state",
    metavar="DIR",
    help=f"The state directory of `serve`.  [BANK_EMULATOR_STATE; default: {ServeSettings().state}]",
)
output_option = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Print text, or JSON for programs.",
)
ca_option = click.option(  # see `trusted_ca`
    "--ca",
    metavar="FILE",
    help="The CA of the bank's TLS certificate, such as DIR/ca.pem.  [BANK_EMULATOR_CA; default: the system's]",
    expose_value=False,
    callback=lambda context, _option, value: context.meta.update({_CA: value or variable("CA")}),
)
url_option = options(
    click.option("--url", metavar="URL", help=f"The address of the bank.  [BANK_EMULATOR_URL; default: {DEFAULT_URL}]"),
    ca_option,
)
bank_options = options(url_option, output_option)


def _use_data(_context: click.Context, _option: click.Parameter, value: str | None) -> None:
    from emulator import packaged

    given = value or variable("DATA")
    if given is not None:
        try:
            data_folder(given)
        except ValueError as error:
            raise Failed(f"{'--data' if value else 'BANK_EMULATOR_DATA'} {error}") from None
    packaged.use(None if given is None else Path(given))


data_option = click.option(
    "--data",
    metavar="DIR",
    help="A folder with scenarios and fixtures of your own, beside the ready ones.  [BANK_EMULATOR_DATA]",
    expose_value=False,
    is_eager=True,
    callback=_use_data,
)


def trusted_ca() -> str | None:
    """--ca of the running command, else BANK_EMULATOR_CA; None stands for the CAs of the system."""
    ca: str | None = click.get_current_context().meta[_CA]
    return ca


def bank_url(given: str | None, option: str = "--url") -> str:
    """The value of `option`, else BANK_EMULATOR_URL, else the default address; raises Failed if it is no address."""
    url = (given or variable("URL") or DEFAULT_URL).rstrip("/")
    try:
        address_of(url)
    except ValueError as error:
        raise Failed(f"{option if given else 'BANK_EMULATOR_URL'}: {error}") from error
    return url


def stdin() -> bytes:
    """What stdin has; raises Failed when it cannot be read."""
    with working_with("stdin"):
        return sys.stdin.buffer.read()


@contextmanager
def authority_in(state: Path) -> Iterator[CertificateAuthority]:
    """The sandbox CA of a state directory, created if it is missing; raises Failed and AuthorityDamaged."""
    from emulator.bank.clock import real_now
    from emulator.ca import CertificateAuthority

    try:
        yield CertificateAuthority(state, clock=real_now)
    except OSError as error:
        raise Failed(f"--state {error.filename or state}: {error.strerror or error}") from error


def identity_of(*, state: str | None, tpp: str, certificate: str | None, key: str | None) -> Identity:
    """The certificate and key that a command signs with; raises Failed and Damaged."""
    from emulator.client.signing import Identity

    if (certificate is None) != (key is None):
        raise Failed("--certificate and --key must be given together")
    if certificate is not None and key is not None:
        try:
            return Identity.from_pem(Path(certificate), Path(key))
        except (OSError, ValueError) as error:
            raise Failed(f"the certificate or its key cannot be read: {error}") from error
    directory = state_directory(state)
    folder = directory / "tpps" / tpp
    if not (folder / "certificate.pem").is_file():
        raise Failed(_no_tpp(tpp, directory))
    try:
        return Identity.from_folder(folder)
    except FileNotFoundError as error:
        raise Damaged(f"{error.filename}: the key is missing") from error
    except OSError as error:
        raise Failed(f"{error.filename}: {error.strerror or error}") from error
    except ValueError as error:
        raise Damaged(f"{folder}: the certificate or its key is damaged: {error}") from error


def _no_tpp(tpp: str, state: Path) -> str:
    if (state / "ca.pem").is_file():
        return f"there is no TPP {tpp} in {state / 'tpps'}: `bank-emulator tpp new {tpp}` creates it"
    problem = "does not exist" if not state.exists() else "holds no certificates"
    return (
        f"the state directory {state.absolute()} {problem}: run this where `bank-emulator serve` runs, or "
        "name its state directory with --state DIR (BANK_EMULATOR_STATE)"
    )


# Completion of values (`bank-emulator completion SHELL`)


def completing(names: Callable[[click.Context], Iterable[str]]) -> Callable[..., list[str]]:
    """The completion of an option or argument whose values are names."""

    def complete(context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in names(context) if name.startswith(incomplete)]

    return complete


def _tpps(context: click.Context) -> list[str]:
    folder = state_directory(context.params.get("state")) / "tpps"
    return sorted(file.parent.name for file in folder.glob("*/certificate.pem"))


def _named_files(
    kind: Literal["fixtures", "scenarios"], context: click.Context, option: click.Parameter, incomplete: str
) -> list[str] | list[CompletionItem]:
    """The ready ones, those of --data, and files where the argument may be one."""
    from emulator import packaged

    if data := context.params.get("data") or variable("DATA"):
        packaged.use(Path(data))
    named = completing(lambda _: packaged.files(kind))(context, option, incomplete)
    takes_files = "FILE" in (option.metavar or "")
    return named if named or not takes_files else [CompletionItem(incomplete, type="file")]


complete_scenario = partial(_named_files, "scenarios")
complete_fixture = partial(_named_files, "fixtures")

# The signing TPP; see `identity_of`.
signer_options = options(
    state_option,
    click.option(
        "--tpp",
        metavar="NAME",
        default="demo",
        callback=check_name,
        help="Sign as this TPP.",
        shell_complete=completing(_tpps),
    ),
    click.option("--certificate", metavar="FILE", help="Sign with this certificate (PEM)."),
    click.option("--key", metavar="FILE", help="The private key of --certificate (PEM)."),
)


def runnable(command: str) -> str:
    """A command line whose program can be run; raises Failed for another one, and for an unclosed quotation mark."""
    with suppress(ValueError, IndexError):
        if shutil.which(shlex.split(command)[0]) is not None:
            return command
    raise Failed(f"there is no program that can be run in the command {command!r}")
