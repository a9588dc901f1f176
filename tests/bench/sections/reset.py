"""The whole bank new (control.md#reset): again and again, and beside a bank that 100,000 payments go out of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.harness import Row, bank, milliseconds
from tests.bench.many import COUNT, filled

RESETS = 50


def measure(rounds: int, requests: int) -> Iterator[Row]:
    del requests
    with TemporaryDirectory() as folder, bank(Path(folder)) as server:
        took = [milliseconds(server.port, "POST", "reset", expect=200) for _ in range(RESETS + 1)]
        yield Row("reset", "reset", median(took[1:]), "ms")
    small, large = [], []
    for _ in range(min(rounds, 3)):
        small.append(_once(1))
        large.append(_once(COUNT))
    yield Row("reset", f"reset with {COUNT:,} payments", median(large), "ms")
    yield Row("reset", "reset with 1 payment", median(small), "ms")
    beside = median(many / one for many, one in zip(large, small, strict=True))
    yield Row("reset", f"reset with {COUNT:,} payments beside 1", beside, "x")


def _once(count: int) -> float:
    """The first reset of a bank with so many payments; what a reset needs is read before, for another bank."""
    with TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        copytree(filled(count), state)
        with bank(state) as server:
            milliseconds(server.port, "PUT", "banks/warm", expect=201)
            return milliseconds(server.port, "POST", "reset", expect=200)
