"""Fees and currency conversion from the fixed table."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.kinds import META
from emulator.bank.money import CURRENCIES, RATES, quantum
from tests.unit.payments import world

BANK = world.build()


def test_there_is_a_rate_for_every_currency() -> None:
    assert set(RATES) == set(CURRENCIES)
    assert all(Decimal(rate) > 0 for rate in RATES.values())


def charged(bank: Bank, amount: str, currency: str, account: str, abroad: bool = False, fee: str | None = None) -> Any:
    return bank.exchange.charge(amount, currency, account, abroad, fee).members


def test_conversion_and_crossing_the_border_cost_a_fee_in_the_accounts_currency(bank: Bank) -> None:
    converted = charged(bank, "10.00", "EUR", "NOK")
    assert converted == {"amount": "117.35", "fee": "25.00", "rate": "11.7350"}
    abroad = charged(bank, "10.00", "USD", "NOK", abroad=True)
    assert abroad == {"amount": "106.50", "fee": "75.00", "rate": "10.6500"}
    assert charged(bank, "3.00", "EUR", "NOK")["amount"] == "35.21"  # 35.205, rounded half up
    in_euro = charged(bank, "10.00", "EUR", "EUR", abroad=True)
    assert in_euro == {"amount": "10.00", "fee": "4.26"}  # 50.00 NOK


def test_a_scripted_fee_finer_than_the_currency_is_rounded_half_to_even(bank: Bank) -> None:
    for scripted, fee in (("7.125", "7.12"), ("7.135", "7.14")):
        assert charged(bank, "10.00", "NOK", "NOK", fee=scripted)["fee"] == fee


def test_the_fixtures_table_is_laid_over_the_built_in_one(bank: Bank) -> None:
    bank.documents.put(META, {"id": "exchange", "rates": {"EUR": "12.0000"}, "fees": {"conversion": "1.00"}})
    cost = charged(bank, "10.00", "EUR", "NOK", abroad=True)
    assert cost == {"amount": "120.00", "fee": "51.00", "rate": "12.0000"}


def test_a_currency_without_a_rate_is_refused(bank: Bank) -> None:
    with pytest.raises(BankError) as refused:
        bank.exchange.converted(Decimal(1), "XXX", "NOK")
    assert refused.value.code == "FORMAT_ERROR"


@given(
    amount=st.integers(min_value=1, max_value=10**17),
    source=st.sampled_from(CURRENCIES),
    target=st.sampled_from(CURRENCIES),
)
def test_a_converted_amount_is_exact_in_minor_units_never_nothing_and_within_half_a_unit(
    amount: int, source: str, target: str
) -> None:
    money = Decimal(amount) * quantum(source)
    result, rate = BANK.exchange.converted(money, source, target)
    unit = quantum(target)
    assert result >= unit
    assert result == result.quantize(unit) if result < 10**20 else True
    assert abs(result - money * rate) <= max(unit / 2, unit - money * rate)


def test_what_a_payment_keeps_of_a_quote_is_text(bank: Bank) -> None:
    for _ in range(2):
        converted = bank.exchange.charge("10.00", "EUR", "NOK", True, None)
        assert dict(converted.members) == {"amount": "117.35", "fee": "75.00", "rate": "11.7350"}
        assert (converted.amount, converted.fee) == (Decimal("117.35"), Decimal("75.00"))
        assert dict(bank.exchange.charge("10.00", "NOK", "NOK", False, None).members) == {"amount": "10.00"}
        scripted = bank.exchange.charge("10.00", "NOK", "NOK", False, "0.5").members
        assert dict(scripted) == {"amount": "10.00", "fee": "0.50"}
    bank.documents.put(META, {"id": "exchange", "rates": {"EUR": "12.0000"}})
    assert bank.exchange.charge("10.00", "EUR", "NOK", True, None).members["amount"] == "120.00"
