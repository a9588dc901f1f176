"""Amounts and currencies (requests.md#amounts)."""

from __future__ import annotations

import decimal
import re
from decimal import Decimal

import iso4217
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.shapes.parts import is_amount
from emulator.bank.money import CURRENCIES, MINOR_UNITS, parse_amount, plain, quantize, quantum
from emulator.bank.reference import COUNTRIES, SEPA_COUNTRIES
from tests.cases import cases

# Codes that ISO 4217 does not list today, with the minor units that they had last.
WITHDRAWN = {"ANG": 2, "BGN": 2, "BYR": 0, "CUC": 2, "HRK": 2, "MRO": 2, "SLL": 2, "STD": 2, "VEF": 2, "ZWD": 2}
NEVER_LISTED = {"GGP": 2, "IMP": 2, "JEP": 2, "SPL": 2, "TVD": 2}
WITHOUT_MINOR_UNIT = {"XDR": 5}


def listed_minor_units(code: str) -> int | None:
    try:
        return iso4217.Currency(code).exponent
    except ValueError:
        return None


def test_minor_units_are_those_of_iso_4217_with_the_exceptions_that_the_manual_names():
    listed = {code: listed_minor_units(code) for code in CURRENCIES}
    exceptions = {code: MINOR_UNITS[code] for code, units in listed.items() if units != MINOR_UNITS[code]}
    assert exceptions == WITHDRAWN | NEVER_LISTED | WITHOUT_MINOR_UNIT


def test_the_lists_are_those_of_the_interface():
    assert len(CURRENCIES) == len(set(CURRENCIES)) == 162
    assert len(COUNTRIES) == len(set(COUNTRIES)) == 249
    assert set(COUNTRIES) >= SEPA_COUNTRIES
    assert {"NO", "SE", "DE", "CH", "GB"} <= SEPA_COUNTRIES
    assert not {"US", "TR", "UA"} & SEPA_COUNTRIES


@cases(
    "text, currency, expected",
    [
        ("100", "NOK", 'NOK has exactly 2 digits after the point, such as 100.00; received "100".'),
        ("100.0", "NOK", 'NOK has exactly 2 digits after the point, such as 100.00; received "100.0".'),
        ("100.000", "NOK", 'NOK has exactly 2 digits after the point, such as 100.00; received "100.000".'),
        ("1.00", "BHD", 'BHD has exactly 3 digits after the point, such as 100.000; received "1.00".'),
        ("100.0", "JPY", 'JPY has no fraction, such as 100; received "100.0".'),
        ("1.234567", "XDR", 'XDR has at most 5 digits after the point; received "1.234567".'),
        ("0.00", "NOK", "An amount is greater than 0."),
        ("-1.00", "NOK", 'An amount has no sign; received "-1.00".'),
        ("+1.00", "NOK", 'An amount has no sign; received "+1.00".'),
        ("12345678901234567.00", "NOK", "An amount has at most 18 digits; received 19."),
        *(
            (text, "NOK", None)
            for text in ("", " 1.00", "1.00 ", "1,00", "1 000.00", ".50", "1.", "1e2", "1_0.00", "NaN", "Infinity")
        ),
        ("١.٠٠", "NOK", None),
        ("1.00\n", "NOK", None),
        ("0x1.00", "NOK", None),
    ],
)
def test_other_amounts_are_refused_with_a_sentence(text, currency, expected):
    with pytest.raises(ValueError) as refused:
        parse_amount(text, currency)
    sentence = str(refused.value)
    assert sentence == expected if expected else sentence.startswith("An amount is written as digits")


@given(st.text(alphabet="0123456789.-+eE ,_٣", max_size=22), st.sampled_from(CURRENCIES))
def test_whatever_is_read_has_the_exact_form(text, currency):
    try:
        amount = parse_amount(text, currency)
    except ValueError:
        return
    units = MINOR_UNITS[currency]
    fraction = r"(\.[0-9]{1,5})?" if currency == "XDR" else rf"\.[0-9]{{{units}}}" if units else ""
    assert re.fullmatch(rf"[0-9]+{fraction}", text)
    assert len(text.replace(".", "")) <= 18
    assert amount > 0


AMOUNTS = st.integers(-(10**18), 10**18)


@given(AMOUNTS, st.sampled_from(CURRENCIES))
def test_amounts_come_back_as_they_were_written(units, currency):
    amount = Decimal(units) * quantum(currency)
    written = plain(amount, currency)
    assert Decimal(written) == amount
    assert "E" not in written
    assert len(written.partition(".")[2]) == MINOR_UNITS[currency]
    if amount > 0 and len(written.replace(".", "")) <= 18:
        assert parse_amount(written, currency) == amount


def test_what_is_finer_than_a_minor_unit_is_rounded_half_to_even_and_nothing_is_minus_zero():
    assert plain(Decimal("0.125"), "NOK") == "0.12"
    assert plain(Decimal("0.135"), "NOK") == "0.14"
    assert plain(Decimal("-0.001"), "NOK") == "0.00"
    assert plain(Decimal("-1.5"), "JPY") == "-2"
    assert plain(Decimal("1E+2"), "NOK") == "100.00"
    assert quantize(Decimal("1.005"), "NOK", decimal.ROUND_HALF_UP) == Decimal("1.01")


@given(
    text=st.from_regex(r"[+-]?[0-9]{0,19}\.?[0-9]{0,6}", fullmatch=True) | st.text("0123456789.\u0661 ", max_size=22),
    currency=st.sampled_from(["NOK", "EUR", "JPY", "KWD", "XDR"]),
)
def test_what_is_an_amount_at_a_glance_is_one(text, currency):
    if is_amount({"amount": text, "currency": currency}):
        assert parse_amount(text, currency) > 0


@cases(
    "text, currency, expected",
    [
        ("100.00", "NOK", True),
        ("0.01", "EUR", True),
        ("9" * 16 + ".99", "EUR", True),
        ("1.000", "KWD", True),
        ("9" * 17 + ".99", "EUR", False),
        ("0.00", "NOK", False),
        ("100.00\n", "NOK", False),
        ("1.00", "XXX", False),
        ("1.00", None, False),
        (1.0, "NOK", False),
        ("1.00", ["NOK"], False),
        (b"1.00", "NOK", False),
    ],
)
def test_what_can_be_told_at_a_glance(text, currency, expected):
    assert is_amount({"amount": text, "currency": currency}) is expected


@cases("value", [None, "100.00", 1, [], ["amount", "currency"], {}, {"amount": "1.00"}, {"currency": "NOK"}])
def test_nothing_else_is_an_amount_at_a_glance(value):
    assert not is_amount(value)
