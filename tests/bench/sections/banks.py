"""Making a bank from its known state (several-banks.md), for tests that want one each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.harness import Row, bank, milliseconds

COUNT = 100
GOAL = 10.0  # milliseconds


def measure(rounds: int, requests: int) -> Iterator[Row]:
    del rounds, requests
    with TemporaryDirectory() as directory, bank(Path(directory), "--ephemeral") as server:
        took = [milliseconds(server.port, "PUT", f"banks/bench-{number}", expect=201) for number in range(COUNT + 1)]
        yield Row("banks", "make a bank from its known state", median(took[1:]), "ms", at_most=GOAL)
