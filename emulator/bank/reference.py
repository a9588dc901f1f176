"""Reference data: Norwegian numbers with their check digits (accounts, KID, persons, organisations), IBANs, countries.

IBANs are checked with python-stdnum. Its check of account numbers also accepts 7 digits and separators, and its check
of identity numbers refuses the synthetic series, so these two are implemented here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import lru_cache

Below = Callable[[int], int]  # a random whole number from 0 to one below its argument: random.Random(...).randrange

BANK_CODES = ("9990", "9991", "9992", "9993")  # the emulator's own; no bank has them
_SYNTHETIC_MONTHS = 80  # the synthetic series adds 80 to the month

_ELEVEN_DIGITS = re.compile(r"[0-9]{11}", re.ASCII)
_KID = re.compile(r"[0-9]{1,24}[0-9-]", re.ASCII)
_IBAN = re.compile(r"[A-Z]{2}(?:0[2-9]|[1-8][0-9]|9[0-8])[0-9A-Z]{11,30}", re.ASCII)

_ACCOUNT_WEIGHTS = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
_ORGANISATION_WEIGHTS = (3, 2, 7, 6, 5, 4, 3, 2)
_PERSON_FIRST = (3, 7, 6, 1, 8, 9, 4, 5, 2)
_PERSON_SECOND = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
# Added to the month: 0 for real persons, 80 for the tax administration's synthetic persons, 40 and 65 in test series.
_MONTH_SERIES = (0, 80, 40, 65)


def _mod_11(digits: str, weights: Sequence[int]) -> str | None:
    """The MOD-11 check digit of `digits`, None if it would be 10."""
    rest = -sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True)) % 11
    return None if rest == 10 else str(rest)


# accounts


def is_account_number(text: str) -> bool:
    """Whether these are the 11 digits of a Norwegian account number, with a valid MOD-11 digit."""
    return _ELEVEN_DIGITS.fullmatch(text) is not None and _mod_11(text[:10], _ACCOUNT_WEIGHTS) == text[10]


def iban_of(bban: str) -> str:
    """The Norwegian IBAN of 11 digits; their own check digit is not checked."""
    check = 98 - int(f"{bban}232400") % 97  # N is 23, O is 24
    return f"NO{check:02}{bban}"


@lru_cache(maxsize=4096)
def is_iban(text: str) -> bool:
    """Whether this is an IBAN without blanks, with valid mod-97 digits and the length of its country.

    Capital letters only. The check digit of the account number inside is not checked.
    """
    if _IBAN.fullmatch(text) is None:
        return False
    from stdnum import iban  # only on use, to keep the start fast

    return bool(iban.is_valid(text, check_country=False))


def synthetic_account_number(below: Below, bank_code: str = BANK_CODES[0]) -> str:
    """A random valid account number of one of the emulator's bank codes."""
    while True:
        digits = f"{bank_code}{below(10**6):06}"
        check = _mod_11(digits, _ACCOUNT_WEIGHTS)
        if check is not None:
            return digits + check


# payment references


def is_kid(text: str) -> bool:
    """Whether this is a KID: 2 to 25 characters that end in a MOD-10 or MOD-11 check digit (payments.md#kid).

    `-` is the MOD-11 digit 10.
    """
    return _KID.fullmatch(text) is not None and text[-1] in (kid_mod_10(text[:-1]), kid_mod_11(text[:-1]))


def kid_mod_10(digits: str) -> str:
    """The MOD-10 (Luhn) check digit of a KID's other digits."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def kid_mod_11(digits: str) -> str:
    """The MOD-11 check digit of a KID's other digits (weights 2 to 7 from the right), `-` for 10."""
    weights = [2 + place % 6 for place in range(len(digits))]
    return _mod_11(digits[::-1], weights) or "-"


# persons


def is_national_number(text: str) -> bool:
    """Whether this is a Norwegian identity number or D-number: a day of a month, and both check digits.

    Numbers of the synthetic series (month + 80, also + 40 and + 65) are accepted: a sandbox has no real persons.
    """
    if _ELEVEN_DIGITS.fullmatch(text) is None or _person_digits(text[:9]) != text[9:]:
        return False
    day, month = int(text[:2]), int(text[2:4])
    return (1 <= day <= 31 or 41 <= day <= 71) and any(1 <= month - added <= 12 for added in _MONTH_SERIES)


def _person_digits(nine: str) -> str | None:
    first = _mod_11(nine, _PERSON_FIRST)
    second = _mod_11(nine + first, _PERSON_SECOND) if first is not None else None
    return first + second if first is not None and second is not None else None


def synthetic_national_number(below: Below) -> str:
    """A random identity number of the synthetic series (month + 80), with a birth date from 1940 to 1999."""
    first_day = date(1940, 1, 1)
    days = (date(2000, 1, 1) - first_day).days
    while True:
        born = first_day + timedelta(days=below(days))
        nine = f"{born.day:02}{born.month + _SYNTHETIC_MONTHS:02}{born.year % 100:02}{below(500):03}"
        check = _person_digits(nine)
        if check is not None:
            return nine + check


# organisations


def synthetic_organisation_number(below: Below) -> str:
    """A random valid organisation number that begins with 3, which only test organisations do."""
    while True:
        digits = f"3{below(10**7):07}"
        check = _mod_11(digits, _ORGANISATION_WEIGHTS)
        if check is not None:
            return digits + check


# countries: ISO 3166-1 alpha-2 codes, and those of the SEPA scheme (requests.md#addresses)

_LISTED = """
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
    CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO
    FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE
    JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO
    MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW
    PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM
    TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
"""
COUNTRIES = tuple(_LISTED.split())

# Countries of the scheme, by the first two letters of the IBAN (assumed: the members of 2025, including territories
# with their own IBAN; French overseas accounts begin with FR).
_SEPA = """
    AD AL AT BE BG CH CY CZ DE DK EE ES FI FR GB GG GI GR HR HU IE IM IS IT JE LI LT LU LV
    MC MD ME MK MT NL NO PL PT RO RS SE SI SK SM VA
"""
SEPA_COUNTRIES = frozenset(_SEPA.split())
