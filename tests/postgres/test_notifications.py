"""Processes that share a store: each notification is sent by one of them, and by another when that one is killed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from emulator.client import TppClient
from tests.crash.test_kill import BODY
from tests.crash.test_notifications_kill import Receiver
from tests.known_state import DOMESTIC, KARI
from tests.postgres.cluster import Cluster, Node, ask, cluster, control, eventually

CUSTOMERS = 3
PAYMENTS = 10  # of each
LATEST = 60.0  # seconds until all has come, with a claim that another process takes over


def notifying(running: Cluster) -> None:
    control(running.url, "PUT", "settings", {"notifications": True, "progression": "immediate"})


def paying(running: Cluster, receiver: Receiver, victim: Node | None = None) -> threading.Thread:
    """A thread, not started, that pays in a session of its own."""
    psu = control(running.url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI})
    return threading.Thread(target=pay, args=(running, receiver, psu, victim))


def pay(running: Cluster, receiver: Receiver, psu: dict[str, str], victim: Node | None) -> None:
    """Payments that are approved or deleted, on whichever process the balancer gives; in the middle one is killed."""
    with TppClient(running.url, running.demo, timeout=20) as client:
        client.notification_uri = receiver.uri
        client.use_session(psu)
        for number in range(PAYMENTS):
            try:
                payment = client.post(DOMESTIC, json=BODY).json()["paymentId"]
                if number % 2:
                    control(running.url, "POST", f"sca/{payment}/approve", {})
                else:
                    client.delete(f"{DOMESTIC}/{payment}")
            except (OSError, ValueError, KeyError, AssertionError):
                continue  # it went to the process that was killed, or nobody was the home yet
            if victim is not None and number == PAYMENTS // 2:
                victim.kill()


def history(running: Cluster) -> dict[str, list[str]]:
    payments = control(running.url, "GET", "payments?limit=1000")["payments"]
    return {
        payment["paymentId"]: [change["status"] for change in payment["history"] if change["status"] != "RCVD"]
        for payment in payments
        if payment["transactionStatus"] != "RCVD"
    }


def all_came(running: Cluster, receiver: Receiver) -> dict[str, list[str]]:
    """What happened, once everything of it has come; what was refused is sent again in bank time."""
    happened = history(running)

    def everything() -> bool:
        return all(receiver.received[payment][-1:] == statuses[-1:] for payment, statuses in happened.items())

    for _ in range(int(LATEST)):
        with receiver.changed:
            if receiver.changed.wait_for(everything, timeout=1):
                break
        control(running.url, "POST", "clock/advance", {"by": "10m"})
    return happened


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.mark.crash
def test_what_a_killed_process_was_sending_another_sends(tmp_path: Path, store_url: str, receiver: Receiver) -> None:
    with cluster(tmp_path, store_url, "--allow-notify", "127.0.0.1", nodes=2) as running:
        notifying(running)
        victim = running.nodes[0]  # the home
        customers = [paying(running, receiver, victim if number == 0 else None) for number in range(CUSTOMERS)]
        for customer in customers:
            customer.start()
        for customer in customers:
            customer.join(60)
        eventually(lambda: ask(running.url, "GET", "/ready")[0] == 200)  # the other process has taken the bank over
        happened = all_came(running, receiver)
        assert {payment: receiver.statuses(payment) for payment in happened} == happened
