"""Making a bank from its known state (CONTRACT 9.6), for tests that want one each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.customers import Customer
from tests.bench.harness import Row, bank

COUNT = 100
GOAL = 10.0  # milliseconds


def measure(rounds: int, requests: int) -> Iterator[Row]:
    del rounds, requests
    with TemporaryDirectory() as directory, bank(Path(directory), "--ephemeral") as server:
        customer = Customer(server.port, Path(directory))
        customer.control("PUT", "banks/warm", {})
        connection = HTTPConnection("127.0.0.1", server.port)
        took = []
        for number in range(COUNT):
            began = time.perf_counter()
            connection.request("PUT", f"/_emulator/banks/bench-{number}", b"{}", {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            took.append((time.perf_counter() - began) * 1000)
            if answer.status != 201:
                raise RuntimeError(f"the bank was not made: {answer.status}")
        connection.close()
        yield Row("banks", "make a bank from its known state", median(took), "ms", at_most=GOAL)
