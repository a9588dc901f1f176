"""A year of bank time over a hundred standing orders, executed in order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.customers import Customer
from tests.bench.harness import Row, bank
from tests.known_state import PERIODIC

COUNT = 100
GOAL = 1000.0  # milliseconds


def measure(rounds: int, requests: int) -> Iterator[Row]:
    del rounds, requests
    with TemporaryDirectory() as directory, bank(Path(directory)) as server:
        customer = Customer(server.port, Path(directory))
        today = customer.control("PUT", "clock", {"mode": "frozen"})["now"][:10]
        for _ in range(COUNT):
            answer = customer.client.post(PERIODIC, json=_order(customer, today))
            if answer.status != 201:
                raise RuntimeError(f"the standing order was refused: {answer.text}")
            customer.control("POST", f"sca/{answer.json()['paymentId']}/approve", {})
        began = time.perf_counter()
        customer.control("POST", "clock/advance", {"by": "365d"})
        took = (time.perf_counter() - began) * 1000
        if not customer.control("GET", "ledger")["balanced"]:
            raise RuntimeError("the ledger does not balance")
        yield Row("year", f"a year over {COUNT} monthly standing orders", took, "ms", at_most=GOAL)


def _order(customer: Customer, start: str) -> dict[str, Any]:
    return {
        "instructedAmount": {"amount": "10.00", "currency": customer.account["currency"]},
        "creditorName": "Strømmetjenesten AS",
        "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
        "debtorAccount": {"bban": customer.account["bban"], "currency": customer.account["currency"]},
        "startDate": start,
        "frequency": "Monthly",
        "dayOfExecution": "5",
        "executionRule": "following",
    }
