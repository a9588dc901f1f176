"""Clients with banks of their own, at three processes in one event loop, where every statement may fail.

`python -m tests.postgres.inside --seconds 60`: as `jepsen.py`, with a hundred times as many faults, of finer kinds: a
statement is late, refused, lost before or after it was executed, or executed twice; a lease is over; a connection
between processes is cut; a process is killed. What only real processes have (signals, sockets, PostgreSQL's own
crashes) is left to that.
A seed draws the same requests and faults, but not the order in which the loop comes to them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

from emulator.api.messages import Request, Response
from emulator.assemble import homes
from emulator.bank.notification_targets import allowed_host
from emulator.client import Identity
from emulator.store.postgres.connection import OutcomeUnknown, StoreUnreachable
from tests.postgres.faulty import hasty
from tests.postgres.history import Problem
from tests.postgres.jepsen import OWNERS
from tests.postgres.owner import OwnBank, Site
from tests.postgres.process import HEADERS, Process, execute, process, whole
from tests.postgres.server import PostgreSQL, own_folder

BASE = "http://127.0.0.1:8080"
PROCESSES = 3
ALLOWED = (allowed_host("127.0.0.1"),)
# of leases that this process has dropped; it may have taken the banks again meanwhile
OVER = (
    "UPDATE {schema}.bank b SET until = now() - interval '1 s' FROM unnest(%s::text[], %s::bigint[]) d (name, epoch)"
    " WHERE b.name = d.name AND b.epoch = d.epoch"
)
ANSWER = 30.0  # seconds


class Service:
    """The processes, and what fails: `rate` of the statements, once it is set."""

    rate = 0.0

    def __init__(self, url: str, folder: Path, chooser: random.Random) -> None:
        self.url, self.folder, self.chooser = url, folder, chooser
        self.processes: list[Process] = []
        self.contexts: list[AsyncExitStack] = []
        self.counts: Counter[str] = Counter()
        self.over = threading.Event()
        self._late = set[asyncio.Task[Any]]()

    async def start(self, number: int) -> None:
        """Start a process, the next one or in place of one that has ended."""
        stack = AsyncExitStack()
        one = await stack.enter_async_context(process(self.url, self.folder / str(number), allow_notify=ALLOWED))
        self._break(one)
        self.processes[number : number + 1] = [one]
        self.contexts[number : number + 1] = [stack]

    def _break(self, one: Process) -> None:
        rows = one.homes.server.rows

        async def fragile(statement: str, *values: Any, **options: Any) -> Any:
            if self.over.is_set() or self.chooser.random() > self.rate:
                return await rows(statement, *values, **options)

            def later() -> None:
                task = asyncio.ensure_future(self._delayed(rows(statement, *values, **options)))
                self._late.add(task)
                task.add_done_callback(self._late.discard)

            fault = self.chooser.choice(("early", "late", "refused", "lost", "unheard", "delayed", "twice"))
            self.counts[fault] += 1
            if fault == "refused":
                raise StoreUnreachable("PostgreSQL: refused")
            if fault in ("lost", "delayed"):
                if fault == "delayed":
                    later()
                raise OutcomeUnknown("lost")
            if fault == "twice" and options.get("again", True):
                later()
            if fault == "early":
                await asyncio.sleep(self.chooser.uniform(0, 0.2))
            answer = await rows(statement, *values, **options)
            if fault == "late":
                await asyncio.sleep(self.chooser.uniform(0, 0.2))
            if fault == "unheard":
                raise OutcomeUnknown("unheard")
            return answer

        one.homes.server.rows = fragile  # type: ignore[method-assign]

    async def _delayed(self, statement: Any) -> None:
        await asyncio.sleep(self.chooser.uniform(0, 0.5))
        with suppress(StoreUnreachable):
            await statement

    async def nemesis(self) -> None:
        """Leases are over, connections are cut, processes are killed or ended."""
        while not self.over.is_set():
            await asyncio.sleep(self.chooser.uniform(0, 0.1))
            number = self.chooser.randrange(len(self.processes))
            one = self.processes[number]
            fault = self.chooser.choices(("expire", "lose", "cut", "kill", "end"), (10, 10, 20, 1, 1))[0]
            self.counts[fault] += 1
            if fault in ("expire", "lose"):
                held = [lease for lease in one.leases.held.values() if self.chooser.random() < 0.5]
                for lease in held:  # by its own clock the process is late, or it hears that another one has the bank
                    lease.until = 0.0
                if fault == "lose":
                    for lease in held:
                        one.homes.drop(lease.name)
                    names, epochs = [lease.name for lease in held], [lease.epoch for lease in held]
                    await execute(self.url, OVER, names, epochs)
            elif fault == "cut":
                entrance = one.homes._entrance
                for writer in list(entrance._connections.values()) if entrance else ():
                    if self.chooser.random() < 0.5:
                        writer.transport.abort()
            else:
                if fault == "end":
                    await one.end()
                await self.contexts[number].aclose()
                await self.start(number)

    async def end(self) -> None:
        """End all processes, once nothing is under way any more."""
        await asyncio.gather(*self._late)
        for context in self.contexts:
            await context.aclose()

    async def send(self, asked: Request) -> tuple[int, bytes]:
        """Status and body of the answer of some process; ConnectionResetError where it closes the connection."""
        one = self.chooser.choice(self.processes)
        answer = await one.send(asked)
        if not isinstance(answer, Response):
            raise TypeError("a stream")
        if answer.delivery.disconnect is not None:
            raise ConnectionResetError
        return answer.status, await whole(answer)


class Inside(OwnBank):
    """Sends its requests without a web server."""

    service: Service
    loop: asyncio.AbstractEventLoop

    def asked(self, url: str, method: str, body: Any = None) -> tuple[int, Any]:
        content = b"" if method == "GET" else json.dumps(body or {}).encode()
        return self._inside(Request(method, url.removeprefix(BASE), HEADERS, content))

    def signed(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        prepared = self.tpp.prepare(method, path, **options)
        return self._inside(Request(prepared.method, prepared.target, tuple(prepared.headers.items()), prepared.body))

    def _inside(self, asked: Request) -> tuple[int, Any]:
        future = asyncio.run_coroutine_threadsafe(self.service.send(asked), self.loop)
        try:
            status, body = future.result(ANSWER)
        except TimeoutError as error:
            future.cancel()
            text = f"{self.name}: no answer to {asked.method} {asked.target} within {ANSWER:g} s"
            self.problems.append(Problem("answer", text))
            raise HTTPException from error
        return self._whole(status, json.loads(body) if body else None)


async def run(seconds: float, seed: int, rate: float, kinds: Sequence[type[OwnBank]]) -> list[str]:
    """Load and faults for so many seconds; what is wrong."""
    with own_folder() as folder, tempfile.TemporaryDirectory() as states:
        server = PostgreSQL.create(folder)
        try:
            service = Service(server.database(), Path(states), random.Random(seed))
            for number in range(PROCESSES):
                await service.start(number)
            site = Site(lambda: BASE, Identity.from_folder(Path(states) / "0" / "tpps" / "demo"), service.over)
            own = []
            for number, kind in enumerate(kinds):
                here = {"service": service, "loop": asyncio.get_running_loop()}
                own.append(type(kind.__name__, (Inside, kind), here)(number, site, seed))
                await asyncio.to_thread(own[-1].begin)
            service.rate = rate
            for one in own:
                one.start()
            nemesis = asyncio.create_task(service.nemesis())
            await asyncio.wait([nemesis], timeout=seconds)
            service.over.set()
            await nemesis
            for one in own:
                await asyncio.to_thread(one.join)
                await asyncio.to_thread(one.end)
            await service.end()
        finally:
            server.crash()
    print({one.name: one.operations for one in own}, dict(service.counts))
    return [*(str(problem) for one in own for problem in one.problems), *(one.failure for one in own if one.failure)]


def main() -> int:
    kinds = {kind.kind: kind for kind in OWNERS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--rate", type=float, default=0.1, help="of the statements fail")
    parser.add_argument("--clients", choices=list(kinds), help="four of this kind")
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    hasty()
    homes.RENEWING = 0.2
    chosen = OWNERS if asked.clients is None else (kinds[asked.clients],) * 4
    problems = asyncio.run(run(asked.seconds, asked.seed, asked.rate, chosen))
    print("\n".join([f"{len(problems)} problems", *problems]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
