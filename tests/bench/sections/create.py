"""A signed, validated, journaled POST of a SEPA payment beside the plain POST of its JSON, and beside `verify`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.customers import Customer
from tests.bench.harness import Row, bank, beside, beside_of, rate, rows, yardstick
from tests.bench.sections.plain import posts

GOAL = 0.65
LASTING = 20_000  # more than a bank can put off until the load has ended


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, yardstick() as plain, bank(Path(folder)) as ours:
        customer = Customer(ours.port, Path(folder))
        pair = beside(
            lambda count: rate(ours, customer.creates(count), expect=201),
            lambda count: rate(plain, posts(count), expect=200),
            rounds,
            requests,
        )
        yield from rows("create", "signed create", "the plain POST", pair)
        for packets, name, goal in ((1, "signed create", GOAL), (2, "signed create in two packets", None)):
            pair = beside(
                lambda count, packets=packets: rate(ours, customer.creates(count), expect=201, packets=packets),
                lambda count, packets=packets: rate(plain, customer.creates(count), expect=201, packets=packets),
                rounds,
                requests,
            )
            yield Row("create", f"{name} beside verify", pair.ratio, "x", at_least=goal)
        lasting = [(ours, customer.creates(LASTING)), (plain, customer.creates(LASTING))]
        mine, theirs = (rate(server, creates, expect=201) for server, creates in lasting)
        yield Row("create", f"{LASTING:,} signed creates without a pause beside verify", beside_of(mine, theirs), "x")
