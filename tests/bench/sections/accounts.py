"""A signed GET of a customer's accounts, session and consent checked, beside the plain GET."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.customers import Customer
from tests.bench.harness import Row, bank, beside, rate, rows, yardstick
from tests.bench.sections.plain import gets


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, yardstick() as plain, bank(Path(folder)) as ours:
        customer = Customer(ours.port, Path(folder))
        pair = beside(
            lambda count: rate(ours, customer.gets("/v1/accounts", count), expect=200),
            lambda count: rate(plain, gets(count), expect=200),
            rounds,
            requests,
        )
        yield from rows("accounts", "signed accounts", "the plain GET", pair)
