"""From the start of the process to the first 200, state present, beside a bare aiohttp server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.harness import Row, bank, yardstick

GOAL = 1.45


def measure(rounds: int, requests: int) -> Iterator[Row]:
    del requests
    with TemporaryDirectory() as folder:
        with bank(Path(folder)):
            pass  # makes the state and the compiled modules
        with yardstick():
            pass
        ours, bare = [], []
        for _ in range(max(rounds, 15)):  # one start differs from the next by a tenth
            with bank(Path(folder)) as server:
                ours.append(server.seconds)
            with yardstick() as server:
                bare.append(server.seconds)
    yield Row("start", "start to first 200", median(ours) * 1000, "ms")
    yield Row("start", "bare aiohttp, start to first 200", median(bare) * 1000, "ms")
    beside = median(a / b for a, b in zip(ours, bare, strict=True))
    yield Row("start", "start beside bare aiohttp", beside, "x", at_most=GOAL)
