"""Norwegian numbers and the IBAN."""

from __future__ import annotations

import random
import re
from datetime import date

from hypothesis import given
from hypothesis import strategies as st
from stdnum import iban as stdnum_iban
from stdnum import luhn
from stdnum.no import fodselsnummer, kontonr, orgnr

from emulator.bank.reference import (
    BANK_CODES,
    iban_of,
    is_account_number,
    is_iban,
    is_kid,
    is_national_number,
    kid_mod_10,
    kid_mod_11,
    synthetic_account_number,
    synthetic_national_number,
    synthetic_organisation_number,
)
from tests.cases import cases

DIGITS = st.text(alphabet="0123456789", min_size=1, max_size=26)
NOT_QUITE_DIGITS = st.text(alphabet="0123456789 .-٣²", max_size=27)
SEEDS = st.integers(0, 2**32)


@given(NOT_QUITE_DIGITS)
def test_an_account_number_is_exactly_11_ascii_digits(text):
    assert re.fullmatch("[0-9]{11}", text) or not is_account_number(text)


@given(st.integers(1000, 9999), st.integers(0, 10**6 - 1))
def test_account_numbers_are_those_that_stdnum_knows(bank, number):
    """Of the ten numbers with these first ten digits."""
    texts = [f"{bank}{number:06}{check}" for check in range(10)]
    assert [is_account_number(text) for text in texts] == [kontonr.is_valid(text) for text in texts]


@given(st.integers(0, 10**11 - 1))
def test_the_iban_of_an_account_has_right_check_digits(number):
    iban = iban_of(f"{number:011}")
    assert stdnum_iban.is_valid(iban, check_country=False)
    assert is_iban(iban)


@cases("text", ["NO8599901000014", "DE19999999990000123456", "GB82WEST12345698765432", "FR8199999000010123456789A00"])
def test_ibans_with_right_length_and_check_digits_are_accepted(text):
    assert is_iban(text)
    assert not is_iban(text[:-1] + ("0" if text[-1] != "0" else "1"))


@cases(
    "text",
    [
        "",
        "NO",
        "NO85 9990 1000 014",
        "no8599901000014",
        "NO859990100001",
        "NO85999010000144",
        "XX8599901000014",
        "NO８５99901000014",
        "NO8599901000014\n",
        "US64SVBKUS6S3300958879",
    ],
)
def test_other_texts_are_no_iban(text):
    assert not is_iban(text)


def test_check_digits_that_are_never_given_out_are_refused():
    """98 and 01 leave the same remainder; only 02 to 98 are check digits."""
    number = next(f"{n:011}" for n in range(1000) if iban_of(f"{n:011}").startswith("NO98"))
    assert is_iban(f"NO98{number}")
    assert not is_iban(f"NO01{number}")


@given(DIGITS)
def test_a_reference_with_either_check_digit_is_a_kid_of_2_to_25_characters(digits):
    assert luhn.calc_check_digit(digits) == kid_mod_10(digits)
    for check in (kid_mod_10(digits), kid_mod_11(digits)):
        assert is_kid(digits + check) is (len(digits) <= 24)


@given(SEEDS)
def test_the_mod_11_digit_of_ten_digits_is_that_of_an_account_number(seed):
    account = synthetic_account_number(random.Random(seed).randrange)
    assert kid_mod_11(account[:10]) == account[10]


@given(NOT_QUITE_DIGITS)
def test_a_kid_is_digits_and_perhaps_a_final_hyphen(text):
    if is_kid(text):
        assert 2 <= len(text) <= 25
        assert text.isascii()
        assert text[:-1].isdigit()
        assert text[-1].isdigit() or text[-1] == "-"


@given(st.dates(date(1940, 1, 1), date(2039, 12, 31)), st.integers(0, 10**5 - 1), st.booleans())
def test_every_identity_number_that_stdnum_knows_is_one(born, rest, d_number):
    day = born.day + 40 if d_number else born.day
    text = f"{day:02}{born:%m%y}{rest:05}"
    if fodselsnummer.is_valid(text):
        assert is_national_number(text)


@cases("added", [0, 40, 65, 80])
def test_the_synthetic_series_count_with_both_check_digits(added):
    nines = (f"01{added + 1:02}80{individual:03}" for individual in range(30))
    numbers = [
        nine + f"{check:02}" for nine in nines for check in range(100) if is_national_number(nine + f"{check:02}")
    ]
    assert numbers
    for number in numbers[:20]:
        assert not any(is_national_number(number[:9] + f"{c:02}") for c in range(100) if f"{c:02}" != number[9:])


@cases("text", ["", "14888520059 ", "1488852005", "00018012332", "32018012323", "79018012370", "81018012359"])
def test_numbers_without_a_day_of_a_month_are_no_identity_numbers(text):
    assert not is_national_number(text)


@given(SEEDS)
def test_generated_numbers_are_valid_and_synthetic(seed):
    below = random.Random(seed).randrange
    person = synthetic_national_number(below)
    assert is_national_number(person)
    assert int(person[2:4]) > 80
    assert not fodselsnummer.is_valid(person)  # nobody has it
    organisation = synthetic_organisation_number(below)
    assert orgnr.is_valid(organisation)
    account = synthetic_account_number(below, BANK_CODES[seed % 4])
    assert kontonr.is_valid(account)
    assert account[:4] == BANK_CODES[seed % 4]
