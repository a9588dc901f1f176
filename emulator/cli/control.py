"""The commands that forward to the control interface of a running bank: one row each (CONTRACT 9, 11).

A row says what is asked (method, and a path below `/_emulator/`) and how the answer is shown. A parameter of the row
that stands in the path goes there, the others go into the query of a GET or into the JSON body, under their name in
camel case. Adding such a command is adding a row to NOUNS.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import click

from emulator.cli.bank import ask, bank_options, hint, progress, rows, show
from emulator.cli.failure import CheckFailed
from emulator.cli.options import bank_url, check_name, complete_scenario, complete_setting
from emulator.settings import variable

MOST_CUSTOMERS = 100_000  # of one request, as the bank has it
CUSTOMERS_PER_REQUEST = 100  # so that what each has stays within the limits of a request

Text = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One command. `view` selects what is shown of the answer, `text` prints it for people.

    `path` has its parameters in braces; `body` makes the body from the other parameters, unless their names do. Of what
    takes long `tells` is the kind of the events that say how far it is.
    """

    about: str
    method: str
    path: str
    example: str
    params: tuple[click.Parameter, ...] = ()
    view: Callable[[Any], Any] = lambda answer: answer
    text: Text = lambda _: None
    body: Callable[[Mapping[str, Any]], Any] | None = None
    tells: str = ""

    def run(self, *, url: str | None, output: str, **values: Any) -> None:
        """Ask the bank and show its answer; the answer to a deletion is what was named."""
        named = {name: value for name, value in values.items() if f"{{{name}}}" in self.path}
        address = self.path.format(**{name: quote(value, safe="!=") for name, value in named.items()})
        rest = {name: value for name, value in values.items() if name not in named}
        content = self.body(rest) if self.body is not None else _members(rest)
        if self.method == "GET" and content:
            address, content = f"{address}?{urlencode(content)}", None
        with progress(bank_url(url), self.tells, _how_far) if self.tells else nullcontext():
            answer = ask(bank_url(url), self.method, address, None if content == {} else content)
        show(named if answer is None else self.view(answer), output, self.text)

    def command(self, name: str) -> click.Command:
        """The click command of this row."""
        command = click.Command(
            name, callback=self.run, params=list(self.params), help=self.about, epilog=f"Example: {self.example}"
        )
        return bank_options(command)


def _how_far(event: Mapping[str, Any]) -> str:
    return f"{event['status']}, {100 * event['done'] // max(event['of'], 1)} %"


def _members(values: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON members of parameters: in camel case, without those that were not given."""
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {_camel_case(name): value for name, value in given.items() if value is not None and value != []}


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _name(name: str, **options: Any) -> click.Argument:
    return click.Argument([name], callback=check_name, **options)


def _limit(default: int) -> click.Option:
    return click.Option(["--limit"], type=click.IntRange(1, 1000), default=default, show_default=True)


def _json(member: str) -> Callable[[Mapping[str, Any]], Any]:
    """The body from one argument that is JSON."""

    def body(values: Mapping[str, Any]) -> Any:
        try:
            return json.loads(values[member])
        except ValueError as error:
            raise click.UsageError(f"{member.upper()} is not JSON: {error}") from error

    return body


def _table(noun: str, *columns: str) -> Text:
    return lambda value: rows(value if isinstance(value, list) else [value], *columns, noun=noun)


def _line(member: str) -> Text:
    return lambda value: click.echo(value[member])


# How answers look as text


def _clock_text(clock: dict[str, Any]) -> None:
    click.echo(f"{clock['now']} {clock['mode']}")


def _reset_text(answer: dict[str, Any]) -> None:
    click.echo(f"{answer['fixtures']} {answer['scenario'] or ''}".rstrip())


def _people_text(people: list[dict[str, Any]]) -> None:
    shown = [
        {
            **person,
            "accounts": [f"{account['iban']} {account['currency']}" for account in person["accounts"]],
            "agreements": [agreement["name"] for agreement in person["agreements"]],
        }
        for person in people
    ]
    rows(shown, "nationalId", "name", "accounts", "agreements", noun="people")


def _rules_text(rules: list[dict[str, Any]]) -> None:
    shown = [
        {
            **rule,
            "from": f"setting {rule['setting']}" if "setting" in rule else rule["scenario"],
            "then": json.dumps(rule["then"], ensure_ascii=False),
        }
        for rule in rules
    ]
    rows(shown, "name", "from", "matched", "acted", "then", noun="rules")


def _counted_rules(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Each rule as it was given, with its scenario and how often it has matched and acted."""
    return [{**rule, **count} for rule, count in zip(answer["rules"], answer["counts"], strict=True)]


_payments_text = _table(
    "payments", "created", "transactionStatus", "service", "product", "instructedAmount", "creditorName", "paymentId"
)
_consents_text = _table("consents", "lastSca", "status", "tpp", "nationalId", "context", "consentId")


def _notifications_text(notifications: list[dict[str, Any]]) -> None:
    shown = [
        {
            **one,
            "status": next((value for name, value in one["body"].items() if name.endswith("Status")), ""),
            "attempts": " ".join(str(each.get("status") or each["error"]) for each in one["deliveries"]),
        }
        for one in notifications
    ]
    rows(shown, "created", "state", "status", "attempts", "uri", "target", noun="notifications")


_SCENARIO = click.Option(
    ["--scenario"], metavar="NAME", help="A ready scenario to apply.", shell_complete=complete_scenario
)
_ADD_RULE = """bank-emulator rules add '{"when": {"operation": "createPayment"}, "then": {"disconnect": "after"}}'"""

# A noun with its verbs, or a noun alone.
NOUNS: dict[str, Row | tuple[str, dict[str, Row]]] = {
    "clock": (
        "Show, set and advance bank time.",
        {
            "show": Row(
                "Bank time, and whether it runs (live) or stands still (frozen).",
                *("GET", "clock", "bank-emulator clock show --output json"),
                text=_clock_text,
            ),
            "set": Row(
                "Set bank time to NOW, a later moment with its time zone. Only a reset sets it back.",
                *("PUT", "clock", "bank-emulator clock set 2026-03-02T09:00:00+01:00 --mode frozen"),
                params=(
                    click.Argument(["now"], required=False),
                    click.Option(["--mode"], type=click.Choice(["live", "frozen"]), help="Let it run or stand still."),
                ),
                text=_clock_text,
                tells="clock",
            ),
            "advance": Row(
                "Advance bank time BY 10s, 1h30m, 3d, PT1H or the like. What falls due happens in order.",
                *("POST", "clock/advance", "bank-emulator clock advance 1h30m"),
                params=(click.Argument(["by"]),),
                text=_clock_text,
                tells="clock",
            ),
        },
    ),
    "payments": (
        "List payments and advance one by hand.",
        {
            "list": Row(
                "All payments, newest first.",
                *("GET", "payments", "bank-emulator payments list --output json"),
                params=(_limit(20),),
                view=itemgetter("payments"),
                text=_payments_text,
            ),
            "advance": Row(
                "Take the next step of PAYMENT, or go to a status. Dates and missing money do not matter.",
                *("POST", "payments/{payment}/advance", "bank-emulator payments advance 3f2b... --to ACSC"),
                params=(
                    _name("payment"),
                    click.Option(["--to"], metavar="STATUS", help="Go to this status; default: one step."),
                ),
                text=_payments_text,
            ),
        },
    ),
    "consents": (
        "List consents and revoke one as the customer.",
        {
            "list": Row(
                "All consents, newest first.",
                *("GET", "consents", "bank-emulator consents list --output json"),
                params=(_limit(20),),
                view=itemgetter("consents"),
                text=_consents_text,
            ),
            "revoke": Row(
                "Revoke CONSENT, as the customer does at the bank.",
                *("POST", "consents/{consent}/revoke", "bank-emulator consents revoke 3f2b..."),
                params=(_name("consent"),),
                text=_consents_text,
            ),
        },
    ),
    "notifications": Row(
        "List status notifications, newest first. Each with its attempts.",
        *("GET", "notifications", "bank-emulator notifications --target 3f2b..."),
        params=(
            click.Option(["--target"], metavar="ID", help="Those of this payment, basket or consent."),
            _limit(20),
        ),
        view=itemgetter("notifications"),
        text=_notifications_text,
    ),
    "snapshot": (
        "Save and restore documents, clock, rules and settings.",
        {
            "list": Row(
                "All snapshots, newest first.",
                *("GET", "snapshots", "bank-emulator snapshot list --output json"),
                view=itemgetter("snapshots"),
                text=_table("snapshots", "created", "name"),
            ),
            "save": Row(
                "Save the bank as it is now under NAME.",
                *("PUT", "snapshots/{name}", "bank-emulator snapshot save before-payday"),
                params=(_name("name"),),
                text=_line("name"),
            ),
            "load": Row(
                "Restore the bank as it was saved under NAME.",
                *("POST", "snapshots/{name}/restore", "bank-emulator snapshot load before-payday"),
                params=(_name("name"),),
                text=_line("name"),
            ),
            "delete": Row(
                "Delete the snapshot NAME.",
                *("DELETE", "snapshots/{name}", "bank-emulator snapshot delete before-payday"),
                params=(_name("name"),),
                text=_line("name"),
            ),
        },
    ),
    "banks": (
        "Banks by name, each with its own documents and clock.",
        {
            "list": Row(
                "All banks, the default one first, the others by name.",
                *("GET", "banks", "bank-emulator banks list --output json"),
                params=(_limit(100),),
                view=itemgetter("banks"),
                text=_table("banks", "name", "baseUrl"),
            ),
            "make": Row(
                "Create the bank NAME, or replace it; prints its address.",
                *("PUT", "banks/{name}", "bank-emulator banks make test-1 --seed 7"),
                params=(
                    _name("name"),
                    click.Option(["--fixtures"], metavar="NAME", help="The fixture that it starts with."),
                    _SCENARIO,
                    click.Option(["--seed"], type=int, help="Makes its ids and chances repeat from run to run."),
                ),
                text=_line("baseUrl"),
            ),
            "delete": Row(
                "Delete the bank NAME and its documents.",
                *("DELETE", "banks/{name}", "bank-emulator banks delete test-1"),
                params=(_name("name"),),
            ),
        },
    ),
    "rules": (
        "List, add and remove scripted rules.",
        {
            "list": Row(
                "The rules in the order in which they are tried. Each with how often it has matched and acted.",
                *("GET", "rules", "bank-emulator rules list --output json"),
                params=(_limit(100),),
                view=_counted_rules,
                text=_rules_text,
            ),
            "add": Row(
                "Add RULE, JSON as in a scenario. It is tried after the rules that are there.",
                *("POST", "rules", _ADD_RULE),
                params=(click.Argument(["rule"]),),
                view=_counted_rules,
                text=_rules_text,
                body=_json("rule"),
            ),
            "remove": Row(
                "Remove the rules called NAME.",
                *("DELETE", "rules/{name}", "bank-emulator rules remove 'slow reads'"),
                params=(_name("name"),),
            ),
            "clear": Row("Remove all rules.", "DELETE", "rules", "bank-emulator rules clear"),
        },
    ),
    "reset": Row(
        "Reset the bank. Documents, clock, settings, rules and request log start again; snapshots stay.",
        *("POST", "reset", "bank-emulator reset --fixtures known-state --scenario slow-bank"),
        params=(
            click.Option(["--fixtures"], metavar="NAME", help="Default: the fixture that the bank was started with."),
            _SCENARIO,
        ),
        text=_reset_text,
    ),
    "people": Row(
        "List people, newest first. Each with identity number, accounts and agreements.",
        *("GET", "people", "bank-emulator people --output json"),
        params=(_limit(100),),
        view=itemgetter("people"),
        text=_people_text,
    ),
}


def _command(noun: str) -> click.Command:
    row_or_group = NOUNS[noun]
    if isinstance(row_or_group, Row):
        return row_or_group.command(noun)
    about, verbs = row_or_group
    example = f"Example: {next(reversed(verbs.values())).example}"
    return click.Group(noun, {verb: row.command(verb) for verb, row in verbs.items()}, help=about, epilog=example)


COMMANDS = {noun: _command(noun) for noun in NOUNS}


# Commands that do more than forward


@click.command(epilog="Example: bank-emulator ledger --output json")
@bank_options
def ledger(url: str | None, output: str) -> None:
    """Compare every account with its bookings. Exit 1 when the money does not add up."""
    report = ask(bank_url(url), "GET", "ledger")
    show(report, output, _ledger_text)
    if not report["balanced"]:
        raise CheckFailed("the ledger does not balance")


def _ledger_text(report: dict[str, Any]) -> None:
    columns = ("iban", "currency", "opening", "bookings", "balance", "reserved")
    rows(report["accounts"], *columns, noun="accounts")
    click.echo("balanced" if report["balanced"] else "NOT balanced")


@click.command(epilog="Example: bank-emulator settings progression=immediate calendar=norway")
@click.argument("changes", nargs=-1, metavar="[NAME=VALUE]...", shell_complete=complete_setting)
@bank_options
def settings(changes: tuple[str, ...], url: str | None, output: str) -> None:
    """Show all settings; with NAME=VALUE change these first. A VALUE that is JSON is read as JSON."""
    address = bank_url(url)
    if changes:
        answer = ask(address, "PUT", "settings", dict(_change(change) for change in changes))
    else:
        answer = ask(address, "GET", "settings")
    show(answer, output, _settings_text)


def _change(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"a change is written NAME=VALUE, not {text!r}")
    if name.endswith("_limit"):
        return name, value  # an amount is text
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _settings_text(values: dict[str, Any]) -> None:
    for name, value in values.items():
        click.echo(f"{name}={value if isinstance(value, str) else json.dumps(value)}")


@click.command(epilog="Example: bank-emulator generate --customers 50 --transactions-per-account 200 --seed 7")
@click.option("--customers", type=click.IntRange(1, MOST_CUSTOMERS), default=10, show_default=True)
@click.option("--accounts-per-customer", "--accounts", type=click.IntRange(1), default=2, show_default=True)
@click.option("--transactions-per-account", "--transactions", type=click.IntRange(0), default=100, show_default=True)
@click.option("--days", type=click.IntRange(1), default=90, show_default=True, help="How far back transactions go.")
@click.option("--seed", type=click.IntRange(0), help="The same people every time; sent as one request.")
@bank_options
def generate(
    customers: int,
    accounts_per_customer: int,
    transactions_per_account: int,
    days: int,
    seed: int | None,
    url: str | None,
    output: str,
) -> None:
    """Add generated customers with accounts and transactions."""
    address = bank_url(url)
    generated: list[Any] = []
    counts = {"customers": 0, "accounts": 0, "transactions": 0}
    while counts["customers"] < customers:
        missing = customers - counts["customers"]
        body = {
            "customers": missing if seed is not None else min(missing, CUSTOMERS_PER_REQUEST),
            "accountsPerCustomer": accounts_per_customer,
            "transactionsPerAccount": transactions_per_account,
            "days": days,
            "seed": seed,
        }
        with progress(address, "customers", partial(_generated_so_far, counts["customers"], customers)):
            answer = ask(address, "POST", "generate", _members(body))
        counts = {name: count + answer["counts"][name] for name, count in counts.items()}
        generated += answer["customers"]
    show({"counts": counts, "customers": generated}, output, _generated_text)


def _generated_so_far(before: int, customers: int, event: Mapping[str, Any]) -> str:
    return f"{before + event['done']} of {customers} customers"


def _generated_text(answer: dict[str, Any]) -> None:
    from emulator.bank.errors import counted

    click.echo(", ".join(counted(count, name.removesuffix("s")) for name, count in answer["counts"].items()))


@click.group(epilog="Example: bank-emulator sca approve latest --national-id 14888520059")
def sca() -> None:
    """Approve or reject an SCA in place of the customer.

    TARGET is a scaRedirect address, its last part, the id of a payment, basket or consent, or latest.
    """


@sca.command("list", epilog="Example: bank-emulator sca list --output json")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@bank_options
def sca_list(limit: int, url: str | None, output: str) -> None:
    """Open and past SCAs, newest first."""
    text = _table("SCAs", "created", "status", "purpose", "nationalId", "target", "id")
    show(ask(bank_url(url), "GET", f"sca?limit={limit}")["sca"], output, text)


@dataclass(frozen=True, slots=True)
class _ScaAction:
    """A way to end an SCA: its verb is in the path, its options in the body."""

    about: str
    example: str
    options: tuple[click.Option, ...] = ()

    def command(self, verb: str) -> click.Command:
        """The click command of this action."""

        def run(target: str, url: str | None, output: str, **options: Any) -> None:
            address, name = sca_place(target, url)
            if name == "latest" and sys.stderr.isatty():
                latest = ask(address, "GET", "sca/latest")
                name = latest["id"]
                hint(f"{verb} {_described(latest)}")
            answer = ask(address, "POST", f"sca/{quote(name, safe='!=')}/{verb}", _members(options))
            show(answer, output, _redirect_text)

        target = _name("target", default="latest")
        example = f"Example: {self.example}"
        return bank_options(
            click.Command(verb, callback=run, params=[target, *self.options], help=self.about, epilog=example)
        )


def sca_place(target: str, url: str | None) -> tuple[str, str]:
    """The bank that TARGET belongs to, and the name of the SCA there.

    A scaRedirect names its bank too: that bank is asked, at the address of --url where this is given.
    """
    parts = urlsplit(target)
    path, _, name = parts.path.rstrip("/").rpartition("/")
    if parts.scheme not in ("http", "https"):
        return bank_url(url), name
    below = path.removesuffix("/sca")
    base = bank_url(url if url or variable("URL") else f"{parts.scheme}://{parts.netloc}")
    return base if base.endswith(below) else base + below, name


def _described(sca: dict[str, Any]) -> str:
    """What an SCA is about, so that people see whether it is the one that they mean."""
    about = f"{sca['purpose']} {sca.get('target', '')}".rstrip()
    customer = f", customer {sca['nationalId']}" if "nationalId" in sca else ""
    return f"{about} of {sca['tpp']}{customer}, created {sca['created']}, {sca['status']}"


def _redirect_text(answer: dict[str, Any]) -> None:
    click.echo(answer["redirect"] or "the customer left; there is no redirect")


SCA_ACTIONS = {
    "approve": _ScaAction(
        "Approve TARGET; prints where the browser would go.",
        "bank-emulator sca approve latest --national-id 14888520059",
        (
            click.Option(["--national-id"], help="Who approves, where the request does not say."),
            click.Option(["--method"], help="How the customer authenticates."),
            click.Option(["--context"], type=click.Choice(["PRIVATE", "CORPORATE"])),
            click.Option(["--agreement"], help="The psuCorporateId of an agreement; default: the first."),
            click.Option(
                ["--account", "accounts"], multiple=True, help="IBAN, BBAN or resourceId to share; repeatable."
            ),
        ),
    ),
    "reject": _ScaAction("The customer declines TARGET.", "bank-emulator sca reject latest"),
    "expire": _ScaAction("The customer is too late for TARGET.", "bank-emulator sca expire latest"),
    "fail": _ScaAction(
        "A system of the bank fails during TARGET.",
        "bank-emulator sca fail latest --status 503 --system core",
        (
            click.Option(["--status"], type=click.IntRange(400, 599)),
            click.Option(["--code"], help="An error code of the bank."),
            click.Option(["--message"]),
            click.Option(["--system"], help="The internal system at fault."),
        ),
    ),
}
for _verb, _action in SCA_ACTIONS.items():
    sca.add_command(_action.command(_verb))

COMMANDS |= {"ledger": ledger, "settings": settings, "generate": generate, "sca": sca}
