"""Balances of accounts and cards."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from emulator.api.operations.accounts import balances_shown, related_account
from emulator.bank.accounts import accounts, ledger
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT, CARD, TRANSACTION
from emulator.bank.payment import progression
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.threads import run_to_end
from tests.unit.accounts.conftest import SALARY, account


def amounts(balances: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: str(amount) for name, amount in balances.items()}


def test_expected_includes_what_is_pending_and_available_what_is_reserved_and_the_credit_line(bank: Bank) -> None:
    holder = account(bank, SALARY)
    assert amounts(accounts.balances(bank, holder)) == {
        "closingBooked": "184312.50",
        "expected": "184442.50",
        "interimAvailable": "184093.50",
    }
    ledger.reserve(bank, holder["id"], Decimal("312.50"))
    changed = account(bank, SALARY)
    bank.documents.put(ACCOUNT, {**changed, "creditLine": "1000.00"})
    assert amounts(accounts.balances(bank, account(bank, SALARY))) == {
        "closingBooked": "184312.50",
        "expected": "184442.50",
        "interimAvailable": "184781.00",
    }


def test_a_balance_names_its_day_and_the_last_change(bank: Bank) -> None:
    holder = account(bank, SALARY)
    ledger.book(bank, holder["id"], {"amount": Decimal("-1.00")})
    changed = account(bank, SALARY)
    assert balances_shown(bank, changed, accounts.balances(bank, changed))[0] == {
        "balanceAmount": {"amount": "184311.50", "currency": "NOK"},
        "balanceType": "closingBooked",
        "referenceDate": "2026-03-02",
        "lastChangeDateTime": "2026-03-02T08:00:00+00:00",
    }


def test_a_card_may_still_spend_its_limit_less_what_is_owed_and_pending(bank: Bank) -> None:
    card = next(iter(bank.documents.all(CARD)))
    assert amounts(accounts.card_balances(bank, card)) == {
        "closingBooked": "-6412.85",
        "expected": "-6871.85",
        "forwardAvailable": "43128.15",
    }


def test_the_related_account_of_a_card_is_what_a_payment_from_it_names(bank: Bank) -> None:
    card = next(iter(bank.documents.all(CARD)))
    assert related_account(bank, card["accountNumber"]) == {
        "bban": "99901000014",
        "iban": "NO8599901000014",
        "currency": "NOK",
        "other": {"identification": "99901000014", "schemeNameProprietary": "creditCardAccount"},
    }
    assert related_account(bank, "123412341234") == {
        "bban": "123412341234",
        "other": {"identification": "123412341234", "schemeNameProprietary": "creditCardAccount"},
    }


def test_a_pending_item_holds_its_money_until_it_is_booked_or_removed(bank: Bank) -> None:
    """It lowers interimAvailable like any other; what is to come raises nothing."""
    holder = account(bank, SALARY)
    pending = bank.documents.range(TRANSACTION, "shelf", group=f"{holder['id']}|pending")
    leaving = -sum(Decimal(item["amount"]) for item in pending if Decimal(item["amount"]) < 0)
    assert leaving == Decimal("219.00") == Decimal(holder["reserved"])
    assert run_to_end(ledger.reporting(bank))["balanced"]
    for item in pending:
        bank.documents.put(TRANSACTION, {**item, "due": bank.clock.stamp()})
    progression.run_due(bank)
    booked = account(bank, SALARY)
    assert (booked["reserved"], booked["booked"]) == ("0.00", "184442.50")
    assert run_to_end(ledger.reporting(bank))["balanced"]


def test_deleting_transactions_gives_back_what_pending_items_hold(bank: Bank) -> None:
    run_to_end(sandbox_accounts.deleting_transactions(bank, ACCOUNT, account(bank, SALARY)["id"]))
    assert account(bank, SALARY)["reserved"] == "0.00"
    assert run_to_end(ledger.reporting(bank))["balanced"]
