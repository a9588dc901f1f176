"""The end of a run, as the driver of a TPP in another process decides it."""

from __future__ import annotations

import json
import shlex
import sys
import threading
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from emulator.api.messages import Request, Response
from emulator.assemble.local_banks import LocalBanks
from emulator.conformance.program import Program
from emulator.explore import judge
from emulator.explore.play import Run
from emulator.explore.schedule import of
from tests.explore.world import HOST, house

STALL = 10.0  # seconds
LOOKS = 3


def test_a_slow_machine_is_no_silence_of_the_tpp(monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing is due the machine stalls; the TPP goes on after it, and how it ends counts."""
    stall = 0.0
    looks: SimpleQueue[None] = SimpleQueue()

    def monotonic() -> float:
        looks.put(None)
        return time.monotonic() + stall

    def looked_often() -> None:
        """The driver has looked at the run a few times from now on."""
        while not looks.empty():
            looks.get()
        for _ in range(LOOKS):
            looks.get()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            url = urlsplit(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["url"])
            bank = HTTPConnection(url.netloc)
            bank.request("GET", f"{url.path}/v1/accounts")
            bank.getresponse().read()
            bank.close()
            looked_often()
            nonlocal stall
            for _ in range(2):  # at the first, bank time moves to what is due
                stall += STALL
                looked_often()
            self.send_error(500)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    monkeypatch.setattr(judge, "time", SimpleNamespace(monotonic=monotonic))
    sandbox = LocalBanks.in_memory()
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        run = Run(of({"tasks": ["read"]}), sandbox, "stalled")
        ending = judge.Process(Program(hook=f"http://127.0.0.1:{server.server_address[1]}/")).play(run)
        for _ in range(LOOKS):
            looks.put(None)
    sandbox.close()
    assert run.requests == 1
    assert ending.problem == "the hook answered 500"


def test_what_is_sent_after_the_end_of_a_run_is_not_judged() -> None:
    run = Run(of({"tasks": ["read"]}), house(), "ended")
    target = f"{urlsplit(run.url).path}/v1/accounts"

    house().application.handle(Request("GET", target, (HOST,)))
    assert not run.leave(requests=0)  # it was not silent
    assert run.leave(requests=1)
    house().application.handle(Request("GET", target, (HOST,)))
    run.close()
    assert (run.requests, len(run.rows)) == (1, 1)


def test_a_killed_tpp_gets_no_answer_until_it_is_started_again() -> None:
    for restarts, lost in ((True, ["after", "before", "before", None]), (False, ["after", None, None, None])):
        run = Run(of({"tasks": ["read"], "restarts": [1]}), house(), "killed", restarts=restarts)
        request = Request("GET", f"{urlsplit(run.url).path}/v1/accounts", (HOST,))
        answers = [house().application.handle(request) for _ in range(3)]
        run.restarted()
        answers.append(house().application.handle(request))
        run.close()
        assert [answer.delivery.disconnect for answer in answers if isinstance(answer, Response)] == lost
        assert run.requests == (2 if restarts else 4)


ASKS = """
import os, urllib.request
try:
    urllib.request.urlopen(os.environ["BANK_URL"] + "/v1/accounts")
except OSError:
    pass
"""


def test_a_start_after_a_kill_is_no_silence_of_the_tpp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program takes longer to start than it may be silent: nothing happens until it asks."""
    monkeypatch.setattr(judge, "LOOK", 0.001)
    monkeypatch.setattr(judge, "SILENCE", 0.002)
    monkeypatch.setattr(judge, "OVER", 0.004)
    program = tmp_path / "asks.py"
    program.write_text(ASKS)
    sandbox = LocalBanks.in_memory()
    run = Run(of({"tasks": ["read"], "restarts": [1]}), sandbox, "restarted", restarts=True)
    judge.Process(Program(shlex.join([sys.executable, str(program)])), restarts=True).play(run)
    sandbox.close()
    assert run.requests == 2
