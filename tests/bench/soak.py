"""`make soak`: a million mixed requests; memory and latency at the end must be those of the beginning.

Works in batches. Each ends with a reset, after which the bank must hold no more than after the first ones.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.customers import SEPA, Customer
from tests.bench.harness import bank, mixed_rate

BATCH = 20_000
CREATES = 1000  # of a batch; the rest reads, each signed request some times over
SIGNED_READS = 400
MEMORY_GROWTH = 1.10
LATENCY_GROWTH = 1.5
SETTLING = 3  # batches until caches are filled


def batch(customer: Customer, size: int, dice: random.Random) -> list[bytes]:
    """Requests for accounts, balances, transactions, payments and their status, and new payments, shuffled."""
    account = f"/v1/accounts/{customer.account['id']}"
    payment = f"{SEPA}/{customer.a_payment()}"
    paths = ["/v1/accounts", account, f"{account}/balances", f"{account}/transactions", payment, f"{payment}/status"]
    reads = [request for path in paths for request in customer.gets(path, SIGNED_READS // len(paths))]
    made = customer.creates(min(CREATES, size))
    made += [dice.choice(reads) for _ in range(size - len(made))]
    dice.shuffle(made)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    asked = parser.parse_args()
    batches = max(2 * SETTLING, asked.requests // BATCH)
    dice = random.Random(1)
    memory: list[float] = []
    latency: list[float] = []
    with TemporaryDirectory() as folder, bank(Path(folder)) as server:
        for number in range(batches):
            customer = Customer(server.port, Path(folder))
            seen = mixed_rate(server.port, batch(customer, asked.requests // batches, dice))
            if wrong := {status: count for status, count in seen.statuses.items() if status not in ("200", "201")}:
                print(f"unexpected answers: {wrong}", file=sys.stderr)
                return 1
            customer.control("POST", "reset", {})
            memory.append(server.resident_bytes() / 1e6)
            latency.append(seen.p50_ms)
            print(
                f"{number + 1:>4}/{batches}  {seen.per_second:>7,.0f}/s  {seen.p50_ms:6.2f} ms  {memory[-1]:7.1f} MB",
                flush=True,
            )
    first, last = slice(SETTLING, 2 * SETTLING), slice(-SETTLING, None)
    grown = median(memory[last]) / median(memory[first])
    slowed = median(latency[last]) / median(latency[first])
    print(f"memory {grown:.2f} times, latency {slowed:.2f} times that of the beginning")
    return 0 if grown <= MEMORY_GROWTH and slowed <= LATENCY_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
