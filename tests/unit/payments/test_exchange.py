"""Fees and currency conversion from the fixed table."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.bank.bank import Bank
from emulator.bank.booking.exchange import RATES, Quote, table
from emulator.bank.errors import BankError
from emulator.bank.kinds import META
from emulator.bank.money import CURRENCIES, quantum
from tests.unit.payments import world

BANK = world.build()


def test_there_is_a_rate_for_every_currency_of_the_specification() -> None:
    assert set(RATES) == set(CURRENCIES)
    assert all(Decimal(rate) > 0 for rate in RATES.values())


def test_a_payment_inside_nok_is_free(bank: Bank) -> None:
    for crosses_border in (False, True):
        cost = table(bank).quote(Decimal("100.00"), "NOK", "NOK", crosses_border=crosses_border, scripted=None)
        assert cost == Quote(Decimal("100.00"), Decimal(0), None)


def test_a_sepa_payment_from_an_account_in_eur_is_free(bank: Bank) -> None:
    assert table(bank).quote(Decimal("5.00"), "EUR", "EUR", crosses_border=False, scripted=None) == Quote(
        Decimal("5.00")
    )


def test_conversion_and_crossing_the_border_cost_a_fee_in_the_accounts_currency(bank: Bank) -> None:
    converted = table(bank).quote(Decimal("10.00"), "EUR", "NOK", crosses_border=False, scripted=None)
    assert converted == Quote(Decimal("117.35"), Decimal("25.00"), Decimal("11.7350"))
    abroad = table(bank).quote(Decimal("10.00"), "USD", "NOK", crosses_border=True, scripted=None)
    assert abroad == Quote(Decimal("106.50"), Decimal("75.00"), Decimal("10.65"))
    in_euro = table(bank).quote(Decimal("10.00"), "EUR", "EUR", crosses_border=True, scripted=None)
    assert in_euro == Quote(Decimal("10.00"), Decimal("4.26"), None)  # 50.00 NOK


def test_a_scripted_fee_takes_the_place_of_the_tables(bank: Bank) -> None:
    assert table(bank).quote(Decimal("10.00"), "NOK", "NOK", crosses_border=False, scripted="7.50").fee == Decimal(
        "7.50"
    )
    assert table(bank).quote(Decimal("10.00"), "USD", "NOK", crosses_border=True, scripted="7").fee == Decimal("7.00")


def test_a_scripted_fee_finer_than_the_currency_is_rounded_half_to_even(bank: Bank) -> None:
    for scripted, fee in (("7.125", "7.12"), ("7.135", "7.14")):
        quote = table(bank).quote(Decimal("10.00"), "NOK", "NOK", crosses_border=False, scripted=scripted)
        assert quote.fee == Decimal(fee)


def test_the_fixtures_table_is_laid_over_the_built_in_one(bank: Bank) -> None:
    bank.documents.put(META, {"id": "exchange", "rates": {"EUR": "12.0000"}, "fees": {"conversion": "1.00"}})
    cost = table(bank).quote(Decimal("10.00"), "EUR", "NOK", crosses_border=True, scripted=None)
    assert cost == Quote(Decimal("120.00"), Decimal("51.00"), Decimal("12"))


def test_a_currency_without_a_rate_is_refused(bank: Bank) -> None:
    with pytest.raises(BankError) as refused:
        table(bank).converted(Decimal(1), "XXX", "NOK")
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
    result, rate = table(BANK).converted(money, source, target)
    unit = quantum(target)
    assert result >= unit
    assert result == result.quantize(unit) if result < 10**20 else True
    assert abs(result - money * rate) <= max(unit / 2, unit - money * rate)


def test_what_a_payment_keeps_of_a_quote_is_text(bank: Bank) -> None:
    for _ in range(2):
        converted = table(bank).charge("10.00", "EUR", "NOK", True, None)
        assert dict(converted.members) == {"amount": "117.35", "fee": "75.00", "rate": "11.7350"}
        assert (converted.amount, converted.fee) == (Decimal("117.35"), Decimal("75.00"))
        assert dict(table(bank).charge("10.00", "NOK", "NOK", False, None).members) == {"amount": "10.00"}
        scripted = table(bank).charge("10.00", "NOK", "NOK", False, "0.5").members
        assert dict(scripted) == {"amount": "10.00", "fee": "0.50"}
    bank.documents.put(META, {"id": "exchange", "rates": {"EUR": "12.0000"}})
    assert table(bank).charge("10.00", "EUR", "NOK", True, None).members["amount"] == "120.00"
