"""What a home leaves is what the next one shows; what is damaged is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest

from emulator.api.log import Exchange
from emulator.api.render import encode
from emulator.api.service import BankService
from emulator.assemble.handover import memory_of, memory_read, remember
from emulator.metrics.counts import ProcessCounts
from tests.api.desk import DeskClient
from tests.known_state import DOMESTIC, KARI, PAYMENT

pytestmark = pytest.mark.inside


@pytest.fixture
def exchanges(service: BankService, tpp: DeskClient) -> list[Exchange]:
    """One of each kind, the oldest first: a payment, a refused signature, an unknown address."""
    tpp.log_in(KARI)
    assert tpp.post(DOMESTIC, json=PAYMENT).status == 201
    assert tpp.get("/v1/accounts", headers={"Signature": "keyId"}).status == 400
    assert tpp.get("/v1/nowhere").status == 404
    return list(service.log.newest())[::-1]


@pytest.fixture
def left(service: BankService, exchanges: list[Exchange]) -> bytes:
    """What a home leaves."""
    assert exchanges
    return memory_of(service)


@pytest.fixture
def read(service: BankService, left: bytes) -> list[Exchange]:
    """The exchanges that the next home has, the oldest first."""
    service.log.clear()
    remember(service, left)
    return list(service.log.newest())[::-1]


def shown(exchange: Exchange) -> bytes:
    return encode([exchange.summary(), exchange.detail()])


def test_what_one_process_writes_another_shows_alike(exchanges: list[Exchange], read: list[Exchange]) -> None:
    assert [shown(one) for one in read] == [shown(one) for one in exchanges]


def test_a_header_that_is_not_utf_8_is_left_too(service: BankService, tpp: DeskClient) -> None:
    tpp.get("/v1/nowhere", headers={"X-Odd": "\udc80"})
    (one,) = service.log.newest()
    left = memory_of(service)
    service.log.clear()
    remember(service, left)
    (read,) = service.log.newest()
    assert read.request == one.request


def test_a_request_that_another_process_has_answered_is_not_in_the_metrics_of_this_one(
    exchanges: list[Exchange], read: list[Exchange]
) -> None:
    counts = ProcessCounts()
    for one in read:
        counts.request("default", one)
    assert counts.requests.samples() == []
    counts.request("default", exchanges[0])
    assert counts.requests.samples() == [(("default", "createPayment", "201"), 1)]


def test_a_log_goes_on_where_another_has_ended(service: BankService, exchanges: list[Exchange], left: bytes) -> None:
    following = service.log.following
    service.log.continue_from([], 1)
    service.log.clear()
    remember(service, left)
    assert [one.id for one in service.log.newest()] == [one.id for one in reversed(exchanges)]
    oldest = service.log.get(str(exchanges[0].id))
    assert oldest is not None
    assert shown(oldest) == shown(exchanges[0])
    assert service.log.following == following


def test_what_is_damaged_is_refused(left: bytes) -> None:
    whole = memory_read(left)
    for place in range(len(left)):
        with pytest.raises(ValueError):
            memory_read(left[:place])
        with suppress(ValueError):  # a reference to another place where the same stands does no harm
            assert memory_read(b"%b%c%b" % (left[:place], left[place] ^ 0xFF, left[place + 1 :])) == whole


def test_what_another_version_has_left_is_left_out(
    service: BankService, left: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service.log.clear()
    monkeypatch.setattr("emulator.assemble.handover.FORM", 0)
    remember(service, left)
    assert list(service.log.newest()) == []
    assert "another version of this program" in caplog.text
