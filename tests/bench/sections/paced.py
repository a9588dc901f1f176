"""How long a signed request waits where half as many come as the bank can answer.

The other sections send as fast as answers come: the clients then wait for each other, and their time is the number of
connections divided by the rate, whatever the bank does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.customers import Customer
from tests.bench.harness import WARM_UP, Rate, Row, bank, rate, typical
from tests.known_state import SEPA

SHARE = 0.5  # of the rate without a pace, measured right before


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, bank(Path(folder)) as ours:
        customer = Customer(ours.port, Path(folder))
        path = f"{SEPA}/{customer.a_payment()}/status"

        def create(count: int, pace: float = 0) -> Rate:
            return rate(ours, customer.creates(count), expect=201, pace=pace)

        def status(count: int, pace: float = 0) -> Rate:
            return rate(ours, customer.gets(path, count), expect=200, pace=pace)

        yield from _waits("signed create", create, rounds, requests)
        yield from _waits("signed status", status, rounds, requests)


def _waits(name: str, load: Callable[..., Rate], rounds: int, requests: int) -> Iterator[Row]:
    load(WARM_UP)
    seen = [load(requests, pace=SHARE * load(requests).per_second) for _ in range(rounds)]
    per_second, p50, p99 = typical(seen)
    yield Row("paced", f"{name} at half its rate", per_second, "1/s")
    yield Row("paced", f"{name} at half its rate, median", p50, "ms")
    yield Row("paced", f"{name} at half its rate, 99th percentile", p99, "ms")
