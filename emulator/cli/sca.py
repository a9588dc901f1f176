"""`bank-emulator sca`: list SCAs and complete them in place of the customer."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import click

from emulator.cli.bank import ask, listing, members, name_argument, show, table
from emulator.cli.options import OrderedGroup, bank_options, bank_url, check_name
from emulator.failure import Failed
from emulator.settings import variable

LIST = listing(
    "List open and past SCAs, newest first.",
    "sca",
    table("SCAs", "created", "status", "purpose", "nationalId", "target", "id"),
)
# Each way to complete an SCA, with its help, example and options; the verb is part of the path.
ACTIONS: dict[str, tuple[str, str, tuple[click.Option, ...]]] = {
    "approve": (
        "Approve TARGET and print where the browser would go.",
        "latest --national-id 14888520059",
        (
            click.Option(
                ["--national-id", "nationalId"],
                metavar="ID",
                help="Who approves, if the request does not name the customer.",
            ),
            click.Option(["--method"], metavar="NAME", help="How the customer authenticates."),
            click.Option(["--context"], type=click.Choice(["PRIVATE", "CORPORATE"]), help="The role of the customer."),
            click.Option(["--agreement"], metavar="ID", help="The psuCorporateId of an agreement; default: the first."),
            click.Option(
                ["--account", "accounts"],
                metavar="ACCOUNT",
                multiple=True,
                help="An IBAN, BBAN or resourceId to share; may be repeated. Default: all accounts.",
            ),
        ),
    ),
    "reject": ("Decline TARGET, as the customer does.", "latest", ()),
    "expire": ("Let the time of TARGET run out.", "latest", ()),
    "fail": (
        "Let a system of the bank fail during TARGET.",
        "latest --status 503 --system core",
        (
            click.Option(["--status"], metavar="N", type=click.IntRange(400, 599), help="The HTTP status."),
            click.Option(["--code"], metavar="CODE", help="An error code of the bank."),
            click.Option(["--message"], metavar="TEXT", help="The text of the error."),
            click.Option(["--system"], metavar="NAME", help="The internal system at fault."),
        ),
    ),
}


_NARROWED = (
    click.Option(
        ["--tpp"], metavar="TPP", callback=check_name, help="The latest SCA of this TPP (name or tppId) only."
    ),
    click.Option(
        ["--for", "purpose"],
        type=click.Choice(["payment", "consent"]),
        help="The latest SCA of this kind only: payment (or basket, cancellation) or consent (access to accounts).",
    ),
)
_PAYMENT = ("payment", "basket", "cancellation")
_TARGET = "TARGET is a scaRedirect address, its last part, the id of a payment, basket or consent, or latest (default)."


@click.group(cls=OrderedGroup, name="sca", epilog="Example: bank-emulator sca approve latest --national-id 14888520059")
def command() -> None:
    """List SCAs and complete one in place of the customer."""


def _action(verb: str) -> click.Command:
    about, example, options = ACTIONS[verb]

    @bank_options
    def run(target: str, url: str | None, output: str, tpp: str | None, purpose: str | None, **values: Any) -> None:
        address, name = sca_place(target, url)
        latest = _latest(address, tpp, purpose, verb) if name == "latest" else None
        if latest is None and (tpp or purpose):
            raise click.UsageError("--tpp and --for go with the TARGET latest")
        chosen = name if latest is None else latest["id"]
        answer = ask(address, "POST", f"sca/{quote(chosen, safe='!=')}/{verb}", members(values))
        if latest is not None:
            click.echo(f"{verb} {_described(latest)}", err=True)
        show(answer, output, lambda _: click.echo(answer["redirect"] or "the customer left; there is no redirect"))
        outcome = dict(parse_qsl(urlsplit(answer["redirect"] or "").query))
        if verb == "approve" and answer["redirect"] is None:
            raise Failed("not approved: a rule makes the customer leave")
        if verb == "approve" and "code" in outcome:
            raise Failed(f"not approved: {outcome['code']}, {outcome['message']}")

    params = [name_argument("target", default="latest"), *options, *_NARROWED]
    return click.command(
        verb, params=params, help=f"{about}\n\n{_TARGET}", epilog=f"Example: bank-emulator sca {verb} {example}"
    )(run)


def _latest(address: str, tpp: str | None, purpose: str | None, verb: str) -> dict[str, Any]:
    """The newest SCA, of one TPP or kind; raises Failed if it has ended, as an older one would be the wrong one."""
    listed: list[dict[str, Any]] = ask(address, "GET", "sca?limit=1000")["sca"]
    if tpp is not None:
        known = ask(address, "GET", "tpps?limit=1000")["tpps"]
        ids = {tpp, *(one["tppId"] for one in known if one["name"] == tpp)}
        listed = [sca for sca in listed if sca["tpp"] in ids]
        if not listed and len(ids) == 1 and len(known) == 1000:
            raise Failed(f"the newest 1000 TPPs have no {tpp}, and no SCA is of that tppId: name the tppId")
    if purpose is not None:
        listed = [sca for sca in listed if (sca["purpose"] in _PAYMENT) == (purpose == "payment")]
    if not listed:
        narrowed = f"{f' of TPP {tpp}' if tpp else ''}{f' for a {purpose}' if purpose else ''}"
        raise Failed(f"there is no SCA{narrowed} yet")
    latest = listed[0]
    if latest["status"] in ("finalised", "failed"):
        ended = "approved" if latest["status"] == "finalised" else "ended"
        went = f" Its browser goes to {latest['redirect']}" if "redirect" in latest else ""
        raise Failed(
            f"the latest SCA, {_described(latest)}, was {ended} already at {latest['ended']}. "
            f"There is no newer one; to {verb} an older one, name its id.{went}"
        )
    return latest


def sca_place(target: str, url: str | None) -> tuple[str, str]:
    """The address of the bank that TARGET belongs to, and the name of the SCA there.

    A scaRedirect contains the path of its bank; --url replaces the address in front of that. Raises Failed.
    """
    try:
        parts = urlsplit(target)
    except ValueError as error:
        raise Failed(f"{target} is no address: {error}") from None
    path, _, name = parts.path.rstrip("/").rpartition("/")
    if not name:
        raise Failed(f"{target} names no SCA")
    if parts.scheme not in ("http", "https"):
        return bank_url(url), name
    bank_path = path.removesuffix("/sca")
    base = bank_url(url if url or variable("URL") else f"{parts.scheme}://{parts.netloc}")
    return base if base.endswith(bank_path) else base + bank_path, name


def _described(sca: dict[str, Any]) -> str:
    """What an SCA is about, so that people see whether it is the one that they mean."""
    about = f"{sca['purpose']} {sca.get('target', '')}".rstrip()
    customer = f", customer {sca['nationalId']}" if "nationalId" in sca else ""
    return f"{about} of {sca['tpp']}{customer}, created {sca['created']}"


command.add_command(LIST.command("sca", "list"))
for _verb in ACTIONS:
    command.add_command(_action(_verb))

COMMANDS = {"sca": command}
