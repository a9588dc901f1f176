"""kill -9 while notifications are sent: none is lost, none tells of what did not happen, their order stays."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from emulator.client import Identity, TppClient
from tests.crash.test_kill import BODY
from tests.e2e.process import Served, control, start
from tests.known_state import DOMESTIC, KARI

CUSTOMERS = 3


class Receiver(ThreadingHTTPServer):
    """Notes what it receives, by payment; every seventh notification is refused, so that some are sent again."""

    daemon_threads = True

    def __init__(self) -> None:
        self.received: defaultdict[str, list[str]] = defaultdict(list)
        self.count = 0
        self.ids: list[str] = []  # of those that were taken
        self.changed = threading.Condition()
        super().__init__(("127.0.0.1", 0), _Take)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def take(self, body: dict[str, str], identity: str) -> int:
        with self.changed:
            self.count += 1
            if self.count % 7 == 0:
                return 503
            self.ids.append(identity)
            self.received[body["paymentId"]].append(body["transactionStatus"])
            self.changed.notify_all()
            return 204

    def statuses(self, payment: str) -> list[str]:
        """What was said of a payment; what came twice in a row counts once."""
        return [status for status, _ in groupby(self.received[payment])]


class _Take(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:  # as the library calls it
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.take(body, self.headers["X-Request-ID"]))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing on stderr."""


class Customer(threading.Thread):
    """Creates payments that are notified, approves and deletes them, until the bank dies."""

    def __init__(self, bank: Served, uri: str, dice: random.Random, done: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self._bank, self._dice, self._done = bank, dice, done
        self._client = TppClient(bank.url, Identity.from_folder(bank.state / "tpps" / "demo"), timeout=10)
        self._client.notification_uri = uri

    def run(self) -> None:
        try:
            self._client.use_session(control(self._bank.url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI}))
            while True:
                self._one()
        except (OSError, ValueError):
            return  # the bank is gone, or the answer was cut off

    def _one(self) -> None:
        payment = self._client.post(DOMESTIC, json=BODY).json()["paymentId"]
        self._done.release()
        if self._dice.random() < 0.5:
            control(self._bank.url, "POST", f"sca/{payment}/approve", {})
        else:
            self._client.delete(f"{DOMESTIC}/{payment}")
        self._done.release()


def alive(state: Path) -> Served:
    bank = start(state, "--allow-notify", "127.0.0.1")
    control(bank.url, "PUT", "settings", {"notifications": True, "progression": "immediate"})
    return bank


def killed(state: Path, receiver: Receiver, dice: random.Random) -> None:
    """One life of a bank that is killed under traffic, in the middle of sending."""
    bank = alive(state)
    try:
        done = threading.Semaphore(0)
        customers = [Customer(bank, receiver.uri, random.Random(dice.random()), done) for _ in range(CUSTOMERS)]
        for customer in customers:
            customer.start()
        for _ in range(dice.randrange(2, 25)):
            assert done.acquire(timeout=20)
    finally:
        bank.process.send_signal(signal.SIGKILL)
        bank.process.communicate()
    for customer in customers:
        customer.join(20)


@pytest.mark.crash
@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=pytest.mark.long)])
def test_kills_lose_no_notification_invent_none_and_keep_their_order(tmp_path: Path, kills: int) -> None:
    dice, receiver = random.Random(kills), Receiver()
    for _ in range(kills):
        killed(tmp_path / "state", receiver, dice)
    bank = alive(tmp_path / "state")
    try:
        payments = control(bank.url, "GET", "payments?limit=1000")["payments"]
        history = {
            payment["paymentId"]: [change["status"] for change in payment["history"] if change["status"] != "RCVD"]
            for payment in payments
        }

        def everything() -> bool:
            return all(receiver.received[payment][-1:] == statuses[-1:] for payment, statuses in history.items())

        for _ in range(50):  # the retries of those that were refused, in bank time
            with receiver.changed:
                if receiver.changed.wait_for(everything, timeout=0.5):
                    break
            control(bank.url, "POST", "clock/advance", {"by": "10m"})
        assert len(history) > kills
        assert {payment: receiver.statuses(payment) for payment in history} == history
        assert receiver.received.keys() == history.keys()
    finally:
        bank.process.kill()
        bank.process.communicate()
        receiver.shutdown()
        receiver.server_close()
