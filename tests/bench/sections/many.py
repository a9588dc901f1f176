"""The same rates with 100,000 payments in the bank as with one, and what they cost in memory and at the start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.customers import Customer
from tests.bench.harness import Rate, Row, Running, bank, beside, rate
from tests.bench.many import COUNT, filled
from tests.known_state import SEPA

GOAL = 0.95


def measure(rounds: int, requests: int) -> Iterator[Row]:
    yield from _starts(rounds)
    with TemporaryDirectory() as folder:
        one, hundred_thousand = Path(folder) / "one", Path(folder) / "many"
        copytree(filled(1), one)
        copytree(filled(COUNT), hundred_thousand)
        with bank(one) as small, bank(hundred_thousand) as large:
            few, many = _loads(small, one), _loads(large, hundred_thousand)
            for name in few:
                pair = beside(many[name], few[name], rounds, requests)
                yield Row("many", f"{name} with {COUNT:,} payments beside 1", pair.ratio, "x", at_least=GOAL)


def _starts(rounds: int) -> Iterator[Row]:
    """Start both in turns: the time until the first answer, and the memory then."""
    small: list[tuple[float, int]] = []
    large: list[tuple[float, int]] = []
    for _ in range(max(rounds, 3)):
        for count, seen in ((1, small), (COUNT, large)):
            with bank(filled(count)) as server:
                seen.append((server.seconds * 1000, server.resident_bytes()))
    yield Row("many", f"start with {COUNT:,} payments", median(time for time, _ in large), "ms")
    yield Row("many", "start with 1 payment", median(time for time, _ in small), "ms")
    beside = median(many / one for (many, _), (one, _) in zip(large, small, strict=True))
    yield Row("many", f"start with {COUNT:,} payments beside 1", beside, "x")
    memory = median(many - one for (_, many), (_, one) in zip(large, small, strict=True)) / (COUNT - 1)
    yield Row("many", "memory per 1,000 payments", memory * 1000 / 1e6, "MB")


def _loads(server: Running, state: Path) -> dict[str, Callable[[int], Rate]]:
    customer = Customer(server.port, state)
    path = f"{SEPA}/{customer.a_payment()}/status"
    return {
        "create": lambda count: rate(server, customer.creates(count), expect=201),
        "create in two packets": lambda count: rate(server, customer.creates(count), expect=201, packets=2),
        "status": lambda count: rate(server, customer.gets(path, count), expect=200),
    }
