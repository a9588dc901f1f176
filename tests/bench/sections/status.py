"""A signed GET of a payment's status beside the plain GET."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.customers import SEPA, Customer
from tests.bench.harness import Row, bank, rate, ratio, typical, yardstick
from tests.bench.sections.plain import gets

GOAL = 0.35


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, yardstick() as plain, bank(Path(folder)) as ours:
        customer = Customer(ours.port, Path(folder))
        path = f"{SEPA}/{customer.a_payment()}/status"
        rate(plain.port, gets(requests), expect=200)
        rate(ours.port, customer.gets(path, requests // 4), expect=200)
        ours_rates, plain_rates = [], []
        for _ in range(rounds):
            made = customer.gets(path, requests)
            ours_rates.append(rate(ours.port, made, expect=200))
            plain_rates.append(rate(plain.port, gets(requests), expect=200))
        per_second, p50, p99 = typical(ours_rates)
        yield Row("status", "signed status", per_second, "1/s")
        yield Row("status", "signed status, median", p50, "ms")
        yield Row("status", "signed status, 99th percentile", p99, "ms", at_most=10)
        yield Row("status", "signed status beside the plain GET", ratio(ours_rates, plain_rates), "x", at_least=GOAL)
