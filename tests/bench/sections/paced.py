"""How long a signed request waits when they come at the rate that the bank must keep up with.

The other sections send as fast as answers come: the clients then wait for each other, and their time is the number of
connections divided by the rate, whatever the bank does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.customers import SEPA, Customer
from tests.bench.harness import P99, WARM_UP, Rate, Row, bank, rate, typical, yardstick
from tests.bench.sections.plain import gets, posts

SHARE = 0.35  # of the yardstick's own rate, measured right before


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, yardstick() as plain, bank(Path(folder)) as ours:
        customer = Customer(ours.port, Path(folder))
        path = f"{SEPA}/{customer.a_payment()}/status"

        def create(count: int, pace: float = 0) -> Rate:
            return rate(ours.port, customer.creates(count), expect=201, pace=pace)

        def status(count: int, pace: float = 0) -> Rate:
            return rate(ours.port, customer.gets(path, count), expect=200, pace=pace)

        def plain_post(count: int) -> Rate:
            return rate(plain.port, posts(count), expect=200)

        def plain_get(count: int) -> Rate:
            return rate(plain.port, gets(count), expect=200)

        yield from _waits("create", create, "POST", plain_post, rounds, requests)
        yield from _waits("status", status, "GET", plain_get, rounds, requests)


def _waits(
    name: str, ours: Callable[..., Rate], method: str, plain: Callable[[int], Rate], rounds: int, requests: int
) -> Iterator[Row]:
    ours(WARM_UP)
    plain(WARM_UP)
    seen = [ours(requests, pace=SHARE * plain(requests).per_second) for _ in range(rounds)]
    per_second, p50, p99 = typical(seen)
    what = f"{name} at {SHARE} of the plain {method}'s rate"
    yield Row("paced", what, per_second, "1/s")
    yield Row("paced", f"{what}, median", p50, "ms")
    yield Row("paced", f"{what}, 99th percentile", p99, "ms", at_most=P99)
