"""Fees and currency conversion from one fixed table (CONTRACT 6, Money; SPEC 2.8, 2.9)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal

from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.money import plain, quantize, quantum
from emulator.bank.rates import FEES, RATES

ZERO = Decimal(0)
HOME = "NOK"
_SIX_DIGITS = Context(prec=6, rounding=ROUND_HALF_UP)


@dataclass(slots=True)
class Quote:
    """What a payment costs its debtor: `amount` and `fee` in the account's currency.

    `rate`: account currency for one unit of the payment's currency, None where the two are one.
    """

    amount: Decimal
    fee: Decimal = ZERO
    rate: Decimal | None = None


class Table:
    """The bank's rates and fees: those of its fixture, else the built-in ones."""

    def __init__(self, bank: Bank) -> None:
        kept = bank.documents.get("meta", "exchange") or {}
        self._rates: dict[str, str] = kept.get("rates", {})
        self._fees: dict[str, str] = kept.get("fees", {})

    def fee(self, name: str) -> Decimal:
        """A fee in NOK: `conversion` or `crossBorder`."""
        return Decimal(self._fees.get(name) or FEES[name])

    def _rate(self, currency: str) -> Decimal:
        rate = self._rates.get(currency) or RATES.get(currency)
        if rate is None:
            text = f"The bank has no exchange rate for {currency}."
            raise BankError("FORMAT_ERROR", text, "instructedAmount.currency")
        return Decimal(rate)

    def converted(self, amount: Decimal, source: str, target: str) -> tuple[Decimal, Decimal]:
        """`amount` of `source` in `target` and the rate: `target` for one unit of `source`, six significant digits.

        Rounded half up, and never to nothing: the smallest unit at least (assumed).
        """
        rate = _SIX_DIGITS.divide(self._rate(source), self._rate(target))
        return max(quantize(amount * rate, target, ROUND_HALF_UP), quantum(target)), rate


def quote(
    bank: Bank, instructed: Decimal, currency: str, account_currency: str, *, crosses_border: bool, scripted: str | None
) -> Quote:
    """What the debtor's account is charged for `instructed` in `currency`; a scripted fee takes the fee's place."""
    same = currency == account_currency
    free = same and (currency == HOME or not crosses_border)
    if free and scripted is None:
        return Quote(instructed)
    table = Table(bank)
    amount, rate = (instructed, None) if same else table.converted(instructed, currency, account_currency)
    if scripted is not None:
        return Quote(amount, quantize(Decimal(scripted), account_currency, ROUND_HALF_UP), rate)
    total = table.fee("crossBorder") if crosses_border else ZERO
    if not same:
        total += table.fee("conversion")
    fee = total if not total or account_currency == HOME else table.converted(total, HOME, account_currency)[0]
    return Quote(amount, fee, rate)


def exchange_member(*, source: str, target: str, unit: str, rate: Decimal, date: str) -> dict[str, str]:
    """`currencyExchange` of a transaction (SPEC 2.9): `rate` is the price of one `unit`."""
    return {
        "sourceCurrency": source,
        "exchangeRate": format(rate, "f"),
        "unitCurrency": unit,
        "targetCurrency": target,
        "quotationDate": date,
    }


def amount_member(amount: Decimal, currency: str) -> dict[str, str]:
    """An Amount (SPEC 2.6)."""
    return {"amount": plain(amount, currency), "currency": currency}
