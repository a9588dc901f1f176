"""Measure the document store: `python tests/bench/bench_store.py [documents]`. Prints; judges nothing."""

from __future__ import annotations

import gc
import random
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from emulator.store import Documents, Image, Kind, Ordered, memory_store, open_store
from emulator.store.journal_log import Compaction
from emulator.store.snapshot import snapshot_bytes

PAYMENT = Kind[dict[str, Any]](
    "payment",
    indexes=("tpp", "debtorAccountId", "basketId", "likeness"),
    ordered={"created": Ordered(by="created"), "due": Ordered(by="due")},
)
TRANSACTION = Kind[dict[str, Any]](
    "transaction",
    indexes=("accountId", "paymentId"),
    ordered={"shelf": Ordered(by="order", group="shelf"), "due": Ordered(by="due")},
)
META = Kind[dict[str, Any]]("meta")
KINDS = (PAYMENT, TRANSACTION, META)


def payment(number: int) -> dict[str, Any]:
    """A payment of about 700 bytes."""
    return {
        "id": f"00000000-0000-4000-8000-{number:012d}",
        "service": "payments",
        "product": "sepa-credit-transfers",
        "tpp": f"PSDNO-FSA-{number % 3}",
        "debtorAccountId": f"account-{number % 1000}",
        "likeness": f"{number * 2654435761 % 2**64:016x}{number:016x}",
        "created": f"2026-03-02T08:00:{number // 1000000:02d}.{number % 1000000:06d}+00:00",
        "due": f"2026-03-02T08:00:{number // 1000000 + 3:02d}.{number % 1000000:06d}+00:00",
        "status": "ACTC",
        "history": [{"status": "RCVD", "at": "2026-03-02T08:00:00.000000+00:00"}],
        "initiation": {
            "instructedAmount": {"currency": "EUR", "amount": "123.45"},
            "creditorAccount": {"iban": "DE19999999990000123456"},
            "creditorName": "A Creditor With A Name",
            "remittanceInformationUnstructured": f"Invoice {number}, for what was delivered in the first quarter",
            "endToEndId": f"end-to-end-{number:024d}",
        },
    }


def transaction(number: int) -> dict[str, Any]:
    """A booked transaction of a known state of 12 accounts."""
    account = f"account-{number % 12}"
    return {
        "id": f"transaction-{number:08d}",
        "accountId": account,
        "shelf": f"{account}|booked",
        "order": f"2026-02-{number % 28 + 1:02d}|2026-03-02T08:00:00.{number:06d}+00:00",
        "status": "booked",
        "amount": "-123.45",
        "currency": "NOK",
        "creditorName": "A Creditor With A Name",
        "remittanceInformationUnstructured": "text " * 60,
    }


def timed(label: str, work: Callable[[], object], times: int = 1) -> None:
    """Print how long `work` took for each of `times`."""
    begun = time.perf_counter()
    work()
    took = (time.perf_counter() - begun) / times
    print(f"{label:<58}{took * 1e6:12.1f} us" if took < 0.001 else f"{label:<58}{took * 1e3:12.1f} ms")


def each(action: Callable[[int], object], numbers: list[int]) -> Callable[[], None]:
    def work() -> None:
        for number in numbers:
            action(number)

    return work


def repeated(times: int, action: Callable[[], object]) -> Callable[[], None]:
    def work() -> None:
        for _ in range(times):
            action()

    return work


def at_size(store: Documents, size: int) -> None:
    """Single operations with `size` payments in the store."""
    draw = random.Random(size)
    some = draw.sample(range(size), min(size, 2000))
    fresh = list(range(10**8, 10**8 + 2000))
    documents = {number: payment(number) for number in [*some, *fresh]}
    identity = {number: document["id"] for number, document in documents.items()}
    for number in some:
        documents[number]["status"] = f"ACSC{size}"
    print(f"-- {size} payments of {len(orjson.dumps(documents[some[0]]))} bytes")
    measured: list[tuple[str, Callable[[int], object], list[int]]] = [
        ("insert", lambda n: store.put(PAYMENT, documents[n]), fresh),
        ("get", lambda n: store.get(PAYMENT, identity[n]), some),
        ("update", lambda n: store.put(PAYMENT, documents[n]), some),
        ("find by a unique value", lambda n: store.find(PAYMENT, likeness=documents[n]["likeness"]), some),
        ("count by a value that many have", lambda n: store.count(PAYMENT, tpp="PSDNO-FSA-1"), some),
        ("first_key", lambda n: store.first_key(PAYMENT, "due"), some),
        ("range, newest 10", lambda n: store.range(PAYMENT, "created", reverse=True, limit=10), some),
        ("delete", lambda n: store.delete(PAYMENT, identity[n]), fresh),
    ]
    for label, action, numbers in measured:
        timed(label, each(action, numbers), len(numbers))


def resident() -> float:
    """Megabytes in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def compaction_beside(store: Documents) -> None:
    """Compact in a thread while this one goes on; the longest time that a read and a write took."""
    compactions: list[Compaction] = []
    timed("begin_compaction (the requests wait)", lambda: compactions.append(store.log.begin_compaction()))
    thread = threading.Thread(target=compactions[0].run)
    longest, count = 0.0, 0
    begun = time.perf_counter()
    thread.start()
    while thread.is_alive():
        one = time.perf_counter()
        store.put(META, {"id": "x", "n": count})
        store.get(META, "x")
        longest = max(longest, time.perf_counter() - one)
        count += 1
        time.sleep(0.0002)
    print(f"{'compaction in a thread':<58}{(time.perf_counter() - begun) * 1e3:12.1f} ms")
    print(f"{'longest write and read meanwhile':<58}{longest * 1e3:12.1f} ms")
    timed("finish_compaction", lambda: store.log.finish_compaction(compactions[0]))


def known_state() -> None:
    """Going back to a known state of 1,500 documents."""
    image = Image.build(KINDS, {TRANSACTION: [transaction(n) for n in range(1500)]})
    print(f"-- a known state of 1500 documents, {len(snapshot_bytes(image.tables)) / 1e3:.0f} KB")
    store = memory_store(KINDS)
    store.restore(image)
    timed("restore in memory, nothing changed", repeated(20, lambda: store.restore(image)), 20)
    empty = memory_store(KINDS)
    timed("restore in memory, from nothing", lambda: empty.restore(image))
    timed("image", repeated(20, lambda: store.image()), 20)
    with tempfile.TemporaryDirectory() as directory:
        on_disk = open_store(Path(directory) / "bank", KINDS)
        timed("restore into a directory, from nothing", lambda: on_disk.restore(image))
        on_disk.put(TRANSACTION, transaction(7) | {"status": "pending"})
        timed("restore into a directory, one changed", lambda: on_disk.restore(image))
        on_disk.close()


def filled(directory: Path, size: int) -> None:
    """A store that grows from 100 to `size` payments, is compacted and closed."""
    store = open_store(directory, KINDS)
    for number in range(100):
        store.put(PAYMENT, payment(number))
    at_size(store, 100)
    before = resident()
    timed(f"fill, each of {size}", each(lambda n: store.put(PAYMENT, payment(n)), list(range(100, size))), size - 100)
    gc.collect()
    print(f"{'memory for each document':<58}{(resident() - before) * 1e6 / size:12.0f} bytes")
    at_size(store, size)
    timed("a full garbage collection", gc.collect)
    compaction_beside(store)
    store.put(META, {"id": "last"})
    timed("close with compaction", store.close)
    print(f"{'snapshot':<58}{(directory / 'documents.json').stat().st_size / 1e6:12.1f} MB")


def main(size: int) -> None:
    """Everything, with `size` payments."""
    known_state()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "bank"
        filled(directory, size)
        gc.collect()
        opened: list[Documents] = []
        timed("start from the snapshot", lambda: opened.append(open_store(directory, KINDS)))
        opened.pop().close()
        gc.collect()
        other = (Kind[dict[str, Any]]("payment", indexes=("tpp",)), TRANSACTION, META)
        timed("start with other indexes declared", lambda: opened.append(open_store(directory, other)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
