"""Exchanges of the request log as JSON: what a home leaves is read by the next one, and damage is refused."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from emulator.api.log import Exchange, RequestLog
from emulator.api.render import encode
from emulator.api.service import BankService
from emulator.assemble.handover import as_json, memory_read, reader
from emulator.metrics.counts import ProcessCounts
from emulator.scenario.facts import Facts
from tests.api.desk import DeskClient
from tests.known_state import DOMESTIC, KARI, PAYMENT

pytestmark = pytest.mark.inside
OTHERS = (None, True, -1, 5, 10**18, 10**30, 1e300, "", "x", "\ud800", [], ["x"], [["x", "y"]], {}, {"x": 1})

Read = Callable[[int, bytes], Exchange]


@pytest.fixture
def exchanges(service: BankService, tpp: DeskClient) -> list[Exchange]:
    """One of each kind, the oldest first: a payment, a refused signature, an unknown address."""
    tpp.log_in(KARI)
    assert tpp.post(DOMESTIC, json=PAYMENT).status == 201
    assert tpp.get("/v1/accounts", headers={"Signature": "keyId"}).status == 400
    assert tpp.get("/v1/nowhere").status == 404
    return list(service.log.newest())[::-1]


@pytest.fixture
def read(service: BankService) -> Read:
    return reader(service.bank, service.router)


def shown(exchange: Exchange) -> bytes:
    return encode([exchange.summary(), exchange.detail()])


def damaged(value: Any) -> Iterator[Any]:
    """The JSON value with one thing in it missing or of another type, in every way."""
    for other in OTHERS:
        if type(other) is not type(value) or other != value:
            yield other
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield (
                {name: inner for name, inner in value.items() if name != key}
                if isinstance(value, dict)
                else [*value[:key], *value[key + 1 :]]
            )
            for inner in damaged(value[key]):
                copy = value.copy()
                copy[key] = inner
                yield copy


def test_what_one_process_writes_another_shows_alike(exchanges: list[Exchange], read: Read) -> None:
    assert [shown(read(one.id, as_json(one))) for one in exchanges] == [shown(one) for one in exchanges]


def test_a_request_that_another_process_has_answered_is_not_in_the_metrics_of_this_one(
    exchanges: list[Exchange], read: Read
) -> None:
    counts = ProcessCounts()
    for one in exchanges:
        counts.request("default", read(one.id, as_json(one)))
    assert counts.requests.samples() == []
    counts.request("default", exchanges[0])
    assert counts.requests.samples() == [(("default", "createPayment", "201"), 1)]


def test_a_log_goes_on_where_another_has_ended(exchanges: list[Exchange], read: Read) -> None:
    log = RequestLog()
    log.continue_from([read(one.id, as_json(one)) for one in exchanges], 7)
    assert [one.id for one in log.newest()] == [one.id for one in reversed(exchanges)]
    oldest = log.get(str(exchanges[0].id))
    assert oldest is not None
    assert shown(oldest) == shown(exchanges[0])
    assert log.following == 7


def test_a_damaged_exchange_is_refused_or_can_be_shown(exchanges: list[Exchange], read: Read) -> None:
    """Whatever is still read can be shown, filtered and counted."""
    refused = 0
    for exchange in exchanges:
        for value in damaged(json.loads(as_json(exchange))):
            try:
                one = read(1, json.dumps(value).encode())
            except ValueError:
                refused += 1
                continue
            log = RequestLog()
            log.continue_from([one], 2)
            shown(one)
            log.entries(operation="none", status=1, tpp="none", payment_id="none")
            facts = Facts(one.request, one.call, one)
            assert facts.header("none") == facts.query("none") == ()
    assert refused > 500


@pytest.mark.parametrize("stored", [b'{"following":4}', zlib.compress(b'{"following":4}')])
def test_what_a_home_has_left_may_be_uncompressed(stored: bytes) -> None:
    """As in stores of an earlier version."""
    assert memory_read(stored) == {"following": 4}
