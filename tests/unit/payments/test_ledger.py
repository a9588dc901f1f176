"""The ledger: balances follow from bookings, reservations from what payments hold."""

from __future__ import annotations

from decimal import Decimal

import pytest

from emulator.bank.accounts import ledger
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT
from emulator.bank.threads import run_to_end
from tests.unit.payments.world import DOMESTIC, advance, domestic, paid


def _account(bank: Bank, account_id: str = "kari") -> dict[str, str]:
    return bank.documents.get(ACCOUNT, account_id) or {}


def test_available_is_booked_less_reserved_with_the_credit_line() -> None:
    account = {"booked": "100.00", "reserved": "30.00", "creditLine": "50.00"}
    assert ledger.available(account) == Decimal("120.00")


def test_a_transaction_near_midnight_is_booked_on_the_oslo_date(bank: Bank) -> None:
    entry = ledger.book(bank, "kari", {"amount": "1.00"}, at="2026-03-02T23:30:00.000000+00:00")
    assert entry["bookingDate"] == "2026-03-03"


def test_the_report_has_the_shape_that_tools_read(bank: Bank) -> None:
    paid(bank, DOMESTIC, domestic("100.00", to="99901100019"))
    advance(bank, seconds=3)
    paid(bank, DOMESTIC, domestic("30.00"))
    report = run_to_end(ledger.reporting(bank))
    assert set(report) == {"balanced", "accounts", "totals"}
    assert report["balanced"] is True
    assert report["accounts"][0] == {
        "accountId": "kari",
        "iban": "NO8599901000014",
        "currency": "NOK",
        "opening": "10000.00",
        "bookings": "-100.00",
        "reserved": "30.00",
        "balance": "9900.00",
    }
    assert report["totals"] == {"NOK": "61500.00", "EUR": "800.00"}


@pytest.mark.parametrize("member", ["booked", "reserved"])
def test_the_report_notices_a_balance_that_nothing_explains(bank: Bank, member: str) -> None:
    bank.documents.put(ACCOUNT, {**_account(bank), member: "1.00"})
    assert run_to_end(ledger.reporting(bank))["balanced"] is False


def test_a_reservation_changes_the_account_at_its_own_moment(bank: Bank) -> None:
    with bank.clock.standing_at("2026-03-01T12:00:00.000000+00:00"):
        ledger.reserve(bank, "kari", Decimal(1))
    assert _account(bank)["lastChange"] == "2026-03-01T12:00:00.000000+00:00"
    ledger.release(bank, "kari", Decimal(1))
    assert (_account(bank)["lastChange"], _account(bank)["reserved"]) == (bank.clock.stamp(), "0.00")
