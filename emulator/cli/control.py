"""The commands that forward to the control interface of a running bank: one row each.

To add such a command, add it to NOUNS; see `ControlCommand`. A new noun is also a line of `COMMANDS` in `main.py`.
"""

from __future__ import annotations

import json
from typing import Any

import click

from emulator.cli.bank import (
    ControlCommand,
    ask,
    echo_notes,
    json_body,
    limit_option,
    line,
    listing,
    rows,
    show,
    table,
)
from emulator.cli.options import (
    OrderedGroup,
    bank_options,
    bank_url,
    complete_fixture,
    complete_scenario,
    completing,
    named_values,
)


def _clock_text(clock: dict[str, Any]) -> None:
    click.echo(f"{clock['now']} {clock['mode']}")


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
    echo_notes(rules)


def _counted_rules(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Each rule as it was added, with its scenario and how often it has matched and acted."""
    return [{**rule, **count} for rule, count in zip(answer["rules"], answer["counts"], strict=True)]


_payments_text = table(
    "payments", "created", "transactionStatus", "service", "product", "instructedAmount", "creditorName", "paymentId"
)
_consents_text = table("consents", "lastSca", "status", "tpp", "nationalId", "context", "consentId")


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


def _ledger_text(report: dict[str, Any]) -> None:
    columns = ("iban", "currency", "opening", "bookings", "balance", "reserved")
    rows(report["accounts"], *columns, noun="accounts")
    click.echo("balanced" if report["balanced"] else "NOT balanced")


def _generated_text(answer: dict[str, Any]) -> None:
    from emulator.bank.errors import counted

    click.echo(", ".join(counted(count, name.removesuffix("s")) for name, count in answer["counts"].items()))


def _count(option: str, default: int, about: str) -> click.Option:
    return click.Option(option.split(), metavar="N", type=int, default=default, help=about)


_SCENARIO = click.Option(
    ["--scenario"], metavar="NAME", help="A ready scenario to apply.", shell_complete=complete_scenario
)


def _fixtures(about: str) -> click.Option:
    return click.Option(["--fixtures"], metavar="NAME", help=about, shell_complete=complete_fixture)


# A noun with its verbs, or a noun alone.
NOUNS: dict[str, ControlCommand | tuple[str, dict[str, ControlCommand]]] = {
    "clock": (
        "Show, set and advance bank time.",
        {
            "show": ControlCommand(
                "Show bank time and its mode. It runs (live) or stands still (frozen).",
                "GET clock",
                "--output json",
                text=_clock_text,
            ),
            "set": ControlCommand(
                "Set bank time to NOW, a later time with a UTC offset. Only a reset sets it back.",
                "PUT clock",
                "2036-03-03T09:00:00+01:00 --mode frozen",
                params=(
                    click.Argument(["now"], required=False),
                    click.Option(
                        ["--mode"], type=click.Choice(["live", "frozen"]), help="Whether it then runs or stands still."
                    ),
                ),
                text=_clock_text,
                progress="clock",
            ),
            "advance": ControlCommand(
                "Advance bank time BY a duration such as 10s, 1h30m, 3d or PT1H. What falls due happens in order.",
                "POST clock/advance",
                "1h30m",
                params=(click.Argument(["by"]),),
                text=_clock_text,
                progress="clock",
            ),
        },
    ),
    "payments": (
        "List payments and advance one through its statuses.",
        {
            "list": listing("List payments, newest first.", "payments", _payments_text),
            "advance": ControlCommand(
                "Advance PAYMENT by one status, or to a given one. Dates and missing money do not stop it.",
                "POST payments/{payment}/advance",
                "3f2b... --to ACSC",
                params=(
                    click.Option(["--to"], metavar="STATUS", help="Advance to this status; default: the next one."),
                ),
                text=_payments_text,
            ),
        },
    ),
    "consents": (
        "List consents and revoke one as the customer.",
        {
            "list": listing("List consents, newest first.", "consents", _consents_text),
            "revoke": ControlCommand(
                "Revoke CONSENT, as the customer can do at the bank.",
                "POST consents/{consent}/revoke",
                "3f2b...",
                text=_consents_text,
            ),
        },
    ),
    "notifications": listing(
        "List status notifications, newest first. Shows the attempts to deliver each.",
        "notifications",
        _notifications_text,
        click.Option(["--target"], metavar="ID", help="Only those of this payment, basket or consent."),
        example="--target 3f2b...",
    ),
    "snapshot": (
        "Save and restore documents, clock, rules and settings.",
        {
            "list": listing(
                "List snapshots, newest first.", "snapshots", table("snapshots", "created", "name"), limit=0
            ),
            "save": ControlCommand(
                "Save the bank as the snapshot NAME.", "PUT snapshots/{name}", "before-payday", text=line("name")
            ),
            "load": ControlCommand(
                "Restore the snapshot NAME.",
                "POST snapshots/{name}/restore",
                "before-payday",
                text=line("name"),
                progress="reset",
            ),
            "delete": ControlCommand(
                "Delete the snapshot NAME.", "DELETE snapshots/{name}", "before-payday", text=line("name")
            ),
        },
    ),
    "banks": (
        "Create, list and delete banks. Each has its own documents and clock.",
        {
            "list": listing(
                "List banks: the default one, then the others by name.",
                "banks",
                table("banks", "name", "baseUrl"),
                limit=100,
            ),
            "make": ControlCommand(
                "Create or replace the bank NAME and print its address.",
                "PUT banks/{name}",
                "test-1 --seed 7",
                params=(
                    _fixtures("The fixture to load."),
                    _SCENARIO,
                    click.Option(
                        ["--seed"], metavar="N", type=int, help="Make its ids and chances repeat from run to run."
                    ),
                ),
                text=line("baseUrl"),
                progress="banks",
            ),
            "delete": ControlCommand("Delete the bank NAME and its documents.", "DELETE banks/{name}", "test-1"),
        },
    ),
    "rules": (
        "List, add and remove scripted rules.",
        {
            "list": ControlCommand(
                "List rules in evaluation order. Shows how often each has matched and acted.",
                "GET rules",
                "--output json",
                params=(limit_option(100),),
                view=_counted_rules,
                text=_rules_text,
            ),
            "add": ControlCommand(
                "Add RULE (JSON, as in a scenario) after the existing rules.",
                "POST rules",
                """'{"then": {"delay": "2s"}}'""",
                params=(click.Argument(["rule"]),),
                view=_counted_rules,
                text=_rules_text,
                body=json_body("rule"),
            ),
            "remove": ControlCommand("Remove the rules named NAME.", "DELETE rules/{name}", "'slow reads'"),
            "clear": ControlCommand("Remove all rules.", "DELETE rules"),
        },
    ),
    "reset": ControlCommand(
        "Reset the bank to all that it was made with. Snapshots stay.",
        "POST reset",
        "--fixtures known-state --scenario slow-bank",
        params=(_fixtures("The fixture to load. Default: the one that the bank was started with."), _SCENARIO),
        text=lambda answer: click.echo(f"{answer['fixtures']} {answer['scenario'] or ''}".rstrip()),
        progress="reset",
    ),
    "ledger": ControlCommand(
        "Compare the balance of every account with its bookings. Exit 1 if they differ.",
        "GET ledger",
        "--output json",
        text=_ledger_text,
        failure=lambda report: "" if report["balanced"] else "the ledger does not balance",
    ),
    "generate": ControlCommand(
        "Add generated customers with accounts and transactions.",
        "POST generate",
        "--customers 50 --transactions 200 --seed 7",
        params=(
            _count("--customers", 10, "How many customers."),
            _count("--accounts-per-customer --accounts accountsPerCustomer", 2, "How many accounts each has."),
            _count(
                "--transactions-per-account --transactions transactionsPerAccount",
                100,
                "How many bookings each account has.",
            ),
            _count("--days", 90, "How many days the bookings go back."),
            click.Option(["--seed"], metavar="N", type=int, help="Generate the same data each time."),
        ),
        text=_generated_text,
        progress="customers",
    ),
    "people": listing(
        "List people, newest first. Shows identity number, accounts and agreements.", "people", _people_text, limit=100
    ),
}


def _command(noun: str) -> click.Command:
    row_or_group = NOUNS[noun]
    if isinstance(row_or_group, ControlCommand):
        return row_or_group.command(noun)
    about, rows_by_verb = row_or_group
    verbs = {verb: row.command(noun, verb) for verb, row in rows_by_verb.items()}
    return OrderedGroup(noun, verbs, help=about, epilog=list(verbs.values())[1].epilog)


@click.command(epilog="Example: bank-emulator settings progression=immediate calendar=norway")
@click.argument(
    "changes",
    nargs=-1,
    metavar="[NAME=VALUE]...",
    callback=named_values,
    shell_complete=completing(lambda _: _setting_names()),
)
@bank_options
def settings(changes: dict[str, str], url: str | None, output: str) -> None:
    """Change settings and show all of them. A VALUE that is JSON is read as JSON."""
    from emulator.bank.settings import from_text

    address = bank_url(url)
    if changes:
        answer = ask(address, "PUT", "settings", {name: from_text(name, text) for name, text in changes.items()})
    else:
        answer = ask(address, "GET", "settings")
    show(answer, output, _settings_text)


def _setting_names() -> list[str]:
    """The settings of a bank, each followed by an equals sign."""
    from dataclasses import fields

    from emulator.bank.settings import Settings

    return [f"{field.name}=" for field in fields(Settings)]


def _settings_text(values: dict[str, Any]) -> None:
    for name, value in values.items():
        click.echo(f"{name}={value if isinstance(value, str) else json.dumps(value)}")


COMMANDS = {"settings": settings} | {noun: _command(noun) for noun in NOUNS}
