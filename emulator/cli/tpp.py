"""`bank-emulator tpp`: TPP certificates, issued by the sandbox CA of a state directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.bank import show, table
from emulator.cli.options import (
    OrderedGroup,
    authority_in,
    check_name,
    output_option,
    state_directory,
    state_option,
)
from emulator.failure import Failed
from emulator.settings import KEYSTORE_PASSWORD

if TYPE_CHECKING:
    from emulator.ca import Credentials

FILES = {"certificate": "certificate.pem", "key": "key.pem", "keystore": "keystore.p12"}

# How a bank treats each flaw. The flaws are those of emulator.ca, which is slow to import.
FLAWS = {
    "expired": "always refused",
    "not-yet-valid": "refused for 30 days, until its validity starts",
    "unknown-ca": "refused only with the setting trust=sandbox-ca",
    "no-roles": "refused by operations that require a role",
    "leading-zero-serial": "accepted, with a keyId whose SN is the serial number",
    "special-characters": "accepted, with a keyId whose CA is escaped by RFC 2253",
}


@click.group(cls=OrderedGroup, name="tpp", epilog="Example: bank-emulator tpp new shop --role PISP")
def command() -> None:
    """Issue and list certificates of TPPs."""


@command.command(
    epilog="\b\nFlaws, and how the bank treats each:\n"
    + "\n".join(f"  {name:<20} {effect}" for name, effect in FLAWS.items())
    + "\n\nExample: bank-emulator tpp new shop --role PISP --flaw expired"
)
@click.argument("name")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(["PISP", "AISP"]),
    help="A role of the TPP; may be repeated. Default: both.",
)
@click.option("--organization-identifier", metavar="ID", help="Such as PSDNO-FSA-SHOP. Default: derived from NAME.")
@click.option(
    "--flaw",
    metavar="FLAW",
    type=click.Choice(list(FLAWS)),
    help="Issue a certificate with a flaw of the list below.",
)
@click.option(
    "--keystore-password",
    callback=check_name,
    metavar="TEXT",
    default=KEYSTORE_PASSWORD,
    help="The password of keystore.p12.",
)
@output_option
@state_option
def new(
    name: str,
    roles: tuple[str, ...],
    organization_identifier: str | None,
    flaw: str | None,
    keystore_password: str,
    output: str,
    state: str | None,
) -> None:
    """Issue a certificate for the TPP NAME.

    Writes certificate.pem, key.pem and keystore.p12 to the folder tpps/NAME of the state directory.
    """
    from emulator.ca import IssueRefused, TppExists, tpp_name

    directory = state_directory(state)
    is_new = not (directory / "ca.pem").is_file()
    try:
        name = tpp_name(name)  # before the CA is created
        with authority_in(directory) as authority:
            if is_new:
                click.echo(f"created the sandbox CA of {directory.absolute()}", err=True)
            issued = authority.issue(
                name,
                roles=roles or ("PISP", "AISP"),
                organization_identifier=organization_identifier,
                flaw=flaw,
                keystore_password=keystore_password,
            )
    except TppExists as error:
        raise Failed(f"the TPP {name} already exists, in {directory / 'tpps' / name}") from error
    except IssueRefused as error:
        raise Failed(str(error)) from error
    folder = directory / "tpps" / issued.name
    files = {name: str(folder / file) for name, file in FILES.items()}
    show({**_shown(issued, directory), **files}, output, lambda _: click.echo("\n".join(files.values())))
    if flaw is not None:
        click.echo(f"{flaw}: {FLAWS[flaw]}", err=True)


@command.command("list", epilog="Example: bank-emulator tpp list --output json")
@output_option
@state_option
def list_(output: str, state: str | None) -> None:
    """List the TPPs of a state directory."""
    directory = state_directory(state)
    if not (directory / "ca.pem").is_file():
        raise Failed(f"{directory.absolute()} holds no sandbox CA; `bank-emulator serve` creates one (--state DIR)")
    with authority_in(directory) as authority:
        tpps = [_shown(credentials, directory) for credentials in authority.tpps()]
    show(tpps, output, table("TPPs", "name", "tppId", "roles", "validUntil"))


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


COMMANDS = {"tpp": command}
