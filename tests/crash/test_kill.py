"""kill -9 at random moments under signed traffic: every acknowledged write is found again, and the ledger balances."""

from __future__ import annotations

import random
import signal
import threading
import uuid
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from emulator.api.description import examples
from emulator.client import Identity, TppClient
from tests.e2e.process import Served, control, start
from tests.known_state import DOMESTIC, KARI

BODY = examples.bodies(date(2026, 3, 2))["createPayment"]["norwegian-domestic-credit-transfers"]
CLIENTS = 4


class Customer(threading.Thread):
    """Creates, approves and deletes payments until the bank dies; remembers what was acknowledged."""

    def __init__(
        self, bank: Served, psu: dict[str, str], dice: random.Random, acknowledged: threading.Semaphore
    ) -> None:
        super().__init__(daemon=True)
        self._acknowledged = acknowledged
        self._url = bank.url
        self._psu = psu
        self._client = self._client_of(bank)
        self._dice = dice
        self._request_id = str(uuid.uuid4())  # of the latest creation
        self.statuses: dict[str, set[str]] = {}
        self.acknowledged = 0
        self.complaint: AssertionError | None = None

    def _client_of(self, bank: Served) -> TppClient:
        client = TppClient(bank.url, Identity.from_folder(bank.state / "tpps" / "demo"), timeout=10)
        client.use_session(self._psu)
        return client

    def create(self, client: TppClient) -> str:
        """The latest creation, for the first time or again."""
        created = client.post(DOMESTIC, json=BODY, headers={"X-Request-ID": self._request_id})
        assert created.status == 201, created.text
        return str(created.json()["paymentId"])

    def retry(self, again: Served) -> str:
        """Send the latest creation to the next life of the bank: whether it was answered or not, it is made once."""
        return self.create(self._client_of(again))

    def run(self) -> None:
        try:
            while True:
                self._one()
        except (OSError, ValueError):
            return  # the bank is gone, or the answer was cut off
        except AssertionError as wrong:
            self.complaint = wrong

    def _one(self) -> None:
        self._request_id = str(uuid.UUID(int=self._dice.getrandbits(128)))
        payment = self.create(self._client)
        # What was acknowledged must be there; what was under way at the kill may be there.
        self.statuses[payment] = {"RCVD"}
        self.acknowledged += 1
        self._acknowledged.release()
        choice = self._dice.random()
        if choice < 0.5:
            self.statuses[payment] = {"RCVD", "ACTC", "ACSP", "ACSC"}
            control(self._url, "POST", f"sca/{payment}/approve", {})
            self.statuses[payment] = {"ACTC", "ACSP", "ACSC"}
        elif choice < 0.7:
            self.statuses[payment] = {"RCVD", "CANC"}
            assert self._client.delete(f"{DOMESTIC}/{payment}").status == 204
            self.statuses[payment] = {"CANC"}


def payments(bank: Served) -> dict[str, dict[str, Any]]:
    listed = control(bank.url, "GET", "payments?limit=1000")["payments"]
    return {payment["paymentId"]: payment for payment in listed}


def killed_once(state: Path, dice: random.Random, durability: str) -> int:
    """One life of a bank: traffic, the kill, and what the next life knows; how many writes were acknowledged."""
    bank = start(state, "--durability", durability)
    try:
        psu = control(bank.url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI})
        acknowledged = threading.Semaphore(0)
        customers = [Customer(bank, psu, random.Random(dice.random()), acknowledged) for _ in range(CLIENTS)]
        for customer in customers:
            customer.start()
        # The moment of the kill is a number of acknowledged writes, not of seconds.
        for _ in range(dice.randrange(1, 60)):
            assert acknowledged.acquire(timeout=20)
    finally:
        bank.process.send_signal(signal.SIGKILL)
        bank.process.communicate()
    for customer in customers:
        customer.join(20)
        assert not customer.is_alive()
        assert customer.complaint is None
    again = start(state)
    try:
        known = payments(again)
        answered = {payment for customer in customers for payment in customer.statuses}
        retried = {customer.retry(again) for customer in customers}
        assert len(retried) == len(customers)
        assert known.keys() - answered <= retried, "a payment whose answer was lost is made twice"
        assert payments(again).keys() == answered | retried
        for customer in customers:
            for payment, allowed in customer.statuses.items():
                assert payment in known, f"the acknowledged payment {payment} is gone"
                assert known[payment]["transactionStatus"] in allowed
        assert control(again.url, "GET", "ledger")["balanced"] is True
        control(again.url, "POST", "reset", {})
        assert again.stop() == 0
    finally:
        if again.process.poll() is None:
            again.process.kill()
        again.process.communicate()
    return sum(customer.acknowledged for customer in customers)


@pytest.mark.crash
def test_two_kills_lose_nothing(tmp_path: Path) -> None:
    dice = random.Random(3)
    assert sum(killed_once(tmp_path / "state", dice, durability) for durability in ("process", "power")) > 10


@pytest.mark.crash
@pytest.mark.long
def test_a_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    dice = random.Random(100)
    acknowledged = sum(killed_once(tmp_path / "state", dice, dice.choice(["process", "power"])) for _ in range(100))
    assert acknowledged > 1000
