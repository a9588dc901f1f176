"""A start after a kill beside one after a clean stop, with 100,000 payments: time and memory.

The killed one has a journal that is nearly as large as it may become before it is compacted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from statistics import median
from tempfile import TemporaryDirectory

from emulator.bank.kinds import KINDS, PAYMENT
from emulator.store import JournalLog, open_store
from tests.bench.harness import Row, bank
from tests.bench.many import COUNT, filled

TIME, MEMORY = 1.5, 1.3


def measure(rounds: int, requests: int) -> Iterator[Row]:
    del requests
    with TemporaryDirectory() as folder:
        pattern = Path(folder) / "killed"
        copytree(filled(COUNT), pattern)
        _kill_late(pattern / "banks" / "default")
        starts: dict[str, list[tuple[float, int]]] = {"clean": [], "killed": []}
        for turn in range(max(rounds, 3)):
            for name, source in (("clean", filled(COUNT)), ("killed", pattern)):
                state = Path(folder) / f"{name}-{turn}"
                copytree(source, state)
                with bank(state) as server:
                    starts[name].append((server.seconds, server.resident_bytes()))
    for name, seen in starts.items():
        yield Row("replay", f"{name}: start to ready", median(time for time, _ in seen) * 1000, "ms")
        yield Row("replay", f"{name}: memory then", median(memory for _, memory in seen) / 1e6, "MB")
    pairs = list(zip(starts["killed"], starts["clean"], strict=True))
    time = median(killed[0] / clean[0] for killed, clean in pairs)
    memory = median(killed[1] / clean[1] for killed, clean in pairs)
    yield Row("replay", "start after a kill beside one after a stop", time, "x", at_most=TIME)
    yield Row("replay", "its memory beside that", memory, "x", at_most=MEMORY)


def _kill_late(directory: Path) -> None:
    """Change payments one by one until the next would make the journal due for compaction, and end without a word."""
    store = open_store(directory, KINDS)
    log = store.log
    assert isinstance(log, JournalLog)
    for payment in store.all(PAYMENT):
        store.put(PAYMENT, {**payment, "likeness": payment.get("likeness", "") + "x"})
        if log.compaction_due:
            break
    log.discard()
