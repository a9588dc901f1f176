"""A store in PostgreSQL beside the local journal: creates, reads over two processes, banks over four, a large start.

PostgreSQL does not wait for its disk here (`synchronous_commit` off); the journal of `--durability process` does not.
Two processes answer more reads than one where they have a core each. Where they share two with PostgreSQL and the load
the figure has no goal; that is for processes that wait 2 ms for each answer: such a process is full while its core is
free, and what two of them gain is what the store lets them gain.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from shutil import copytree
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from emulator.assemble import authority_for
from emulator.assemble.copying import Directory, copy
from emulator.assemble.stored_service import StoredService
from tests.bench.customers import Customer
from tests.bench.harness import Row, bank, beside, milliseconds, rate, rate_over
from tests.bench.many import COUNT, filled
from tests.bench.waiting import DELAY
from tests.known_state import SEPA
from tests.postgres.cluster import EMULATOR
from tests.postgres.server import PostgreSQL, running
from tests.postgres.wire import Balancer, Loop, Target

CREATES, START, READS = 0.6, 2.0, 1.7
READERS = 32  # clients of one process or of two, together
WAITING = ("-m", "tests.bench.waiting")
BANKS, PROCESSES = 1000, 4
ASKED = 250  # of these banks, by one request each
SHOPPERS = 32  # clients of those banks, at once
ROUNDS = 3  # at least, and of what has no goal or takes long


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, running() as server:
        yield from _creates(server, Path(folder), rounds, requests)
        yield from _reads(server, Path(folder), rounds, requests)
        yield from _banks(server, Path(folder))
        yield from _starts(server, Path(folder))


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
            ROUNDS,
            requests // 3,
        )
        yield Row("postgresql", "status reads beside the journal", pair.ratio, "x")


def _reads(server: PostgreSQL, folder: Path, rounds: int, requests: int) -> Iterator[Row]:
    """The same load for one process and for two, from enough clients that one has always something to do."""
    url = _database(server)
    for name, program, count, goal in (
        ("", EMULATOR, requests, None),
        (f", each waits {DELAY * 1000:g} ms for an answer", WAITING, requests // 3, READS),
    ):
        with ExitStack() as ending:
            states = [folder / f"reads {len(program)} {number}" for number in range(2)]
            two = [
                ending.enter_context(bank(state, "--store", url, any_core=True, program=program)) for state in states
            ]
            customer = Customer(two[0].port, states[0])
            reads = partial(customer.gets, f"{SEPA}/{customer.a_payment()}/status")
            for process in two:
                rate_over([process.port], reads(READERS * 4), READERS)
            pairs = []
            for _ in range(max(rounds, ROUNDS)):
                over = [rate_over([one.port for one in some], reads(count), READERS) for some in (two, two[:1])]
                if any(seen.statuses != {"200": count} for seen in over):
                    raise RuntimeError(f"not all were read: {over}")
                pairs.append(over[0].per_second / over[1].per_second)
            yield Row("postgresql", f"status reads, two processes beside one{name}", median(pairs), "x", at_least=goal)


def _banks(server: PostgreSQL, folder: Path) -> Iterator[Row]:
    """Each process makes a part of the banks; some are asked for at another one, all are paid from everywhere."""
    url = _database(server)
    with ExitStack() as ending:
        states = [folder / f"many{number}" for number in range(PROCESSES)]
        processes = [ending.enter_context(bank(state, "--store", url, any_core=True)) for state in states]
        before = sum(process.resident_bytes() for process in processes)
        began = perf_counter()
        for number in range(BANKS):
            port = processes[number % PROCESSES].port
            milliseconds(port, "PUT", f"banks/b{number}", expect=201)
        creating = (perf_counter() - began) * 1000 / BANKS
        yield Row("postgresql", f"{BANKS} banks over {PROCESSES} processes: making one", creating, "ms")
        asked = [_first(processes[(number + 1) % PROCESSES].port, f"b{number}") for number in range(ASKED)]
        yield Row("postgresql", "its first request at another process", median(asked), "ms")
        loop = Loop()
        ending.callback(loop.close)
        balancer = Balancer(loop, [Target(process.port) for process in processes], silence=60).start()
        ending.callback(balancer.stop)
        customers = [Customer(balancer.port, states[0], bank=f"b{number}") for number in range(BANKS)]
        reads = [customer.gets("/v1/consents/none", 1)[0] for customer in customers]
        with ThreadPoolExecutor(PROCESSES) as together:  # from then on each process has all banks in memory
            list(together.map(lambda process: rate_over([process.port], reads, SHOPPERS), processes))
        creates = [customer.creates(1)[0] for customer in customers]
        for name, requests, status in (("reads", reads, "404"), ("creates", creates, "201")):
            seen = rate_over([balancer.port], requests, SHOPPERS)
            if seen.statuses != {status: BANKS}:
                raise RuntimeError(f"{name}: {seen.statuses}")
            yield Row("postgresql", f"{name} over all of them, through a balancer", seen.per_second, "1/s")
        memory = sum(process.resident_bytes() for process in processes) - before
        yield Row("postgresql", "memory of a process for each of them", memory / PROCESSES / BANKS / 1024, "KiB")


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


def _starts(server: PostgreSQL, folder: Path) -> Iterator[Row]:
    """A process that joins a service with 100,000 payments."""
    url = _database(server)
    state = folder / "filled"
    copytree(filled(COUNT), state)
    authority_for(state)
    copy(Directory(state), StoredService(url, "bank_emulator"), replace=False)
    seconds, worked = [], []
    for turn in range(ROUNDS):
        with bank(folder / f"start{turn}", "--store", url) as started:
            seconds.append(started.seconds)
            worked.append(started.cpu_seconds())
    yield Row("postgresql", f"start with {COUNT} payments in the checkpoint", median(seconds), "s", at_most=START)
    yield Row("postgresql", "its processor time", median(worked), "s")
