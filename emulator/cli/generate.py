"""`bank-emulator generate`: add invented customers to a running bank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from emulator.cli.bank import ask, bank_options, members, progress, show
from emulator.cli.options import bank_url

MOST_CUSTOMERS = 100_000  # of one request; the bank has the same limit
CUSTOMERS_PER_REQUEST = 100  # keeps the accounts and transactions of a request within the bank's limits


def _count(option: str, *, most: int | None = None, least: int = 1, default: int, about: str) -> click.Option:
    limits = click.IntRange(least, most)
    return click.Option([*option.split()], metavar="N", type=limits, default=default, show_default=True, help=about)


OPTIONS = [
    _count("--customers", most=MOST_CUSTOMERS, default=10, about="How many customers."),
    _count("--accounts-per-customer --accounts", default=2, about="How many accounts each has."),
    _count(
        "--transactions-per-account --transactions", least=0, default=100, about="How many bookings each account has."
    ),
    _count("--days", default=90, about="How many days the bookings go back."),
    click.Option(
        ["--seed"], metavar="N", type=click.IntRange(0), help="Generate the same data each time, in one request."
    ),
]


@bank_options
def _generate(
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
    with progress(address, "customers", _progress_text(customers)):
        while counts["customers"] < customers:
            missing = customers - counts["customers"]
            body = {
                "customers": missing if seed is not None else min(missing, CUSTOMERS_PER_REQUEST),
                "accountsPerCustomer": accounts_per_customer,
                "transactionsPerAccount": transactions_per_account,
                "days": days,
                "seed": seed,
            }
            answer = ask(address, "POST", "generate", members(body))
            counts = {name: count + answer["counts"][name] for name, count in counts.items()}
            generated += answer["customers"]
    show({"counts": counts, "customers": generated}, output, _text)


def _progress_text(customers: int) -> Callable[[Mapping[str, Any]], str]:
    """The line for each event of all requests together: every request counts its own customers from 0 to `of`."""
    before = 0

    def text(event: Mapping[str, Any]) -> str:
        nonlocal before
        line = f"{before + event['done']} of {customers} customers"
        before += event["of"] if event["done"] == event["of"] else 0
        return line

    return text


def _text(answer: dict[str, Any]) -> None:
    from emulator.bank.errors import counted

    click.echo(", ".join(counted(count, name.removesuffix("s")) for name, count in answer["counts"].items()))


EXAMPLE = "Example: bank-emulator generate --customers 50 --transactions 200 --seed 7"
COMMANDS = {"generate": click.command("generate", params=[*OPTIONS], epilog=EXAMPLE)(_generate)}
