"""What others wait for while a bank with 150,000 transactions works long: /health, asked every few milliseconds."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

from tests.bench.harness import Row, bank, milliseconds

PLAN = b'{"customers": 1500, "accountsPerCustomer": 2, "transactionsPerAccount": 50, "days": 90, "seed": 1}'
USUAL, LONGEST = 50.0, 150.0  # milliseconds on a machine that does nothing else


def measure(rounds: int, requests: int) -> Iterator[Row]:
    del rounds, requests
    with TemporaryDirectory() as folder, bank(Path(folder)) as server:

        def control(method: str, path: str, body: bytes = b"{}", *, expect: int = 200) -> Callable[[], float]:
            return lambda: milliseconds(server.port, method, path, expect=expect, body=body)

        for name, work in (
            ("customers are generated", control("POST", "generate", PLAN)),
            ("they are saved", control("PUT", "snapshots/large", expect=201)),
            ("the state is read", control("GET", "state", b"")),
            ("the ledger is recomputed", control("GET", "ledger", b"")),
            ("the bank is reset", control("POST", "reset")),
            ("the snapshot is restored", control("POST", "snapshots/large/restore")),
        ):
            took, waits = _beside(server.port, work)
            yield Row("long_work", name, took / 1000, "s")
            yield Row("long_work", f"/health while {name}, p99", waits[int(len(waits) * 0.99)], "ms", at_most=USUAL)
            yield Row("long_work", f"/health while {name}, longest", waits[-1], "ms", at_most=LONGEST)


def _beside(port: int, work: Callable[[], float]) -> tuple[float, list[float]]:
    """How long the work takes, and what each question meanwhile waited for, the longest last."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    waits = []
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        while not working.done():
            began = perf_counter()
            connection.request("GET", "/health")
            connection.getresponse().read()
            waits.append((perf_counter() - began) * 1000)
            sleep(0.002)
    connection.close()
    return working.result(), sorted(waits)
