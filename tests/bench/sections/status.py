"""A signed GET of a payment's status beside the plain GET, and beside `verify`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.customers import Customer
from tests.bench.harness import Row, bank, beside, rate, rows, yardstick
from tests.bench.sections.plain import gets
from tests.known_state import SEPA

GOAL = 0.75


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, yardstick() as plain, bank(Path(folder)) as ours:
        customer = Customer(ours.port, Path(folder))
        path = f"{SEPA}/{customer.a_payment()}/status"
        pair = beside(
            lambda count: rate(ours, customer.gets(path, count), expect=200),
            lambda count: rate(plain, gets(count), expect=200),
            rounds,
            requests,
        )
        yield from rows("status", "signed status", "the plain GET", pair)
        pair = beside(
            lambda count: rate(ours, customer.gets(path, count), expect=200),
            lambda count: rate(plain, customer.gets(path, count), expect=200),
            rounds,
            requests,
        )
        yield Row("status", "signed status beside verify", pair.ratio, "x", at_least=GOAL)
