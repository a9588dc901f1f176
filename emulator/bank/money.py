"""Amounts and currencies (requests.md#amounts), fees and conversion (payments.md#fees-and-currency-conversion).

An amount is decimal text with exactly the minor units of its currency. The rates and fees are invented and constant, so
that a test sees the same amount every day; `meta/exchange` of a fixture (`{rates: {...}, fees: {...}}`) overrides them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NamedTuple

from emulator.bank.documents import Price
from emulator.bank.errors import BankError, quoted

# NOK for one unit of the currency, for every currency of the interface.
_QUOTED = """
    AED=2.9000 AFN=0.1500 ALL=0.1150 AMD=0.0275 ANG=5.9500 AOA=0.0116 ARS=0.0107 AUD=7.0000 AWG=5.9200 AZN=6.2700
    BAM=6.0000 BBD=5.3300 BDT=0.0893 BGN=6.0000 BHD=28.2700 BIF=0.0036 BMD=10.6500 BND=7.9700 BOB=1.5400 BRL=1.8700
    BSD=10.6500 BTN=0.1250 BWP=0.7800 BYR=0.000325 BZD=5.2900
    CAD=7.7500 CDF=0.0037 CHF=12.0500 CLP=0.0112 CNY=1.4700 COP=0.0026 CRC=0.0209 CUC=10.6500 CUP=0.4438 CVE=0.1064
    CZK=0.4680 DJF=0.0599 DKK=1.5730 DOP=0.1780 DZD=0.0793 EGP=0.2140 ERN=0.7100 ETB=0.0830 EUR=11.7350 FJD=4.6800
    FKP=13.7000 GBP=13.7000 GEL=3.9000 GGP=13.7000 GHS=0.7200 GIP=13.7000 GMD=0.1510 GNF=0.00123 GTQ=1.3800 GYD=0.0509
    HKD=1.3660 HNL=0.4200 HRK=1.5575 HTG=0.0810 HUF=0.0292 IDR=0.00065 ILS=2.9300 IMP=13.7000 INR=0.1250 IQD=0.00813
    IRR=0.000253 ISK=0.0775 JEP=13.7000 JMD=0.0675 JOD=15.0200 JPY=0.0710 KES=0.0824 KGS=0.1218 KHR=0.00265 KMF=0.02385
    KPW=0.01183 KRW=0.0077 KWD=34.6500 KYD=12.7800 KZT=0.0214 LAK=0.00049 LBP=0.000119 LKR=0.0357 LRD=0.0533 LSL=0.5800
    LYD=2.2000 MAD=1.0700 MDL=0.6000 MGA=0.0023 MKD=0.1907 MMK=0.00507 MNT=0.0031 MOP=1.3260 MRO=0.0267 MUR=0.2320
    MVR=0.6910 MWK=0.00614 MXN=0.5750 MYR=2.4000 MZN=0.1667 NAD=0.5800 NGN=0.0069 NIO=0.2895 NOK=1 NPR=0.0781
    NZD=6.3500 OMR=27.7000 PAB=10.6500 PEN=2.8500 PGK=2.6700 PHP=0.1860 PKR=0.0383 PLN=2.7500 PYG=0.00136 QAR=2.9260
    RON=2.3600 RSD=0.1002 RUB=0.1150 RWF=0.00765 SAR=2.8400 SBD=1.2700 SCR=0.7500 SDG=0.0177 SEK=1.0450 SGD=7.9700
    SHP=13.7000 SLL=0.00047 SOS=0.0187 SPL=63.9000 SRD=0.3000 STD=0.00048 SVC=1.2170 SYP=0.00082 SZL=0.5800 THB=0.3100
    TJS=0.9750 TMT=3.0400 TND=3.4300 TOP=4.4500 TRY=0.3100 TTD=1.5700 TVD=7.0000 TWD=0.3300 TZS=0.0041 UAH=0.2570
    UGX=0.00289 USD=10.6500 UYU=0.2500 UZS=0.00083 VEF=0.0000107 VND=0.00042 VUV=0.0895 WST=3.8500 XAF=0.01789
    XCD=3.9440 XDR=14.2000 XOF=0.01789 XPF=0.09834 YER=0.0426 ZAR=0.5800 ZMW=0.3900 ZWD=0.0294
"""
RATES: Mapping[str, str] = dict(quoted.split("=") for quoted in _QUOTED.split())
CURRENCIES = tuple(RATES)

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
_QUANTUM = {currency: Decimal(1).scaleb(-units, _EXACT) for currency, units in MINOR_UNITS.items()}


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


def too_fine(amount: Decimal, currency: str) -> str | None:
    """The error text for an amount that `plain` would round, else None."""
    if amount == quantize(amount, currency):
        return None
    return f"{currency} has at most {MINOR_UNITS[currency]} digits after the point."


def parse_amount(text: str, currency: str) -> Decimal:
    """The amount in `text`; ValueError says what is wrong.

    Digits with an optional fraction, no sign, greater than 0, exactly the minor units of the currency, 18 digits at
    most, including those of the fraction and leading zeros.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        if text[:1] in ("-", "+"):
            raise ValueError(f"An amount has no sign; received {quoted(text)}.")
        raise ValueError(
            f'An amount is written as digits with an optional fraction, such as "100.00"; received {quoted(text)}.'
        )
    whole, fraction = match.group(1), match.group(2) or ""
    if not FEWEST_DIGITS[currency] <= len(fraction) <= MINOR_UNITS[currency]:
        raise ValueError(_wrong_units(text, currency))
    if len(whole) + len(fraction) > MOST_DIGITS:
        raise ValueError(f"An amount has at most {MOST_DIGITS} digits; received {len(whole) + len(fraction)}.")
    amount = _EXACT.create_decimal(text)
    if not amount:
        raise ValueError("An amount is greater than 0.")
    return amount


def _wrong_units(text: str, currency: str) -> str:
    units = MINOR_UNITS[currency]
    if currency == "XDR":
        expected = "XDR has at most 5 digits after the point"
    elif units == 0:
        expected = f"{currency} has no fraction, such as 100"
    else:
        expected = f"{currency} has exactly {units} digits after the point, such as {'100.'.ljust(4 + units, '0')}"
    return f"{expected}; received {quoted(text)}."


# Fees and conversion

# In NOK; `conversion` is charged if the account and the payment have different currencies. assumed: documented
# is only that payments within NOK are free.
FEES: Mapping[str, str] = {"conversion": "25.00", "crossBorder": "50.00"}

ZERO = Decimal(0)
HOME = "NOK"
_SIX_DIGITS = Context(prec=6, rounding=ROUND_HALF_UP)


class Charge(NamedTuple):
    """The cost of a payment for its debtor: `amount` and `fee` in the account's currency.

    `members`: those that a payment stores: `amount`, `fee` if there is one, and `rate`, account currency for one unit
    of the payment's currency, if they differ.
    """

    amount: Decimal
    fee: Decimal
    members: Price


class PriceList:
    """Rates and fees of a bank: those of its fixture (`own`), else the built-in ones."""

    def __init__(self, own: Mapping[str, Any]) -> None:
        self._rates: Mapping[str, str] = own.get("rates", {})
        self._fees: Mapping[str, str] = own.get("fees", {})
        self.charge = lru_cache(maxsize=1024)(self._charge)

    def _fee(self, currency: str, account_currency: str, crosses_border: bool) -> Decimal:
        same = currency == account_currency
        if same and (currency == HOME or not crosses_border):
            return ZERO
        total = self._fee_at_home("crossBorder") if crosses_border else ZERO
        if not same:
            total += self._fee_at_home("conversion")
        return total if not total or account_currency == HOME else self.converted(total, HOME, account_currency)[0]

    def _fee_at_home(self, name: str) -> Decimal:
        return Decimal(self._fees.get(name) or FEES[name])

    def _rate_at_home(self, currency: str) -> Decimal:
        rate = self._rates.get(currency) or RATES.get(currency)
        if rate is None:
            text = f"The bank has no exchange rate for {currency}."
            raise BankError("FORMAT_ERROR", text, "instructedAmount.currency")
        return Decimal(rate)

    def converted(self, amount: Decimal, source: str, target: str) -> tuple[Decimal, Decimal]:
        """`amount` of `source` in `target`, and the rate: `target` for one unit of `source`, six significant digits.

        Rounded half up, but never to zero: at least the smallest unit (assumed).
        """
        rate = _SIX_DIGITS.divide(self._rate_at_home(source), self._rate_at_home(target))
        return quantize(amount * rate, target, ROUND_HALF_UP) or quantum(target), rate

    def _charge(
        self, instructed: str, currency: str, account_currency: str, crosses_border: bool, scripted: str | None
    ) -> Charge:
        """The charge for an instructed amount in the account's currency; `scripted`: a fee that replaces the bank's.

        `charge` is the same, and caches the latest ones: they must not be changed.
        """
        amount, rate = Decimal(instructed), None
        if currency != account_currency:
            amount, rate = self.converted(amount, currency, account_currency)
        if scripted is not None:
            fee = quantize(Decimal(scripted), account_currency)
        else:
            fee = self._fee(currency, account_currency, crosses_border)
        members: Price = {"amount": plain(amount, account_currency)}
        if fee:
            members["fee"] = plain(fee, account_currency)
        if rate is not None:
            members["rate"] = format(rate, "f")
        return Charge(amount, fee, members)


BUILT_IN_PRICES = PriceList({})
