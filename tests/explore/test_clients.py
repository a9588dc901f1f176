"""The end of a run, as the driver of a TPP in another process decides it."""

from __future__ import annotations

import json
import threading
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import SimpleQueue
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from emulator.cli.local_banks import LocalBanks
from emulator.conformance.explore import clients
from emulator.conformance.explore.play import Run
from emulator.conformance.explore.schedule import of

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

    monkeypatch.setattr(clients, "time", SimpleNamespace(monotonic=monotonic))
    sandbox = LocalBanks()
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        run = Run(of({"tasks": ["read"]}), sandbox, "stalled")
        ending = clients.Process(hook=f"http://127.0.0.1:{server.server_address[1]}/").play(run)
        for _ in range(LOOKS):
            looks.put(None)
    sandbox.close()
    assert run.requests == 1
    assert ending.crash == "the hook answered 500"
