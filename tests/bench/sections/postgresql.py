"""A store in PostgreSQL beside the local journal: creates, reads, requests passed on, banks over processes, moves.

PostgreSQL does not wait for its disk here (`synchronous_commit` off); the journal of `--durability process` does not.
A bank has one home, so that two processes gain where they have banks of their own. Here they share two cores with
PostgreSQL and the load: the figure with a goal is that of processes that wait 2 ms for each answer, as such a process
is full while its core is free.
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
from tests.postgres.server import PostgreSQL, running
from tests.postgres.wire import Balancer, Loop, Target

CREATES, STATUSES, PASSED_ON, OVER_TWO, MOVE = 0.85, 0.95, 0.4, 1.8, 2.0
READERS = 32  # clients of one process or of two, together
WAITING = ("-m", "tests.bench.waiting")
BANKS, PROCESSES = 1000, 4
ASKED = 250  # of these banks, by one request each
SHOPPERS = 32  # clients of those banks, at once
ROUNDS = 3  # at least, and of what has no goal or takes long


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, running() as server:
        yield from _creates(server, Path(folder), rounds, requests)
        yield from _passed_on(server, Path(folder), rounds, requests)
        yield from _over_two(server, Path(folder), rounds, requests)
        yield from _banks(server, Path(folder))
        yield from _moves(server, Path(folder))


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
        yield Row("postgresql", "status reads beside the journal", pair.ratio, "x", at_least=STATUSES)


def _passed_on(server: PostgreSQL, folder: Path, rounds: int, requests: int) -> Iterator[Row]:
    """A status read at a process that is not the home of the bank, beside one at its home."""
    url = _database(server)
    with (
        bank(folder / "home", "--store", url, any_core=True) as home,
        bank(folder / "other", "--store", url, any_core=True) as other,
    ):
        customer = Customer(home.port, folder / "home")
        reads = partial(customer.gets, f"{SEPA}/{customer.a_payment()}/status")
        ratios = []
        for _ in range(max(rounds, ROUNDS)):
            over = [rate_over([one.port], reads(requests), READERS) for one in (other, home)]
            if any(seen.statuses != {"200": requests} for seen in over):
                raise RuntimeError(f"not all were read: {over}")
            ratios.append(over[0].per_second / over[1].per_second)
        yield Row("postgresql", "status reads passed on beside direct ones", median(ratios), "x", at_least=PASSED_ON)


def _over_two(server: PostgreSQL, folder: Path, rounds: int, requests: int) -> Iterator[Row]:
    """Four banks, all at one process, and two at each of two; each request goes to the home of its bank."""
    seen = {}
    for count in (1, 2):
        url = _database(server)
        with ExitStack() as ending:
            states = [folder / f"over {count} {number}" for number in range(count)]
            processes = [
                ending.enter_context(bank(state, "--store", url, any_core=True, program=WAITING)) for state in states
            ]
            streams = []
            for number in range(4):
                at = number % count
                milliseconds(processes[at].port, "PUT", f"banks/b{number}", expect=201)
                customer = Customer(processes[at].port, states[0], bank=f"b{number}")
                path = f"{SEPA}/{customer.a_payment()}/status"
                streams.append((processes[at].port, partial(customer.gets, path)))
            rates = []
            for _ in range(max(rounds, ROUNDS)):
                # each counts its own time: signing and starting the programs of the load take the cores of the banks
                signed = [(port, reads(requests // 4)) for port, reads in streams]
                with ThreadPoolExecutor(len(streams)) as together:
                    done = list(together.map(lambda one: rate_over([one[0]], one[1], READERS // 4), signed))
                if any(one.statuses != {"200": requests // 4} for one in done):
                    raise RuntimeError(f"not all were read: {done}")
                rates.append(sum(one.per_second for one in done))
            seen[count] = median(rates)
    name = f"four banks over two processes beside one, each waits {DELAY * 1000:g} ms for an answer"
    yield Row("postgresql", name, seen[2] / seen[1], "x", at_least=OVER_TWO)


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


def _moves(server: PostgreSQL, folder: Path) -> Iterator[Row]:
    """A bank with 100,000 payments whose home ends: from SIGTERM to the first answer of another process."""
    url = _database(server)
    state = folder / "filled"
    copytree(filled(COUNT), state)
    authority_for(state)
    copy(Directory(state), StoredService(url, "bank_emulator"), replace=False)
    seconds = []
    with ExitStack() as ending:
        home = ending.enter_context(ExitStack())
        first = home.enter_context(bank(folder / "move0", "--store", url))
        yield Row("postgresql", f"start with {COUNT} payments in the checkpoint", first.seconds, "s")
        for turn in range(1, ROUNDS + 1):
            other = ending.enter_context(ExitStack())
            following = other.enter_context(bank(folder / f"move{turn}", "--store", url))
            began = perf_counter()
            home.close()
            milliseconds(following.port, "GET", "clock", expect=200)
            seconds.append(perf_counter() - began)
            home = other
    yield Row("postgresql", f"a bank with {COUNT} payments moves to another home", median(seconds), "s", at_most=MOVE)
