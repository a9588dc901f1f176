"""What a request costs with metrics, and with a line of the log for each, beside one with neither."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from tests.bench.customers import Customer
from tests.bench.harness import Row, Running, bank, beside, rate
from tests.known_state import SEPA

GOAL = 0.98


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with (
        TemporaryDirectory() as one,
        TemporaryDirectory() as other,
        bank(Path(one)) as ours,
        bank(Path(other)) as plain,
    ):
        urlopen(f"http://127.0.0.1:{ours.port}/metrics").close()  # from now on requests are counted
        yield from compared("with metrics", (ours, Path(one)), (plain, Path(other)), rounds, requests, goal=GOAL)
    with (
        TemporaryDirectory() as one,
        TemporaryDirectory() as other,
        bank(Path(one), "--log-format", "json") as ours,
        bank(Path(other)) as plain,
    ):
        yield from compared("with a JSON log", (ours, Path(one)), (plain, Path(other)), rounds, requests)


def compared(
    what: str,
    one: tuple[Running, Path],
    other: tuple[Running, Path],
    rounds: int,
    requests: int,
    *,
    goal: float | None = None,
) -> Iterator[Row]:
    ours, plain = one[0], other[0]
    first, second = Customer(ours.port, one[1]), Customer(plain.port, other[1])
    status, of_plain = (f"{SEPA}/{customer.a_payment()}/status" for customer in (first, second))
    pairs = {
        "create": beside(
            lambda count: rate(ours, first.creates(count), expect=201),
            lambda count: rate(plain, second.creates(count), expect=201),
            rounds,
            requests,
        ),
        "status": beside(
            lambda count: rate(ours, first.gets(status, count), expect=200),
            lambda count: rate(plain, second.gets(of_plain, count), expect=200),
            rounds,
            requests,
        ),
    }
    for name, pair in pairs.items():
        yield Row("metrics", f"signed {name} {what} beside one without", pair.ratio, "x", at_least=goal)
