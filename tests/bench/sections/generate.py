"""100,000 generated transactions in a store on disk, beside writing the same documents to one JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from emulator.bank import fixtures
from emulator.bank.bank import Bank
from emulator.bank.kinds import KINDS, TRANSACTION
from emulator.bank.sandbox.generate import DataPlan, generate_in_pieces
from emulator.bank.threads import run_to_end
from emulator.store import open_store
from tests.bench.harness import Row

PLAN = DataPlan(customers=100, accountsPerCustomer=2, transactionsPerAccount=500, days=90, seed=1)


def measure(rounds: int, requests: int) -> Iterator[Row]:
    best = min((_once() for _ in range(min(rounds, 3))), key=lambda pair: pair[0] / pair[1])
    seconds, written = best
    yield Row("generate", f"{PLAN.transactions:,} transactions", seconds, "s")
    yield Row("generate", "the same documents as one JSON file", written, "s")
    yield Row("generate", "generated beside written", seconds / written, "x", at_most=10)


def _once() -> tuple[float, float]:
    with TemporaryDirectory() as folder:
        bank = Bank(open_store(Path(folder) / "bank", KINDS))
        fixtures.reset(bank, "empty")
        began = perf_counter()
        run_to_end(generate_in_pieces(bank, PLAN))
        seconds = perf_counter() - began
        documents = list(bank.documents.all(TRANSACTION))
        bank.documents.close()
        began = perf_counter()
        with (Path(folder) / "transactions.json").open("w", encoding="utf-8") as file:
            json.dump(documents, file)
        return seconds, perf_counter() - began
