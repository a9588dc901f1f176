"""Amounts and currencies (requests.md#amounts): decimal text with exactly the minor units of its currency."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation

from emulator.bank.errors import quoted

_LISTED = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN
    BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYR BZD
    CAD CDF CHF CLP CNY COP CRC CUC CUP CVE CZK
    DJF DKK DOP DZD
    EGP ERN ETB EUR
    FJD FKP
    GBP GEL GGP GHS GIP GMD GNF GTQ GYD
    HKD HNL HRK HTG HUF
    IDR ILS IMP INR IQD IRR ISK
    JEP JMD JOD JPY
    KES KGS KHR KMF KPW KRW KWD KYD KZT
    LAK LBP LKR LRD LSL LYD
    MAD MDL MGA MKD MMK MNT MOP MRO MUR MVR MWK MXN MYR MZN
    NAD NGN NIO NOK NPR NZD
    OMR
    PAB PEN PGK PHP PKR PLN PYG
    QAR
    RON RSD RUB RWF
    SAR SBD SCR SDG SEK SGD SHP SLL SOS SPL SRD STD SVC SYP SZL
    THB TJS TMT TND TOP TRY TTD TVD TWD TZS
    UAH UGX USD UYU UZS
    VEF VND VUV
    WST
    XAF XCD XDR XOF XPF
    YER
    ZAR ZMW ZWD
"""
CURRENCIES = tuple(_LISTED.split())

# ISO 4217, historical codes as last listed: BYR had none. All other codes have 2, also those that ISO never listed
# (GGP IMP JEP SPL TVD), and MGA and MRO, whose fifths are listed as 2 digits.
_BY_MINOR_UNITS = {
    0: "BIF BYR CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    5: "XDR",
}
_OTHER_MINOR_UNITS = {currency: units for units, listed in _BY_MINOR_UNITS.items() for currency in listed.split()}
MINOR_UNITS: Mapping[str, int] = {currency: _OTHER_MINOR_UNITS.get(currency, 2) for currency in CURRENCIES}
FEWEST_DIGITS: Mapping[str, int] = {**MINOR_UNITS, "XDR": 0}  # ISO gives XDR no minor unit: 0 to 5
MOST_DIGITS = 18  # digits of an amount, including those of the fraction

_AMOUNT = re.compile(r"([0-9]+)(?:\.([0-9]+))?", re.ASCII)
# Enough precision for any sum of amounts of 18 digits, independent of the thread's own context.
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation])
_QUANTA = {units: Decimal(1).scaleb(-units, _EXACT) for units in (0, 2, 3, 5)}
_QUANTUM = {currency: _QUANTA[units] for currency, units in MINOR_UNITS.items()}


def quantum(currency: str) -> Decimal:
    """The smallest amount of a currency, such as 0.01 for NOK; five decimals for XDR."""
    return _QUANTUM[currency]


def quantize(amount: Decimal, currency: str, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """`amount` in whole minor units of its currency, rounded half to even by default."""
    return amount.quantize(_QUANTUM[currency], rounding, _EXACT)


def plain(amount: Decimal, currency: str) -> str:
    """`amount` as decimal text with exactly the minor units of its currency, never an exponent and never `-0`.

    Further digits are rounded half to even; XDR has 5 decimals (assumed; up to 5 are allowed).
    """
    exact = amount.quantize(_QUANTUM[currency], ROUND_HALF_EVEN, _EXACT)
    return format(exact if exact else abs(exact), "f")


def too_fine(text: str, currency: str) -> str | None:
    """The error text for a decimal text that `plain` would round, else None; trailing zeros are ignored."""
    units = MINOR_UNITS[currency]
    if len(text.partition(".")[2].rstrip("0")) <= units:
        return None
    return f"{currency} has at most {units} digits after the point."


def parse_amount(text: str, currency: str) -> Decimal:
    """The amount in `text`; ValueError says what is wrong.

    Digits with an optional fraction, no sign, greater than 0, exactly the minor units of the currency, 18 digits at
    most, including those of the fraction and leading zeros.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(_not_an_amount(text))
    whole, fraction = match.group(1), match.group(2) or ""
    if not FEWEST_DIGITS[currency] <= len(fraction) <= MINOR_UNITS[currency]:
        raise ValueError(_wrong_units(text, currency))
    if len(whole) + len(fraction) > MOST_DIGITS:
        raise ValueError(f"An amount has at most {MOST_DIGITS} digits; received {len(whole) + len(fraction)}.")
    amount = _EXACT.create_decimal(text)
    if not amount:
        raise ValueError("An amount is greater than 0.")
    return amount


def _not_an_amount(text: str) -> str:
    if text[:1] in ("-", "+"):
        return f"An amount has no sign; received {quoted(text)}."
    return f'An amount is written as digits with an optional fraction, such as "100.00"; received {quoted(text)}.'


def _wrong_units(text: str, currency: str) -> str:
    units = MINOR_UNITS[currency]
    if currency == "XDR":
        expected = "XDR has at most 5 digits after the point"
    elif units == 0:
        expected = f"{currency} has no fraction, such as 100"
    else:
        expected = f"{currency} has exactly {units} digits after the point, such as {'100.'.ljust(4 + units, '0')}"
    return f"{expected}; received {quoted(text)}."
