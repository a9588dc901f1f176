"""A signed GET of a page of transactions: of 100 beside the plain GET, of 10 beside one out of 100,000."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.customers import Customer
from tests.bench.harness import Rate, Row, Running, bank, beside, rate, rows, yardstick
from tests.bench.sections.plain import gets

PAGE = 100
FEW, MANY = 10, 100_000
GOAL = 0.2  # three times what it was while each booking was rendered at every read
DAYS = 60  # well inside the 90 that are read unless a date is named


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, yardstick() as plain, bank(Path(folder)) as ours:
        state = Path(folder)
        pair = beside(
            _reader(ours, state, transactions=PAGE, page=PAGE),
            lambda count: rate(plain, gets(count), expect=200),
            rounds,
            requests,
        )
        yield from rows("transactions", f"signed page of {PAGE} transactions", "the plain GET", pair, at_least=GOAL)
        pair = beside(
            _reader(ours, state, transactions=MANY, page=FEW),
            _reader(ours, state, transactions=FEW, page=FEW),
            rounds,
            requests,
        )
        yield Row("transactions", f"page of {FEW} out of {MANY:,} beside one out of {FEW}", pair.ratio, "x")


def _reader(server: Running, state: Path, *, transactions: int, page: int) -> Callable[[int], Rate]:
    """The load of a new customer whose one account has so many transactions; it reads the first page."""
    plan = {"customers": 1, "accountsPerCustomer": 1, "transactionsPerAccount": transactions, "days": DAYS, "seed": 1}
    created = Customer(server.port, state).control("POST", "generate", plan)["customers"][0]
    customer = Customer(server.port, state, national_id=created["nationalId"])
    path = f"/v1/accounts/{customer.account['id']}/transactions?limit={page}"
    listed = customer.client.get(path).json()["transactions"]
    if len(listed["booked"]) + len(listed["pending"]) != page:
        raise RuntimeError(f"the page has {len(listed['booked'])} and {len(listed['pending'])} transactions")
    return lambda count: rate(server, customer.gets(path, count), expect=200)
