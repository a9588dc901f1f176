"""`bank-emulator tpp`: certificates of TPPs, signed by the sandbox CA of a state directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.bank import named, rows, show
from emulator.cli.failure import Failed
from emulator.cli.folders import authority_in, state_directory, state_option

if TYPE_CHECKING:
    from emulator.ca import Credentials

KEYSTORE_PASSWORD = "bank-emulator"

EPILOG = "Example: bank-emulator tpp new shop --role PISP"
_FLAWS = (  # written out: the authority, which has them, is slow to import
    "Spoil the certificate: expired, not-yet-valid, unknown-ca, no-roles, leading-zero-serial or special-characters."
)


@click.group(name="tpp", epilog=EPILOG)
def command() -> None:
    """Make and list TPPs with their certificates."""


@command.command(epilog="Example: bank-emulator tpp new shop --role PISP --flaw expired")
@click.argument("name")
@click.option("--role", "roles", multiple=True, type=click.Choice(["PISP", "AISP"]), help="Default: both.")
@click.option("--organization-identifier", metavar="ID", help="Such as PSDNO-FSA-SHOP; made from the name otherwise.")
@click.option("--flaw", metavar="FLAW", help=_FLAWS)
@click.option(
    "--keystore-password",
    callback=named,
    default=KEYSTORE_PASSWORD,
    show_default=True,
    help="Password of keystore.p12.",
)
@state_option
def new(
    name: str,
    roles: tuple[str, ...],
    organization_identifier: str | None,
    flaw: str | None,
    keystore_password: str,
    state: str | None,
) -> None:
    """Issue a certificate. It becomes certificate.pem, key.pem and keystore.p12 in DIR/tpps/NAME."""
    from emulator.ca import IssueRefused, TppExists

    directory = state_directory(state)
    try:
        with authority_in(directory) as authority:
            authority.issue(
                name,
                roles=roles or ("PISP", "AISP"),
                organization_identifier=organization_identifier,
                flaw=flaw,
                keystore_password=keystore_password,
            )
    except TppExists as error:
        raise Failed(f"there is a TPP {name} already, in {directory / 'tpps' / name}") from error
    except IssueRefused as error:
        raise Failed(str(error)) from error
    folder = directory / "tpps" / name
    for file in ("certificate.pem", "key.pem", "keystore.p12"):
        click.echo(str(folder / file))


@command.command("list", epilog="Example: bank-emulator tpp list --output json")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@state_option
def list_(output: str, state: str | None) -> None:
    """The TPPs of a state directory."""
    directory = state_directory(state)
    if not (directory / "ca.pem").is_file():
        raise Failed(f"{directory} holds no sandbox CA yet: `bank-emulator serve` makes one")
    with authority_in(directory) as authority:
        found = [_shown(credentials, directory) for credentials in authority.tpps()]
    show(found, output, lambda value: rows(value, "name", "tppId", "roles", "validUntil"))


def _shown(credentials: Credentials, directory: Path) -> dict[str, Any]:
    from emulator.api.certificates import read_certificate

    tpp = read_certificate(credentials.certificate_header).tpp
    return {
        "name": credentials.name,
        "tppId": tpp.id,
        "roles": sorted(tpp.roles),
        "validUntil": credentials.certificate.not_valid_after_utc.isoformat(timespec="seconds"),
        "folder": str(directory / "tpps" / credentials.name),
    }
