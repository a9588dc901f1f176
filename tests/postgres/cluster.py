"""Several `bank-emulator serve` processes over one store behind a balancer; a proxy to PostgreSQL that can fail."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from emulator.client import Identity
from tests.ports import free_port
from tests.postgres.wire import Balancer, Loop, Proxy, Target
from tests.warm import Command

PATIENCE = 60.0  # seconds until a test gives up
EMULATOR = ("-m", "emulator")


class NodeFailed(RuntimeError):
    """A process did not start; the text has its log."""


@dataclass
class Node:
    """One process. `program`: what Python runs, the emulator or a launcher that breaks it first."""

    name: str
    state: Path
    flags: Sequence[str]
    target: Target = field(default_factory=lambda: Target(0))
    program: Sequence[str] = EMULATOR
    process: Command | subprocess.Popen[str] | None = None
    way: Proxy | None = None  # that the other processes take to it

    def start(self) -> Node:
        """Start; returns when it is ready."""
        self.launch()
        self.wait()
        return self

    def launch(self) -> None:
        """Start, without waiting."""
        line = ["serve", "--port", "0", "--state", str(self.state), *self.flags]
        with self._log.open("a") as log:
            if self.program == EMULATOR:
                self.process = Command(*line, stdout=subprocess.PIPE, stderr=log)
            else:
                python = [sys.executable, *self.program, *line]
                self.process = subprocess.Popen(python, stdout=subprocess.PIPE, stderr=log, text=True)

    def wait(self) -> None:
        """Wait until it is ready; NodeFailed with what it said where it is not."""
        if self.process is None or self.process.stdout is None:
            raise RuntimeError(f"{self.name} was not launched")
        line = self.process.stdout.readline()
        if not line.startswith("READY "):
            raise NodeFailed(f"{self.name} did not start ({self.process.wait(PATIENCE)}): {self.log()[-2000:]}")
        self.target.port = int(line.rpartition(":")[2])
        self.target.answers = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.target.port}"

    def log(self) -> str:
        """What the process has logged in all its runs."""
        return self._log.read_text(errors="replace")

    @property
    def _log(self) -> Path:
        return self.state.with_suffix(".log")

    def send(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, whatever it is doing; also where it was stopped."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def end(self) -> int:
        """SIGTERM; the exit status."""
        if self.process is None:
            raise RuntimeError(f"{self.name} does not run")
        self.send(signal.SIGTERM)
        status = self.process.wait(20)
        self.process.communicate()
        self.process = None
        return status


@dataclass
class Cluster:
    """The processes, their balancer and the way to PostgreSQL (None: each process has a store of its own)."""

    nodes: list[Node]
    balancer: Balancer
    proxy: Proxy | None

    @property
    def url(self) -> str:
        return self.balancer.url

    @property
    def demo(self) -> Identity:
        """The TPP `demo`, as every process writes it into its folder."""
        return Identity.from_folder(self.nodes[0].state / "tpps" / "demo")


@contextmanager
def cluster(
    folder: Path,
    store: str | None,
    *flags: str,
    nodes: int = 3,
    port: int | None = None,
    fault: str | None = None,
    silence: float = 2.0,
) -> Iterator[Cluster]:
    """`nodes` processes with the store at this URL, reached through a proxy to PostgreSQL's `port`.

    Each has a state folder of its own below `folder`. With a `fault` (of faulty.py, perhaps `none`) there is a proxy on
    the way to each process, too.
    """
    with ExitStack() as ending:
        loop = Loop()
        ending.callback(loop.close)
        proxy = None
        if store is not None:
            server = port or int(store.rpartition("/")[0].rpartition(":")[2])
            proxy = Proxy(loop, server).start()
            ending.callback(proxy.stop)
            flags = ("--store", store.replace(f":{server}/", f":{proxy.port}/"), *flags)
        started = [Node(f"node {n}", folder / f"node{n}", flags) for n in range(nodes)]
        for node in started:
            ending.callback(node.kill)
            if fault is not None:
                own = free_port()
                node.way = Proxy(loop, own).start()
                ending.callback(node.way.stop)
                node.program = ("-m", "tests.postgres.faulty", fault, str(node.way.port))
                node.flags = (*flags, "--advertise", f"127.0.0.1:{own}")
        started[0].start()  # it makes the tables
        for node in started[1:]:
            node.launch()
        for node in started[1:]:
            node.wait()
        balancer = Balancer(loop, [node.target for node in started], silence=silence).start()
        ending.callback(balancer.stop)
        yield Cluster(started, balancer, proxy)


def ask(url: str, method: str, path: str, body: Any = None, *, timeout: float = PATIENCE) -> tuple[int, Any]:
    """Status and JSON of an unsigned request; OSError where no answer comes."""
    data = None if body is None and method == "GET" else json.dumps(body or {}).encode()
    request = Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urlopen(request, timeout=timeout) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read() or b"null")


def fine(send: Callable[[], tuple[int, Any]]) -> Any:
    """The body of an answer that must be fine.

    A request without an answer is sent again: a process that the machine lets stand still loses its banks.
    """
    attempts = 3
    while True:
        try:
            status, answer = send()
            break
        except (OSError, HTTPException):
            attempts -= 1
            if not attempts:
                raise
            sleep(1)
    if status >= 300:
        raise AssertionError(f"{status} {answer}")
    return answer


def control(url: str, method: str, path: str, body: Any = None) -> Any:
    """What the control interface answers, which must be fine."""
    return fine(lambda: ask(url, method, f"/_emulator/{path}", body))


def eventually(true: Any, seconds: float = PATIENCE) -> float:
    """Wait until `true()` holds; how long that took. OSError counts as no."""
    began = monotonic()
    while monotonic() < began + seconds:
        try:
            if true():
                return monotonic() - began
        except OSError:
            pass
        sleep(0.02)
    raise AssertionError(f"not within {seconds:g} s")
