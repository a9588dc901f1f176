"""Fees and currency conversion from one fixed table (CONTRACT 6, Money; SPEC 2.8, 2.9)."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache, lru_cache
from typing import NamedTuple

import orjson

from emulator.bank.bank import Bank
from emulator.bank.documents import Price
from emulator.bank.errors import BankError
from emulator.bank.kinds import EXCHANGE, META
from emulator.bank.money import plain, quantize, quantum
from emulator.bank.reference.rates import FEES, RATES

ZERO = Decimal(0)
HOME = "NOK"
_SIX_DIGITS = Context(prec=6, rounding=ROUND_HALF_UP)


class Quote(NamedTuple):
    """What a payment costs its debtor: `amount` and `fee` in the account's currency.

    `rate`: account currency for one unit of the payment's currency, None where the two are one.
    """

    amount: Decimal
    fee: Decimal = ZERO
    rate: Decimal | None = None


class Charge(NamedTuple):
    """A quote with `members`, what a payment keeps of it: `amount`, `fee` if there is one, `rate` if there is one.

    It is cached, so not to be changed.
    """

    amount: Decimal
    fee: Decimal
    members: Price


class Table:
    """Rates and fees: those of a bank's fixture (`kept`, a JSON object), else the built-in ones.

    `charge` makes a Charge of an instructed amount as text, its currency, the account's currency, whether the border is
    crossed, and a scripted fee; the last ones are cached.
    """

    def __init__(self, kept: bytes) -> None:
        told = orjson.loads(kept)
        self._rates: dict[str, str] = told.get("rates", {})
        self._fees: dict[str, str] = told.get("fees", {})
        self._rate = cache(self._divided)
        self.charge = lru_cache(maxsize=1024)(self._charge)

    def _fee(self, currency: str, account_currency: str, crosses_border: bool) -> Decimal:
        """The fee of a payment in `currency`, in the account's currency."""
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

    def _divided(self, source: str, target: str) -> Decimal:
        return _SIX_DIGITS.divide(self._rate_at_home(source), self._rate_at_home(target))

    def converted(self, amount: Decimal, source: str, target: str) -> tuple[Decimal, Decimal]:
        """`amount` of `source` in `target` and the rate: `target` for one unit of `source`, six significant digits.

        Rounded half up, and never to nothing: the smallest unit at least (assumed).
        """
        rate = self._rate(source, target)
        return quantize(amount * rate, target, ROUND_HALF_UP) or quantum(target), rate

    def quote(
        self, instructed: Decimal, currency: str, account_currency: str, *, crosses_border: bool, scripted: str | None
    ) -> Quote:
        """What the debtor's account is charged for `instructed` in `currency`; a scripted fee takes the fee's place."""
        amount, rate = instructed, None
        if currency != account_currency:
            amount, rate = self.converted(instructed, currency, account_currency)
        if scripted is not None:
            return Quote(amount, quantize(Decimal(scripted), account_currency), rate)
        return Quote(amount, self._fee(currency, account_currency, crosses_border), rate)

    def _charge(
        self, instructed: str, currency: str, account_currency: str, crosses_border: bool, scripted: str | None
    ) -> Charge:
        amount, fee, rate = self.quote(
            Decimal(instructed), currency, account_currency, crosses_border=crosses_border, scripted=scripted
        )
        members: Price = {"amount": plain(amount, account_currency)}
        if fee:
            members["fee"] = plain(fee, account_currency)
        if rate is not None:
            members["rate"] = format(rate, "f")
        return Charge(amount, fee, members)


_made = lru_cache(maxsize=64)(Table)


def table(bank: Bank) -> Table:
    """The bank's rates and fees."""
    return _made(bank.documents.text(META, EXCHANGE.name) or b"{}")


def exchange_member(*, source: str, target: str, unit: str, rate: Decimal, date: str) -> dict[str, str]:
    """`currencyExchange` of a transaction (SPEC 2.9): `rate` is the price of one `unit`."""
    return {
        "sourceCurrency": source,
        "exchangeRate": format(rate, "f"),
        "unitCurrency": unit,
        "targetCurrency": target,
        "quotationDate": date,
    }
