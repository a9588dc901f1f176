"""`bank-emulator tpp`: certificates of TPPs, issued by the sandbox CA of a state directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.bank import rows, show
from emulator.cli.failure import Failed
from emulator.cli.options import authority_in, check_name, complete_flaw, state_directory, state_option

if TYPE_CHECKING:
    from emulator.ca import Credentials

KEYSTORE_PASSWORD = "bank-emulator"

# What a bank does with each, without its name here: emulator.ca, which has the flaws, is slow to import.
FLAWS = {
    "expired": "refused always: its last day of validity has passed",
    "not-yet-valid": "refused always until the first day of its validity, 30 days from now",
    "unknown-ca": "refused where the bank has the setting trust=sandbox-ca; accepted with the default, trust=any",
    "no-roles": "refused by every operation that asks for a role (PISP or AISP)",
    "leading-zero-serial": "accepted; refused is a keyId whose SN is written differently from the serial number",
    "special-characters": "accepted; refused is a keyId whose CA is not escaped as RFC 2253 has it",
}


@click.group(name="tpp", epilog="Example: bank-emulator tpp new shop --role PISP")
def command() -> None:
    """Issue and list certificates of TPPs."""


@command.command(
    epilog="\b\nFlaws, and what the bank does with each:\n"
    + "\n".join(f"{name}: {effect}" for name, effect in FLAWS.items())
    + "\n\nExample: bank-emulator tpp new shop --role PISP --flaw expired"
)
@click.argument("name")
@click.option("--role", "roles", multiple=True, type=click.Choice(["PISP", "AISP"]), help="Default: both.")
@click.option("--organization-identifier", metavar="ID", help="Such as PSDNO-FSA-SHOP; default: made from the name.")
@click.option(
    "--flaw",
    metavar="FLAW",
    help="Issue a faulty certificate; the flaws are listed below.",
    shell_complete=complete_flaw,
)
@click.option(
    "--keystore-password",
    callback=check_name,
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
    """Issue a certificate. Writes certificate.pem, key.pem and keystore.p12 into DIR/tpps/NAME."""
    from emulator.ca import IssueRefused, TppExists

    directory = state_directory(state)
    is_new = not (directory / "ca.pem").is_file()
    try:
        with authority_in(directory) as authority:
            if is_new:
                click.echo(f"created the sandbox CA of {directory.absolute()}", err=True)
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
    if flaw in FLAWS:
        click.echo(f"{flaw}: {FLAWS[flaw]}", err=True)


@command.command("list", epilog="Example: bank-emulator tpp list --output json")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@state_option
def list_(output: str, state: str | None) -> None:
    """The TPPs of a state directory."""
    directory = state_directory(state)
    if not (directory / "ca.pem").is_file():
        raise Failed(f"{directory.absolute()} holds no sandbox CA; `bank-emulator serve` creates one (--state DIR)")
    with authority_in(directory) as authority:
        tpps = [_shown(credentials, directory) for credentials in authority.tpps()]
    show(tpps, output, lambda value: rows(value, "name", "tppId", "roles", "validUntil", noun="TPPs"))


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
