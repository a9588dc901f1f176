"""The load: sends prepared requests over some connections and measures each.

A process of its own, on another core than the server: `load.py PORTS CONNECTIONS FILE CORE PACE`. PORTS is one or
several with commas between them, and each connection goes to the next one. FILE holds a pickled list of requests, each
a tuple of the packets in which it is sent; the result is one JSON object on stdout. With the pace 0 each connection
sends its next request when it has its answer. Else so many requests a second fall due, whatever the answers do: each
takes the first connection that is free, and its time counts from the moment at which it was due.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter, process_time
from typing import cast

import uvloop

_LENGTH = b"content-length:"
Packets = tuple[bytes, ...]
TICK = 0.001  # seconds between two looks at what has fallen due


class Load:
    """The requests still to be sent, and what came of the others. `pace`: requests a second, 0 for no pace."""

    def __init__(self, requests: list[Packets], pace: float) -> None:
        self.requests = requests
        self.pace = pace
        self.sent = 0
        self.statuses: Counter[int] = Counter()
        self.times: list[float] = []
        self.free: list[Sender] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin(self) -> None:
        self.began = perf_counter()
        self.hand_out()

    def hand_out(self) -> None:
        """Give the free connections what has fallen due, and look again soon."""
        free, self.free = self.free, []
        for sender in free:
            sender.send_next()
        if self.pace and self.sent < len(self.requests):
            asyncio.get_running_loop().call_later(TICK, self.hand_out)

    def take(self) -> tuple[Packets, float] | None:
        """The next request and the moment from which its time counts; None when none is due."""
        at = self.sent
        if at == len(self.requests):
            return None
        since = perf_counter()
        if self.pace:
            due = self.began + at / self.pace
            if due > since:
                return None
            since = due
        self.sent += 1
        return self.requests[at], since

    def answered(self, status: int, seconds: float) -> None:
        self.times.append(seconds)
        self.statuses[status] += 1
        if len(self.times) == len(self.requests):
            self.done.set_result(None)

    def lost(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Sender(asyncio.Protocol):
    """One connection: it takes a next request when the answer to the last one is whole."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.buffer = b""
        self.since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by class
        self.load.free.append(self)

    def send_next(self) -> None:
        taken = self.load.take()
        if taken is None:
            self.load.free.append(self)
            return
        packets, self.since = taken
        self.transport.write(packets[0])
        for packet in packets[1:]:  # with the next turn of the loop: uvloop sends what one turn writes as one packet
            asyncio.get_running_loop().call_soon(self.transport.write, packet)

    def data_received(self, data: bytes) -> None:
        buffer = self.buffer + data if self.buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            self.buffer = buffer
            return
        head = buffer[:end].lower()
        at = head.find(_LENGTH)
        length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(buffer) < end + 4 + length:
            self.buffer = buffer
            return
        self.buffer = b""
        self.load.answered(int(buffer[9:12]), perf_counter() - self.since)
        self.send_next()

    def connection_lost(self, exc: Exception | None) -> None:
        self.load.lost(exc or ConnectionResetError("the server closed a connection"))


async def run(ports: list[int], connections: int, requests: list[Packets], pace: float) -> dict[str, object]:
    loop = asyncio.get_running_loop()
    load = Load(requests, pace)
    for number in range(connections):
        await loop.create_connection(lambda: Sender(load), "127.0.0.1", ports[number % len(ports)])
    gc.freeze()
    gc.disable()
    since, worked = perf_counter(), process_time()
    load.begin()
    await load.done
    seconds, worked = perf_counter() - since, process_time() - worked
    times = sorted(load.times)
    return {
        "seconds": seconds,
        "busy": worked / seconds,
        "answers": len(times),
        "statuses": dict(load.statuses),
        "p50_ms": times[len(times) // 2] * 1000,
        "p99_ms": times[len(times) * 99 // 100] * 1000,
    }


def main() -> None:
    ports, connections, file, core, pace = sys.argv[1:]
    if core != "any":
        os.sched_setaffinity(0, {int(core)})
    requests = pickle.loads(Path(file).read_bytes())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run([*map(int, ports.split(","))], int(connections), requests, float(pace)))))


if __name__ == "__main__":
    main()
