"""`bank-emulator generate`: fill a running bank with made-up people."""

from __future__ import annotations

import sys
from typing import Any

import click

from emulator.cli.bank import ask, bank_options, bank_url, show

MOST = 100_000  # customers, as the bank has it of one request
SLICE = 100  # customers for each request, so that the bank answers others in between


@click.command(name="generate", epilog="Example: bank-emulator generate --customers 50 --transactions 200 --seed 7")
@click.option("--customers", type=click.IntRange(1, MOST), default=10, show_default=True)
@click.option("--accounts", type=click.IntRange(1), default=2, show_default=True, help="For each customer.")
@click.option("--transactions", type=click.IntRange(0), default=100, show_default=True, help="For each account.")
@click.option("--days", type=click.IntRange(1), default=90, show_default=True, help="How far back they reach.")
@click.option("--seed", type=click.IntRange(0), help="The same people every time; made in one request.")
@bank_options
def command(
    customers: int, accounts: int, transactions: int, days: int, seed: int | None, url: str | None, output: str
) -> None:
    """Add made-up customers with accounts and transactions."""
    address, made = bank_url(url), []
    counts = {"customers": 0, "accounts": 0, "transactions": 0}
    while counts["customers"] < customers:
        left = customers - counts["customers"]
        plan: dict[str, Any] = {
            "customers": left if seed is not None else min(left, SLICE),
            "accountsPerCustomer": accounts,
            "transactionsPerAccount": transactions,
            "days": days,
        }
        answer = ask(address, "POST", "generate", plan if seed is None else {**plan, "seed": seed})
        counts = {name: counts[name] + answer["counts"][name] for name in counts}
        made += answer["customers"]
        if sys.stderr.isatty() and customers > SLICE:
            click.echo(f"\r{counts['customers']} of {customers} customers", nl=False, err=True)
    if sys.stderr.isatty() and customers > SLICE:
        click.echo("", err=True)
    show({"counts": counts, "customers": made}, output, _text)


def _text(answer: dict[str, Any]) -> None:
    from emulator.bank.errors import counted

    click.echo(", ".join(counted(count, name.removesuffix("s")) for name, count in answer["counts"].items()))
