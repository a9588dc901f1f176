"""A signed, validated, journaled POST of a SEPA payment beside the plain POST of 600 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.customers import Customer
from tests.bench.harness import Row, bank, rate, ratio, typical, yardstick
from tests.bench.sections.plain import posts

GOAL = 0.35


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, yardstick() as plain, bank(Path(folder)) as ours:
        customer = Customer(ours.port, Path(folder))
        rate(plain.port, posts(requests), expect=200)
        rate(ours.port, customer.creates(requests // 4), expect=201)
        ours_rates, plain_rates = [], []
        for _ in range(rounds):
            made = customer.creates(requests)
            ours_rates.append(rate(ours.port, made, expect=201))
            plain_rates.append(rate(plain.port, posts(requests), expect=200))
        per_second, p50, p99 = typical(ours_rates)
        yield Row("create", "signed create", per_second, "1/s")
        yield Row("create", "signed create, median", p50, "ms")
        yield Row("create", "signed create, 99th percentile", p99, "ms", at_most=10)
        yield Row("create", "signed create beside the plain POST", ratio(ours_rates, plain_rates), "x", at_least=GOAL)
