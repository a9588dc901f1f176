"""What the sections measure with: servers on one core, the load on another, ratios out of the same run."""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import clock_gettime, monotonic, perf_counter, sleep

from tests.ports import free_port

CONNECTIONS = 32
PATIENCE = 60.0
WARM_UP = 2000  # requests of each side before its first round that counts
PIECES = 3  # of a round
RESTED = 0.6  # seconds with little work after which a server counts as idle
BUSY = 0.9  # of its core; a load that works more may be what limits the rate

_C = ctypes.CDLL(None)  # Python has clock_gettime, but not the function that names the clock of another process

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
SERVER_CORE = CORES[0] if len(CORES) > 1 else None
LOAD_CORE = CORES[1] if len(CORES) > 1 else None

# Servers run as installed ones do: from compiled modules, whatever the shell that starts the benchmark prefers.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `value` is in `unit`; `goal` is what the value should be at least (or at most)."""

    section: str
    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def good(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return self.value <= self.at_most if self.at_most is not None else None


@dataclass(frozen=True, slots=True)
class Rate:
    """What one round of load saw.

    `cpu_us`: processor time of the server for each request, 0 where unknown; `later_us`: what it put off until the
    load had ended.
    """

    per_second: float
    p50_ms: float
    p99_ms: float
    statuses: dict[str, int]
    cpu_us: float = 0.0
    later_us: float = 0.0


@dataclass(frozen=True, slots=True)
class Running:
    """A server process that answers."""

    process: subprocess.Popen[bytes]
    port: int
    seconds: float  # from its start to its first 200

    def resident_bytes(self) -> int:
        """Its memory now (Linux)."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """Processor time that it has used so far, 0 where the system does not say (Linux does), to the nanosecond.

        A short load needs that: /proc/PID/stat counts in hundredths of a second.
        """
        clock = ctypes.c_int()
        known = getattr(_C, "clock_getcpuclockid", None)
        if known is None or known(self.process.pid, ctypes.byref(clock)):
            return 0.0
        return clock_gettime(clock.value)


@contextmanager
def running(command: Sequence[str], port: int, path: str, *, any_core: bool = False) -> Iterator[Running]:
    """Start a server on the server's core, or on any; it counts as running when GET `path` is 200."""
    with tempfile.TemporaryFile() as log:
        since = perf_counter()
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=ENVIRONMENT,
            preexec_fn=None if any_core else _on_server_core,
        )
        try:
            _first_answer(process, port, path)
            yield Running(process, port, perf_counter() - since)
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode()[-4000:])
            raise
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _on_server_core() -> None:
    if SERVER_CORE is not None:
        os.sched_setaffinity(0, {SERVER_CORE})


def _first_answer(process: subprocess.Popen[bytes], port: int, path: str) -> None:
    until = monotonic() + PATIENCE
    while monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
            sleep(0.02)  # it says that it is starting: who asks all the time slows it down
        except ConnectionError:
            continue
        finally:
            connection.close()
    raise RuntimeError("the server did not answer")


@contextmanager
def yardstick() -> Iterator[Running]:
    """The plain aiohttp application."""
    port = free_port()
    with running([sys.executable, "-m", "tests.bench.yardstick", str(port)], port, "/get") as server:
        yield server


@contextmanager
def bank(
    state: Path, *flags: str, any_core: bool = False, program: Sequence[str] = ("-m", "emulator")
) -> Iterator[Running]:
    """The bank with its state in `state`; `program`: what Python runs."""
    port = free_port()
    command = [sys.executable, *program, "serve", "--port", str(port), "--state", str(state), *flags]
    with running(command, port, "/ready", any_core=any_core) as server:
        yield server


def mixed_rate(server: Running, requests: Sequence[bytes], pace: float = 0, *, packets: int = 1) -> Rate:
    """Send every request once, whatever the answers: `pace` of them a second, or with 0 as fast as answers come.

    With 2 `packets` head and body are sent one after the other, as most clients do.
    """
    before = server.cpu_seconds()
    seen = rate_over([server.port], requests, CONNECTIONS, pace=pace, packets=packets)
    worked = server.cpu_seconds() - before
    later = _rested(server) - before - worked
    return replace(seen, cpu_us=worked / len(requests) * 1e6, later_us=later / len(requests) * 1e6)


def rate_over(
    ports: Sequence[int], requests: Sequence[bytes], connections: int, *, pace: float = 0, packets: int = 1
) -> Rate:
    """As `mixed_rate`, over connections to several ports in turn; the processor time of the servers is not known."""
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump([(request,) if packets == 1 else _head_and_body(request) for request in requests], file)
        file.flush()
        core = "any" if LOAD_CORE is None else str(LOAD_CORE)
        arguments = [",".join(map(str, ports)), str(connections), file.name, core, str(pace)]
        command = [sys.executable, "-m", "tests.bench.load", *arguments]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result = json.loads(done.stdout)
    if result["busy"] > BUSY:
        print(f"The load worked {result['busy']:.0%} of the time: the rate may be its own.", file=sys.stderr)
    per_second = result["answers"] / result["seconds"]
    return Rate(per_second, result["p50_ms"], result["p99_ms"], result["statuses"])


def _rested(server: Running) -> float:
    """The processor time of a server once it has done what it put off until nobody would wait for it."""
    worked = server.cpu_seconds()
    for _ in range(int(PATIENCE / RESTED)):
        sleep(RESTED)
        before, worked = worked, server.cpu_seconds()
        if worked - before < RESTED / 10:
            break
    return worked


def _head_and_body(request: bytes) -> tuple[bytes, ...]:
    head, end, body = request.partition(b"\r\n\r\n")
    return (head + end, body) if body else (request,)


def rate(server: Running, requests: Sequence[bytes], *, expect: int, pace: float = 0, packets: int = 1) -> Rate:
    """As `mixed_rate`; raises when an answer has another status than `expect`."""
    seen = mixed_rate(server, requests, pace, packets=packets)
    if set(seen.statuses) != {str(expect)}:
        raise RuntimeError(f"expected {expect} only, got {seen.statuses}")
    return seen


def raw(method: str, target: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """A whole request as bytes."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def milliseconds(port: int, method: str, path: str, *, expect: int, body: bytes = b"{}") -> float:
    """How long one request of the control interface takes, on a connection that stands already."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.connect()
    began = perf_counter()
    connection.request(method, f"/_emulator/{path}", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    took = (perf_counter() - began) * 1000
    connection.close()
    if answer.status != expect:
        raise RuntimeError(f"{method} {path}: expected {expect}, got {answer.status}")
    return took


@dataclass(frozen=True, slots=True)
class Pair:
    """Rates of ours and of what it is measured beside, round by round."""

    ours: list[Rate]
    theirs: list[Rate]

    @property
    def ratio(self) -> float:
        """The median over the pieces of ours beside theirs.

        Out of the processor time of a request while the load lasts: that is what limits the rate, for each server has
        one core, and it changes little on a busy machine. Where it is unknown, out of the rates.
        """
        return median(beside_of(a, b) for a, b in zip(self.ours, self.theirs, strict=True))


def beside_of(ours: Rate, theirs: Rate) -> float:
    """The rate that the processor time of a request allows beside theirs; where it is unknown, the rates themselves."""
    known = ours.cpu_us and theirs.cpu_us
    return theirs.cpu_us / ours.cpu_us if known else ours.per_second / theirs.per_second


def beside(ours: Callable[[int], Rate], theirs: Callable[[int], Rate], rounds: int, requests: int) -> Pair:
    """Load both, given how many requests: warmed up first, then in pieces of rounds, one right after the other.

    Who goes first changes from piece to piece, and the pieces are short, so that a machine that slows down slows both.
    """
    ours(WARM_UP)
    theirs(WARM_UP)
    pair = Pair([], [])
    both = [(ours, pair.ours), (theirs, pair.theirs)]
    for _ in range(rounds * PIECES):
        for load, seen in both:
            seen.append(load(max(requests // PIECES, 1)))
        both.reverse()
    return pair


def typical(rates: Sequence[Rate]) -> tuple[float, float, float]:
    """Medians over the rounds: requests per second, p50 and p99 in milliseconds."""
    return (
        median(rate.per_second for rate in rates),
        median(rate.p50_ms for rate in rates),
        median(rate.p99_ms for rate in rates),
    )


def rows(section: str, name: str, yardstick: str, pair: Pair, *, at_least: float | None = None) -> Iterator[Row]:
    """The rows of a request: its rate, processor time and median, and what the rate is beside the yardstick's."""
    per_second, p50, _ = typical(pair.ours)
    yield Row(section, name, per_second, "1/s")
    yield Row(section, f"{name}, processor time", median(rate.cpu_us for rate in pair.ours), "us")
    yield Row(section, f"{name}, processor time put off", median(rate.later_us for rate in pair.ours), "us")
    yield Row(section, f"{name}, median", p50, "ms")
    yield Row(section, f"{name} beside {yardstick}", pair.ratio, "x", at_least=at_least)
