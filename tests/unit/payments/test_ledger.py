"""The ledger: balances follow from bookings, reservations from what payments hold."""

from __future__ import annotations

from decimal import Decimal

import pytest

from emulator.bank.accounts import ledger
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, TRANSACTION
from emulator.bank.threads import run_to_end
from tests.unit.payments.world import DOMESTIC, advance, domestic, entries, give, money, paid


def _account(bank: Bank, account_id: str = "kari") -> dict[str, str]:
    return bank.documents.get(ACCOUNT, account_id) or {}


def test_available_is_booked_less_reserved_with_the_credit_line() -> None:
    account = {"booked": "100.00", "reserved": "30.00", "creditLine": "50.00"}
    assert ledger.available(account) == Decimal("120.00")


def test_booking_changes_the_balance_and_shelves_the_transaction_by_its_booking_date(bank: Bank) -> None:
    entry = ledger.book(bank, "kari", {"amount": "-12.5", "creditorName": "Kaffekannen"})
    assert money(bank, "kari") == (Decimal("9987.50"), 0)
    assert entry == bank.documents.get(TRANSACTION, entry["id"])
    assert (entry["amount"], entry["currency"], entry["status"]) == ("-12.50", "NOK", "booked")
    assert (entry["bookingDate"], entry["valueDate"]) == ("2026-03-02", "2026-03-02")
    assert entry["shelf"] == "kari|booked"
    assert entry["order"] == f"2026-03-02|{bank.clock.stamp()}"
    assert _account(bank)["lastChange"] == bank.clock.stamp()


def test_a_transaction_near_midnight_is_booked_on_the_oslo_date(bank: Bank) -> None:
    entry = ledger.book(bank, "kari", {"amount": "1.00"}, at="2026-03-02T23:30:00.000000+00:00")
    assert entry["bookingDate"] == "2026-03-03"


def test_a_pending_transaction_moves_no_money_and_keeps_its_id_when_it_is_booked(bank: Bank) -> None:
    ledger.reserve(bank, "kari", Decimal("20.00"))
    pending = ledger.pend(bank, "kari", {"amount": "-20.00"})
    assert money(bank, "kari") == (Decimal("10000.00"), Decimal("20.00"))
    assert [entry["id"] for entry in entries(bank, "kari", "pending")] == [pending]
    ledger.book(bank, "kari", {"amount": "-20.00"}, pending=pending, released=Decimal("20.00"))
    assert money(bank, "kari") == (Decimal("9980.00"), 0)
    assert entries(bank, "kari", "pending") == []
    assert [entry["id"] for entry in entries(bank, "kari")] == [pending]


def test_an_unknown_account_is_refused(bank: Bank) -> None:
    with pytest.raises(BankError) as refused:
        ledger.book(bank, "nobody", {"amount": "1.00"})
    assert refused.value.code == "RESOURCE_UNKNOWN"


def test_a_fixtures_pending_transaction_is_booked_at_its_moment(bank: Bank) -> None:
    pending = ledger.pend(bank, "kari", {"amount": "-219.00", "creditorName": "Blomsterbua"})
    document = bank.documents.get(TRANSACTION, pending) or {}
    bank.documents.put(TRANSACTION, {**document, "due": "2026-03-03T05:00:00.000000+00:00"})
    advance(bank, hours=12)
    assert entries(bank, "kari") == []
    advance(bank, days=7)
    (booked,) = entries(bank, "kari")
    assert (booked["id"], booked["bookingDate"], booked["creditorName"]) == (pending, "2026-03-03", "Blomsterbua")
    assert "due" not in booked
    assert money(bank, "kari")[0] == Decimal("9781.00")


def test_restating_a_balance_changes_the_opening_balance_with_it(bank: Bank) -> None:
    give(bank, "kari", "5.00")
    ledger.restate(bank, "kari", Decimal(0))
    assert (_account(bank)["opening"], _account(bank)["booked"]) == ("-5.00", "0.00")
    assert run_to_end(ledger.reporting(bank))["balanced"]


def test_forgetting_transactions_keeps_the_balance(bank: Bank) -> None:
    give(bank, "kari", "5.00")
    ledger.forget_oldest(bank, "kari", 250)
    assert money(bank, "kari")[0] == Decimal("10005.00")
    assert entries(bank, "kari") == []
    assert run_to_end(ledger.reporting(bank))["balanced"]


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
    ledger.reserve(bank, "kari", Decimal(1), at="2026-03-01T12:00:00.000000+00:00")
    assert _account(bank)["lastChange"] == "2026-03-01T12:00:00.000000+00:00"
    ledger.release(bank, "kari", Decimal(1))
    assert (_account(bank)["lastChange"], _account(bank)["reserved"]) == (bank.clock.stamp(), "0.00")
