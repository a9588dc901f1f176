"""Ctrl+C ends a command at once and quietly, with all that it has started (command-line.md#exit-status).

SIGTERM and the end of the terminal do the same where it runs programs.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.e2e.process import Served, control, served
from tests.warm import Command

PATIENCE = 60  # seconds until a test gives up


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("bank"), "--seed", "1") as running:
        yield running


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A pipe that a TPP writes its process id to when it has begun."""
    os.mkfifo(tmp_path / "begun")
    return tmp_path / "begun"


@pytest.fixture
def hook(begun: Path) -> Iterator[str]:
    """A TPP behind a hook that does not answer; its address."""

    class Silent(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            begun.write_text("0\n")
            self.rfile.read()  # until the other side is gone

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def read_from(descriptor: int) -> str:
    """What can be read there, once there is something."""
    assert select.select([descriptor], [], [], PATIENCE)[0]
    return os.read(descriptor, 65536).decode()


def begin(*line: str, environment: dict[str, str] | None = None) -> Command:
    return Command(*line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def interrupted(command: Command, number: int = signal.SIGINT) -> tuple[int | None, str]:
    """Its status after Ctrl+C, or another signal, and its stderr."""
    command.send_signal(number)
    try:
        _, err = command.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        command.kill()
        raise
    return command.returncode, err


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    "arguments, form, number",
    [
        (("run", "--jobs", "3"), "--command", signal.SIGINT),
        (("run",), "--command", signal.SIGTERM),
        (("run",), "--command", signal.SIGHUP),
        (("explore", "--jobs", "2"), "--command", signal.SIGINT),
        pytest.param(("explore", "--jobs", "2"), "--command", signal.SIGTERM, marks=pytest.mark.long),
        (("run",), "--hook", signal.SIGINT),
    ],
    ids=["run", "run-term", "run-hangup", "explore", "explore-term", "hook"],
)
def test_with_the_tpp_that_is_judged(
    begun: Path, hook: str, arguments: tuple[str, ...], form: str, number: int
) -> None:
    report = begun.with_name("report.json")
    pipe = os.open(begun, os.O_RDWR)
    tpp = hook if form == "--hook" else f"sh -c 'echo $$ > {begun}; exec sleep 600'"
    line = ("conformance", *arguments, form, tpp, "--timeout", "600", "--json", str(report))
    with begin(*line) as command:
        children = {int(one) for one in read_from(pipe).split()} - {0}
        assert interrupted(command, number) == (130, "\n")
    assert report.exists() == ("explore" in arguments)  # a long search tells what it came to
    if select.select([pipe], [], [], 0)[0]:
        children |= {int(one) for one in read_from(pipe).split()} - {0}
    os.close(pipe)
    until = monotonic() + PATIENCE
    while any(map(is_there, children)):  # one that was killed is there until its new parent has looked
        assert monotonic() < until
        sleep(0.01)


@pytest.mark.parametrize("line, status", [(("requests", "tail"), 130), (("events", "tail"), 130), (("proxy",), 0)])
def test_what_goes_on_until_then(bank: Served, line: tuple[str, ...], status: int) -> None:
    environment = {**os.environ, "BANK_EMULATOR_URL": bank.url, "BANK_EMULATOR_STATE": str(bank.state)}
    with begin(*line, environment=environment) as command:
        assert command.stdout is not None
        while not select.select([command.stdout], [], [], 0.1)[0]:
            control(bank.url, "PUT", "settings", {"calendar": "norway"})  # an event for who follows them
            with pytest.raises(HTTPError):  # a request for who follows those
                urlopen(f"{bank.url}/v1/accounts")
        ended, err = interrupted(command)
    assert (ended, "Traceback" in err) == (status, False)
