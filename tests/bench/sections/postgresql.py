"""A store in PostgreSQL beside the local journal: creates, a thousand banks over four processes, a large start.

PostgreSQL does not wait for its disk here (`synchronous_commit` off); the journal of `--durability process` does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from shutil import copytree
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from emulator.assemble import authority_for
from emulator.assemble.shared import copying
from tests.bench.customers import SEPA, Customer
from tests.bench.harness import Row, bank, beside, milliseconds, rate
from tests.bench.many import COUNT, filled
from tests.postgres.server import PostgreSQL, running

CREATES, START = 0.6, 2.0
BANKS, PROCESSES = 1000, 4


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, running() as server:
        yield from _creates(server, Path(folder), rounds, requests)
        yield from _banks(server, Path(folder))
        yield from _starts(server, Path(folder), rounds)


def _database(server: PostgreSQL) -> str:
    return f"{server.database()}?options=-csynchronous_commit%3Doff"


def _creates(server: PostgreSQL, folder: Path, rounds: int, requests: int) -> Iterator[Row]:
    with bank(folder / "journal") as local, bank(folder / "shared", "--store", _database(server)) as shared:
        ours, theirs = Customer(shared.port, folder / "shared"), Customer(local.port, folder / "journal")
        pair = beside(
            lambda count: rate(shared, ours.creates(count), expect=201),
            lambda count: rate(local, theirs.creates(count), expect=201),
            rounds,
            requests,
        )
        yield Row("postgresql", "creates", median(one.per_second for one in pair.ours), "1/s")
        yield Row("postgresql", "creates beside the journal", pair.ratio, "x", at_least=CREATES)
        path = f"{SEPA}/{ours.a_payment()}/status"
        other = f"{SEPA}/{theirs.a_payment()}/status"
        pair = beside(
            lambda count: rate(shared, ours.gets(path, count), expect=200),
            lambda count: rate(local, theirs.gets(other, count), expect=200),
            rounds,
            requests,
        )
        yield Row("postgresql", "status reads beside the journal", pair.ratio, "x")


def _banks(server: PostgreSQL, folder: Path) -> Iterator[Row]:
    """Each process makes a part of the banks; then each asks for all of them, made elsewhere for the most part."""
    url = _database(server)
    with ExitStack() as ending:
        processes = [
            ending.enter_context(bank(folder / f"many{number}", "--store", url)) for number in range(PROCESSES)
        ]
        began = perf_counter()
        for number in range(BANKS):
            port = processes[number % PROCESSES].port
            milliseconds(port, "PUT", f"banks/b{number}", expect=201, body=b'{"fixtures": "empty"}')
        made = (perf_counter() - began) * 1000 / BANKS
        yield Row("postgresql", f"{BANKS} banks over {PROCESSES} processes: making one", made, "ms")
        asked = [_first(processes[(number + 1) % PROCESSES].port, f"b{number}") for number in range(BANKS)]
        yield Row("postgresql", "its first request at another process", median(asked), "ms")


def _first(port: int, name: str) -> float:
    connection = HTTPConnection("127.0.0.1", port)
    connection.connect()
    began = perf_counter()
    connection.request("GET", f"/banks/{name}/_emulator/clock")
    answer = connection.getresponse()
    answer.read()
    took = (perf_counter() - began) * 1000
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{name} answered {answer.status}")
    return took


def _starts(server: PostgreSQL, folder: Path, rounds: int) -> Iterator[Row]:
    """A process that joins a service with 100,000 payments."""
    url = _database(server)
    state = folder / "filled"
    copytree(filled(COUNT), state)
    authority_for(state)
    copying.copy(copying.Directory(state), copying.Shared(url, "bank_emulator"), replace=False)
    seconds = []
    for turn in range(max(rounds, 3)):
        with bank(folder / f"start{turn}", "--store", url) as started:
            seconds.append(started.seconds)
    yield Row("postgresql", f"start with {COUNT} payments in the checkpoint", median(seconds), "s", at_most=START)
