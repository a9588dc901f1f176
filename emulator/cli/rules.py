"""`bank-emulator rules`: what is scripted at a running bank."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import click

from emulator.cli.bank import ask, bank_options, bank_url, named, rows, show

EPILOG = """\
Example: bank-emulator rules add '{"when": {"operation": "createPayment"}, "then": {"disconnect": "after"}}'"""


@click.group(name="rules", epilog=EPILOG)
def command() -> None:
    """Scripted rules: list, add, remove."""


def _counted(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Each rule as it was given, with its scenario and how often it has matched and acted."""
    return [{**rule, **count} for rule, count in zip(answer["rules"], answer["counts"], strict=True)]


def _rows(rules: list[dict[str, Any]]) -> None:
    shown = [{**rule, "then": json.dumps(rule["then"], ensure_ascii=False)} for rule in rules]
    rows(shown, "name", "scenario", "matched", "acted", "then")


@command.command("list", epilog="Example: bank-emulator rules list --output json")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@bank_options
def list_(limit: int, url: str | None, output: str) -> None:
    """The rules, in the order in which they are asked. Each tells how often it has matched and acted."""
    show(_counted(ask(bank_url(url), "GET", f"rules?limit={limit}")), output, _rows)


@command.command(epilog=EPILOG)
@click.argument("rule")
@bank_options
def add(rule: str, url: str | None, output: str) -> None:
    """Add RULE, JSON as in a scenario. It is asked after those that are there."""
    try:
        value = json.loads(rule)
    except ValueError as error:
        raise click.UsageError(f"RULE is no JSON: {error}") from error
    show(_counted(ask(bank_url(url), "POST", "rules", value)), output, _rows)


@command.command(epilog="Example: bank-emulator rules remove 'slow reads'")
@click.argument("name", callback=named)
@bank_options
def remove(name: str, url: str | None, output: str) -> None:
    """Take out the rules called NAME."""
    ask(bank_url(url), "DELETE", f"rules/{quote(name, safe='')}")
    show({"name": name}, output, lambda _: None)


@command.command(epilog="Example: bank-emulator rules clear")
@bank_options
def clear(url: str | None, output: str) -> None:
    """Take out all rules."""
    ask(bank_url(url), "DELETE", "rules")
    show({}, output, lambda _: None)
