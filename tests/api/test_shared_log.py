"""The request log that processes share: what is stored comes back, and a damaged exchange is left out."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from emulator.api.shared_log import SharedRequestLog, as_json, reader

from emulator.api.log import Exchange
from emulator.api.render import encode
from emulator.api.service import BankService
from emulator.assemble.registry import BankRegistry
from emulator.scenario.matching import Facts
from tests.api.desk import DeskClient
from tests.known_state import DOMESTIC, KARI, PAYMENT

pytestmark = pytest.mark.inside
OTHERS = (None, True, -1, 5, 10**18, 10**30, 1e300, "", "x", "\ud800", [], ["x"], [["x", "y"]], {}, {"x": 1})


@pytest.fixture
def exchanges(service: BankService, tpp: DeskClient) -> list[Exchange]:
    """One of each kind, the oldest first: a payment, a refused signature, an unknown address."""
    tpp.log_in(KARI)
    assert tpp.post(DOMESTIC, json=PAYMENT).status == 201
    assert tpp.get("/v1/accounts", headers={"Signature": "keyId"}).status == 400
    assert tpp.get("/v1/nowhere").status == 404
    return list(service.log.newest())[::-1]


@pytest.fixture
def log(registry: BankRegistry, service: BankService) -> SharedRequestLog:
    """The log of another process."""
    return SharedRequestLog(service.bank.documents, lambda: None, reader(service.bank, registry._router), lambda: None)


def shown(exchanges: Iterator[Exchange]) -> list[bytes]:
    return [encode([exchange.summary(), exchange.detail()]) for exchange in exchanges]


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


def test_what_is_stored_comes_back(exchanges: list[Exchange], log: SharedRequestLog) -> None:
    log.merge([(exchange.id, as_json(exchange)) for exchange in exchanges])
    assert shown(log.newest()) == shown(reversed(exchanges))


def test_a_damaged_exchange_is_left_out_and_no_other(
    service: BankService, exchanges: list[Exchange], log: SharedRequestLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is still read can be shown, filtered and counted."""
    intact = [(exchange.id, as_json(exchange)) for exchange in exchanges]
    left_out = 0
    for _, body in intact:
        for number, value in enumerate(damaged(json.loads(body)), 100):
            caplog.clear()
            log.merge([*intact, (number, json.dumps(value).encode())])
            lines = [record.getMessage() for record in caplog.records]
            if log.get(str(number)) is None:
                left_out += 1
                [line] = lines
                assert line.startswith(f"the exchange {number} of the request log is damaged and is left out: ")
                assert "\n" not in line
            assert len(log.entries()) == len(intact) + (not lines)
            shown(log.newest())
            log.entries(operation="none", status=1, tpp="none", payment_id="none")
            facts = [Facts(exchange.request, exchange.call, exchange) for exchange in log.newest()]
            assert all(fact.header("none") == fact.query("none") == () for fact in facts)
    assert left_out > 500


def test_a_damaged_exchange_is_logged_once(log: SharedRequestLog, caplog: pytest.LogCaptureFixture) -> None:
    for body in (b"{}", None, None):
        log.merge([(7, body)])
        assert log.known() == [7]
    assert len(caplog.records) == 1
    assert caplog.records[0].levelno == logging.WARNING
    log.merge([])
    assert log.known() == []
