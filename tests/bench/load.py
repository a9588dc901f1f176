"""The load: sends prepared requests over some connections as fast as answers come, and measures each.

A process of its own, on another core than the server: `load.py PORT CONNECTIONS FILE CORE`. FILE holds a pickled
list of whole requests as bytes; the result is one JSON object on stdout.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import cast

import uvloop

_LENGTH = b"content-length:"


class Sender(asyncio.Protocol):
    """One connection: the next request leaves when the answer to the last one is whole."""

    def __init__(self, requests: Iterator[bytes], statuses: Counter[int], times: list[float]) -> None:
        self.requests = requests
        self.statuses = statuses
        self.times = times
        self.done = asyncio.get_running_loop().create_future()
        self.buffer = b""
        self.since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by class

    def send_next(self) -> None:
        request = next(self.requests, None)
        if request is None:
            if not self.done.done():
                self.done.set_result(None)
            return
        self.since = perf_counter()
        self.transport.write(request)

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
        self.times.append(perf_counter() - self.since)
        self.statuses[int(buffer[9:12])] += 1
        self.send_next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionResetError("the server closed a connection"))


async def run(port: int, connections: int, requests: list[bytes]) -> dict[str, object]:
    loop = asyncio.get_running_loop()
    waiting = iter(requests)
    statuses: Counter[int] = Counter()
    times: list[float] = []
    senders = []
    for _ in range(connections):
        _, sender = await loop.create_connection(lambda: Sender(waiting, statuses, times), "127.0.0.1", port)
        senders.append(sender)
    gc.freeze()
    gc.disable()
    since, worked = perf_counter(), process_time()
    for sender in senders:
        sender.send_next()
    await asyncio.gather(*(sender.done for sender in senders))
    seconds, worked = perf_counter() - since, process_time() - worked
    times.sort()
    return {
        "seconds": seconds,
        "busy": worked / seconds,
        "answers": len(times),
        "statuses": dict(statuses),
        "p50_ms": times[len(times) // 2] * 1000,
        "p99_ms": times[len(times) * 99 // 100] * 1000,
    }


def main() -> None:
    port, connections, file, core = sys.argv[1:]
    if core != "any":
        os.sched_setaffinity(0, {int(core)})
    requests = pickle.loads(Path(file).read_bytes())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(int(port), int(connections), requests))))


if __name__ == "__main__":
    main()
