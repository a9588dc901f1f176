"""The same rates with 100,000 payments in the bank as with none, and what they cost in memory and at the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.customers import SEPA, Customer
from tests.bench.harness import Rate, Row, Running, bank, rate, ratio, typical
from tests.bench.many import fill

COUNT = 100_000
GOAL = 0.9


@dataclass(slots=True)
class Side:
    """A bank with few or with many payments, and its rates."""

    customer: Customer
    port: int
    path: str
    rates: list[Rate]

    def go(self, name: str, requests: int) -> None:
        if name == "create":
            self.rates.append(rate(self.port, self.customer.creates(requests), expect=201))
        else:
            self.rates.append(rate(self.port, self.customer.gets(self.path, requests), expect=200))


def side(server: Running, state: Path) -> Side:
    customer = Customer(server.port, state)
    return Side(customer, server.port, f"{SEPA}/{customer.a_payment()}/status", [])


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as one, TemporaryDirectory() as hundred_thousand:
        fill(Path(one), 1)
        fill(Path(hundred_thousand), COUNT)
        with bank(Path(one)) as small, bank(Path(hundred_thousand)) as large:
            memory = (large.resident_bytes() - small.resident_bytes()) / COUNT
            yield Row("many", f"start with {COUNT:,} payments", large.seconds * 1000, "ms")
            yield Row("many", "start with 1 payment", small.seconds * 1000, "ms")
            yield Row("many", "memory per 1,000 payments", memory * 1000 / 1e6, "MB")
            few, many = side(small, Path(one)), side(large, Path(hundred_thousand))
            for name in ("create", "status"):
                few.rates, many.rates = [], []
                for _ in range(rounds + 1):  # the first warms up
                    few.go(name, requests)
                    many.go(name, requests)
                _, _, p99 = typical(many.rates[1:])
                yield Row("many", f"{name} with {COUNT:,} payments, 99th percentile", p99, "ms", at_most=10)
                beside = ratio(many.rates[1:], few.rates[1:])
                yield Row("many", f"{name} with {COUNT:,} payments beside 1", beside, "x", at_least=GOAL)
