"""`make soak`: a million mixed requests to one bank that is never reset, while days of its time go by.

Reads, creations and their repeats, deletions, approvals, refusals, pages and the control interface; every answer has
the status that it should. After each batch six hours of bank time pass, so that what a bank lets go of (remembered
answers, unsigned payments, open SCAs) comes to a plateau. Flat is, from the plateau to the end:

- memory, less what the documents that were added cost a bank that is freshly started on them, is at most 1.1 times;
- half of the answers take at most 1.5 times as long;
- of documents that do not stay for ever there are at most 1.1 times as many.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from emulator.bank.authentication.sca import PASSING_KEPT
from emulator.bank.kinds import KINDS, SCA, SESSION
from emulator.store import open_store
from tests.bench.customers import Customer
from tests.bench.harness import Rate, Running, bank, mixed_rate, raw
from tests.known_state import DOMESTIC

BATCHES, LARGEST_BATCH = 50, 20_000
PLATEAU = 15  # batches until everything that passes has begun to go
WINDOW = 3  # batches whose median counts, up to the plateau and up to the end
BETWEEN = "6h"  # of bank time
MEMORY_GROWTH = LEFT_GROWTH = 1.1
LATENCY_GROWTH = 1.5
FOR_EVER = ("payment", "sca", "transaction")  # a bank forgets no payment, and nothing that belongs to it

SECOND_PERSON = "03817910172"  # whose new sessions end none of the first person's
PAYEE = {"bban": "99901100019", "currency": "NOK"}


@dataclass(slots=True)
class Mix:
    """Requests, and how many answers of each status they must get."""

    requests: list[bytes] = field(default_factory=list)
    expected: Counter[str] = field(default_factory=Counter)

    def add(self, status: int, requests: Iterable[bytes]) -> None:
        several = list(requests)
        self.requests += several
        self.expected[str(status)] += len(several)

    def add_any(self, status: int, requests: Sequence[bytes], count: int, dice: random.Random) -> None:
        """`count` drawn from a few: signing costs more than answering, and each may be sent again."""
        self.add(status, dice.choices(requests, k=count))

    def send(self, server: Running) -> Rate:
        seen = mixed_rate(server, self.requests)
        if seen.statuses != self.expected:
            raise SystemExit(f"expected {dict(self.expected)}, got {seen.statuses}")
        return seen


def payment(customer: Customer, **changes: Any) -> dict[str, Any]:
    """One krone to another customer of the bank, booked on both sides."""
    return {
        "instructedAmount": {"amount": "1.00", "currency": "NOK"},
        "creditorName": "Even Eksempel",
        "creditorAccount": PAYEE,
        "debtorAccount": {"bban": customer.account["bban"], "currency": customer.account["currency"]},
        **changes,
    }


def creates(customer: Customer, count: int) -> list[bytes]:
    return [customer.request("POST", DOMESTIC, json=payment(customer)) for _ in range(count)]


def control(method: str, path: str) -> bytes:
    body = b"{}" if method == "POST" else b""
    return raw(method, f"/_emulator/{path}", {"Host": "127.0.0.1", "Content-Type": "application/json"}, body)


def opened(customer: Customer, count: int) -> list[str]:
    """The tokens of SCAs for access to accounts, each opened by a read that names no customer."""
    answers = [customer.client.get("/v1/accounts", headers={"PSU-ID": None}) for _ in range(count)]
    return [answer.json()["_links"]["scaRedirect"]["href"].rpartition("/")[2] for answer in answers]


def batch(server: Running, state: Path, size: int, dice: random.Random) -> Rate:
    """Send `size` requests; the rate is of the mixed ones, after some payments were made for them to act on."""
    customer = Customer(server.port, state)
    share = max(8, size // 100)
    payments = Mix()
    payments.add(201, creates(customer, share))
    payments.send(server)
    ids = [known["paymentId"] for known in customer.control("GET", f"payments?limit={share}")["payments"]]
    approved, declined, deleted, left = (ids[share * i // 4 : share * (i + 1) // 4] for i in range(4))
    waiting, granted = opened(customer, 2), opened(customer, 4)

    mix = Mix()
    mix.add(200, (control("POST", f"sca/{one}/approve") for one in approved))
    mix.add(200, (control("POST", f"sca/{one}/reject") for one in declined))
    mix.add(204, (customer.request("DELETE", f"{DOMESTIC}/{one}") for one in deleted))
    mix.add(200, (_approved_by(SECOND_PERSON, token) for token in granted))
    mix.add_any(200, [raw("GET", f"/sca/{token}", {"Host": "127.0.0.1"}) for token in waiting], share, dice)
    mix.add(201, creates(customer, share) * 3)  # whichever comes first creates, the others are repeats
    mix.add_any(400, _refused(customer), 4 * share, dice)
    mix.add_any(404, customer.gets(f"{DOMESTIC}/00000000-0000-4000-8000-000000000000", 8), share, dice)
    mix.add_any(401, [customer.request("GET", "/v1/accounts", headers={"PSU-ID": None}) for _ in range(8)], share, dice)
    watched = ("clock", "settings", "payments?limit=20", "requests?limit=20", "sca?limit=20", "consents?limit=20")
    mix.add_any(200, [control("GET", path) for path in watched], 4 * share, dice)
    mix.add(200, [_a_second_passes()] * min(share, 100))
    mix.add_any(200, _reads(customer, left), max(0, size - share - len(mix.requests)), dice)
    dice.shuffle(mix.requests)
    seen = mix.send(server)
    customer.control("POST", "clock/advance", {"by": BETWEEN})
    return seen


def _approved_by(person: str, token: str) -> bytes:
    body = f'{{"nationalId":"{person}"}}'.encode()
    return raw(
        "POST", f"/_emulator/sca/{token}/approve", {"Host": "127.0.0.1", "Content-Type": "application/json"}, body
    )


def _a_second_passes() -> bytes:
    headers = {"Host": "127.0.0.1", "Content-Type": "application/json"}
    return raw("POST", "/_emulator/clock/advance", headers, b'{"by":"1s"}')


def _refused(customer: Customer) -> list[bytes]:
    """Wrong signatures and wrong bodies."""
    wrong = payment(customer, instructedAmount={"amount": "1,00", "currency": "NOK"})
    signatures = ("bit-flipped", "other-key", "other-serial", "reordered", "no-signature")
    return [
        *(customer.request("GET", "/v1/accounts", tamper=name) for name in signatures),
        *(customer.request("POST", DOMESTIC, json=wrong) for _ in signatures),
    ]


def _reads(customer: Customer, payments: Sequence[str]) -> list[bytes]:
    account = f"/v1/accounts/{customer.account['id']}"
    paths = ["/v1/accounts", account, f"{account}/balances", f"{account}/transactions?limit=20"]
    paths += [f"{DOMESTIC}/{one}{part}" for one in payments[:2] for part in ("", "/status", "/status")]
    return [request for path in paths for request in customer.gets(path, 40)]


@dataclass(frozen=True, slots=True)
class Documents:
    """How many documents there are of each kind, and the memory of a bank that is freshly started on them."""

    count: Counter[str]
    megabytes: float


def documents(server: Running, state: Path) -> Documents:
    """Copied while the process stands still; the copy is what a kill at that moment would leave."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "state"
        server.process.send_signal(signal.SIGSTOP)
        try:
            copytree(state, copy)
        finally:
            server.process.send_signal(signal.SIGCONT)
        with bank(copy):
            pass  # as it ends it renews the snapshot: reading a journal leaves memory that is no document's
        with bank(copy) as fresh:
            megabytes = fresh.resident_bytes() / 1e6
        store = open_store(copy / "banks" / "default", KINDS)
        try:
            count = Counter({kind.name: store.count(kind) for kind in KINDS})
            count["sca for access"] = store.count(SCA, passing="yes")
            # kept up to a number that a soak does not reach
            count["session"] -= store.count(SESSION, past="yes")
        finally:
            store.close()
    count["sca"] -= count["sca for access"]
    return Documents(count, megabytes)


def grown(before: Documents, after: Documents) -> bool:
    """Tell of every kind of which there are more; whether one grew that should not."""
    bad = False
    for kind in sorted(after.count):
        early, late = before.count[kind], after.count[kind]
        if late <= early:
            continue
        wrong = kind not in FOR_EVER and late > early * LEFT_GROWTH
        bad = bad or wrong
        print(
            f"  {kind:<16} {early:>8,} {late:>8,}  {'kept for ever' if kind in FOR_EVER else 'GROWS' if wrong else ''}"
        )
    return bad


def fill_up(server: Running, state: Path) -> None:
    """As many SCAs for access as a bank keeps: the plateau of a client that polls for days without a session."""
    customer = Customer(server.port, state)
    mix = Mix()
    mix.add(401, [customer.request("GET", "/v1/accounts", headers={"PSU-ID": None})] * PASSING_KEPT)
    mix.send(server)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    requests = parser.parse_args().requests
    batches = max(BATCHES, requests // LARGEST_BATCH)
    dice = random.Random(1)
    memory: list[float] = []
    latency: list[float] = []
    with TemporaryDirectory() as folder, bank(Path(folder)) as server:
        fill_up(server, Path(folder))
        for number in range(1, batches + 1):
            worked = server.cpu_seconds()
            seen = batch(server, Path(folder), requests // batches, dice)
            worked = (server.cpu_seconds() - worked) * 1e6 / (requests // batches)
            memory.append(server.resident_bytes() / 1e6)
            latency.append(seen.p50_ms)
            print(
                f"{number:>4}/{batches}  {seen.per_second:>7,.0f}/s  {seen.p50_ms:6.2f} ms  "
                f"{worked:5.0f} us of work each  {memory[-1]:7.1f} MB",
                flush=True,
            )
            if number == PLATEAU:
                early = documents(server, Path(folder))
        late = documents(server, Path(folder))
    print(f"Documents from batch {PLATEAU} to the last:")
    bad = grown(early, late)
    first, last = slice(PLATEAU - WINDOW, PLATEAU), slice(-WINDOW, None)
    added = late.megabytes - early.megabytes
    more = (median(memory[last]) - added) / median(memory[first])
    slower = median(latency[last]) / median(latency[first])
    print(f"Memory {more:.2f} times (the documents' {added:.1f} MB taken off), latency {slower:.2f} times.")
    return 1 if bad or more > MEMORY_GROWTH or slower > LATENCY_GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
