"""A fresh bank for a test, as the pytest fixture `bank` makes it, after the first of the process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from tests.bench.harness import Row

COUNT = 50
GOAL = 50.0  # milliseconds


def measure(rounds: int, requests: int) -> Iterator[Row]:
    del rounds, requests
    from emulator.testing import banks

    took = []
    for _ in range(COUNT + 1):
        began = time.perf_counter()
        with banks() as make:
            make().tpp()
            took.append((time.perf_counter() - began) * 1000)
    yield Row("plugin", "a fresh bank for a test", median(took[1:]), "ms", at_most=GOAL)
