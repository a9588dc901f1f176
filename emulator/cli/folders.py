"""Where a command finds what it needs: the state directory, a TPP's certificate, the bank, stdin."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from emulator.cli.failure import Failed, StateDamaged
from emulator.httpsig.sendable import address_of
from emulator.settings import ServeSettings, variable

if TYPE_CHECKING:
    from emulator.ca import CertificateAuthority
    from emulator.client.identity import Identity

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_URL = "http://127.0.0.1:8080"
_CA = "emulator.cli.ca"


def state_directory(given: str | None) -> Path:
    """--state, else BANK_EMULATOR_STATE, else the default of `serve`."""
    return Path(given or variable("STATE") or ServeSettings().state)


def state_option(command: Command) -> Command:
    """The option --state of a command."""
    about = f"The state directory. Variable BANK_EMULATOR_STATE. Default: {ServeSettings().state}."
    return click.option("--state", metavar="DIR", help=about)(command)


def url_option(command: Command) -> Command:
    """The options --url and --ca of a command that talks to a running bank; `trusted_ca` tells the latter."""
    about = f"The bank's address. Variable BANK_EMULATOR_URL. Default: {DEFAULT_URL}."
    return click.option("--url", metavar="URL", help=about)(ca_option(command))


def ca_option(command: Command) -> Command:
    """The option --ca of a command that may talk to a running bank."""
    about = (
        "The CA of the bank's TLS certificate, such as DIR/ca.pem. Variable BANK_EMULATOR_CA. Default: the system's."
    )
    return click.option("--ca", metavar="FILE", help=about, expose_value=False, callback=_remember_ca)(command)


def _remember_ca(context: click.Context, option: click.Parameter, value: str | None) -> None:
    del option
    context.meta[_CA] = value or variable("CA")


def trusted_ca() -> str | None:
    """--ca of the command that runs, else BANK_EMULATOR_CA; None: those of the system."""
    ca: str | None = click.get_current_context().meta[_CA]
    return ca


def bank_url(given: str | None, option: str = "--url") -> str:
    """`option`, else BANK_EMULATOR_URL, else the default address; Failed when it is none."""
    url = (given or variable("URL") or DEFAULT_URL).rstrip("/")
    try:
        address_of(url)
    except ValueError as error:
        raise Failed(f"{option if given else 'BANK_EMULATOR_URL'}: {error}") from error
    return url


def stdin(most: int = -1) -> bytes:
    """What is piped into a command, at most so many bytes of it; Failed when stdin is closed or cannot be read."""
    if sys.stdin is None:
        raise Failed("stdin is closed, there is nothing to read")
    try:
        return sys.stdin.buffer.read(most)
    except OSError as error:
        raise Failed(f"stdin: {error.strerror}") from error


def signer_options(command: Command) -> Command:
    """The options that say who signs: --tpp of a state directory, or --certificate with --key."""
    command = click.option("--key", metavar="FILE", help="The private key to --certificate (PEM).")(command)
    command = click.option("--certificate", metavar="FILE", help="Sign with this certificate (PEM).")(command)
    command = click.option("--tpp", metavar="NAME", default="demo", show_default=True, help="Sign as this TPP.")(
        command
    )
    return state_option(command)


@contextmanager
def authority_in(state: Path) -> Iterator[CertificateAuthority]:
    """The sandbox CA of a state directory, made when there is none; what goes wrong with its files is told."""
    from emulator.bank.clock import real_now
    from emulator.ca import AuthorityDamaged, CertificateAuthority

    try:
        yield CertificateAuthority(state, clock=real_now)
    except AuthorityDamaged as error:
        raise StateDamaged(str(error)) from error
    except OSError as error:
        raise Failed(f"--state {error.filename or state}: {error.strerror or error}") from error


def identity_of(*, state: str | None, tpp: str, certificate: str | None, key: str | None) -> Identity:
    """The certificate and key that a command signs with; Failed says what is missing."""
    from emulator.client.identity import Identity

    if (certificate is None) != (key is None):
        raise Failed("--certificate and --key go together")
    if certificate is None or key is None:
        return _kept_identity(state_directory(state), tpp)
    try:
        return Identity.from_pem(Path(certificate), Path(key))
    except (OSError, ValueError) as error:
        raise Failed(f"the certificate or its key cannot be read: {error}") from error


def _kept_identity(state: Path, tpp: str) -> Identity:
    from emulator.client.identity import Identity

    folder = state / "tpps" / tpp
    if not (folder / "certificate.pem").is_file():
        raise Failed(f"there is no TPP {tpp} in {folder.parent}: `bank-emulator tpp new {tpp}` makes one")
    try:
        return Identity.from_folder(folder)
    except FileNotFoundError as error:
        raise StateDamaged(f"{error.filename}: the key is missing") from error
    except OSError as error:
        raise Failed(f"{error.filename}: {error.strerror or error}") from error
    except ValueError as error:
        raise StateDamaged(f"{folder}: the certificate or its key is damaged: {error}") from error
