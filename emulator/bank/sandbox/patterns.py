"""The patterns of generated transactions: those of a Norwegian household and of a company.

Life follows the calendar: each customer has days of the month of its own for wages, rent and bills. What falls on a
weekend or a holiday moves, wages to the banking day before it and everything else to the one after it.
A purchase by card is booked on the next banking day, with the day of the purchase as its value date.

Names come from pools that are filled once, because Faker is slow; names of companies are surnames with trades, not
those of real companies. Amounts are whole numbers of the minor unit (øre) until they are written.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING

from emulator.bank.documents import AccountRef, StructuredReference, TransactionDetails
from emulator.bank.reference import iban_of, kid_mod_10, synthetic_account_number
from emulator.bank.scheme.execution import closest_banking_day, next_banking_day

if TYPE_CHECKING:
    from faker import Faker

Party = tuple[str, AccountRef]  # name and account

CARD = "PMNT-CCRD-POSD"
TRANSFER_OUT = "PMNT-ICDT-DMCT"
TRANSFER_IN = "PMNT-RCDT-DMCT"
SALARY_IN = "PMNT-RCDT-SALA"
SALARY_OUT = "PMNT-ICDT-SALA"
INTEREST = "ACMT-MCOP-INTR"
_DAY = timedelta(days=1)


def transfer_code(*, outgoing: bool) -> str:
    """bankTransactionCode of a domestic transfer, which is also the default (a sandbox transaction must have one)."""
    return TRANSFER_OUT if outgoing else TRANSFER_IN


# Groceries are the most frequent.
_SHOPS = (
    "Dagligvare", "Dagligvare", "Dagligvare", "Bakeri", "Kafé", "Drivstoff", "Apotek", "Sport", "Klær", "Bokhandel",
    "Kiosk", "Byggevare",
)  # fmt: skip
_BILLERS = ("Kraft", "Mobil", "Bredbånd", "Forsikring", "Barnehage", "Treningssenter", "Vann og avløp", "Fagforening")
_SUPPLIERS = ("Engros", "Frakt", "Regnskap", "Emballasje", "Renhold", "Verktøy", "Trykkeri", "Vikar")
_CLIENTS = ("Bygg", "Hotell", "Kantine", "Rådgivning", "Handel", "Kontor", "Eiendom", "Media")


@dataclass(frozen=True, slots=True)
class Move:
    """A transaction to generate: the day of its booking, its signed amount in øre, and the members from its pattern."""

    day: date
    amount: int
    members: TransactionDetails
    value_day: date | None = None  # if it is not the day of its booking


class Period:
    """The days whose transactions are generated: the last `days` before today."""

    def __init__(self, today: date, days: int) -> None:
        self.first, self.last = today - timedelta(days=days), today - _DAY
        bought = [self.first + number * _DAY for number in range(-1, days - 1)]
        purchases = [(day, next_banking_day(day, "NOK")) for day in bought]
        within = [(day, booked) for day, booked in purchases if self.first <= booked <= self.last]
        # A period of a day or two may have no banking day.
        self._purchases = within or [(self.last, self.last)]
        self._open = sorted({booked for _, booked in self._purchases})

    def purchase(self, draw: random.Random) -> tuple[date, date]:
        """A day of a purchase, and the banking day on which it is booked."""
        return draw.choice(self._purchases)

    def banking_day(self, draw: random.Random) -> date:
        return draw.choice(self._open)

    def monthly(self, day: int, *, before: bool = False) -> Iterator[date]:
        """This day of each month, newest first, moved to a banking day: to the one `before`, or to the one after."""
        year, month = self.last.year, self.last.month
        while (year, month) >= (self.first.year, self.first.month):
            moved = closest_banking_day(date(year, month, day), before=before)
            if self.first <= moved <= self.last:
                yield moved
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)

    @property
    def months(self) -> int:
        """Its length, at least a month."""
        return max((self.last - self.first).days // 30, 1)


@cache
def norwegian_names() -> Faker:
    """What makes names up; the first call takes a third of a second, for the imports."""
    from faker import Faker

    return Faker("no_NO")


class Pools:
    """Names and counterparties to draw from, filled once for a run of the generator."""

    def __init__(self, draw: random.Random) -> None:
        faker = norwegian_names()
        faker.seed_instance(draw.getrandbits(64))
        self.first_names = _distinct(faker.first_name)
        self.last_names = _distinct(faker.last_name)
        self._draw = draw
        self.shops = [self._shop() for _ in range(60)]
        self.billers = [self._firm(_BILLERS) for _ in range(24)]
        self.suppliers = [self._firm(_SUPPLIERS) for _ in range(24)]
        self.clients = [self._firm(_CLIENTS) for _ in range(40)]
        self.employers = [self._firm(_CLIENTS) for _ in range(30)]
        self.landlords = [self._firm(("Utleie", "Eiendomsdrift")) for _ in range(12)]
        self.tax = self._firm(("Skatteoppkrever",))

    def person(self, draw: random.Random) -> str:
        return f"{draw.choice(self.first_names)} {draw.choice(self.last_names)}"

    def company(self, draw: random.Random) -> str:
        return f"{draw.choice(self.last_names)} {draw.choice(_CLIENTS)} AS"

    def _shop(self) -> TransactionDetails:
        name = f"{self._draw.choice(self.last_names)} {self._draw.choice(_SHOPS)}"
        return {
            "creditorName": name,
            "remittanceInformationUnstructured": f"Varekjøp {name}",
            "bankTransactionCode": CARD,
            "proprietaryBankTransactionCode": "Varekjøp",
        }

    def _firm(self, trades: Sequence[str]) -> Party:
        bban = synthetic_account_number(self._draw.randrange, self._draw.choice(("9992", "9993")))
        name = f"{self._draw.choice(self.last_names)} {self._draw.choice(trades)} AS"
        return name, {"bban": bban, "iban": iban_of(bban), "currency": "NOK"}


def _distinct(draw: Callable[[], str]) -> list[str]:
    """Up to 120 different values, in the order in which they were drawn."""
    return list(dict.fromkeys(draw() for _ in range(240)))[:120]


def _to(party: Party, code: str = "Nettgiro") -> TransactionDetails:
    name, account = party
    return {
        "creditorName": name,
        "creditorAccount": account,
        "bankTransactionCode": TRANSFER_OUT,
        "proprietaryBankTransactionCode": code,
    }


def _from(party: Party, code: str = "Innbetaling") -> TransactionDetails:
    name, account = party
    return {
        "debtorName": name,
        "debtorAccount": account,
        "bankTransactionCode": TRANSFER_IN,
        "proprietaryBankTransactionCode": code,
    }


def _text(text: str) -> TransactionDetails:
    return {"remittanceInformationUnstructured": text}


def _kid(draw: random.Random) -> TransactionDetails:
    digits = f"{draw.randrange(10**8):08}"
    kid: StructuredReference = {"reference": digits + kid_mod_10(digits), "referenceType": "SCOR"}
    return {"remittanceInformationStructuredArray": [kid]}


def _own_day(draw: random.Random) -> int:
    """A day of the month from which the move to a banking day after it stays in the month."""
    return draw.randrange(1, 27)


def _wage_day(draw: random.Random) -> int:
    """The same for the move to a banking day before it."""
    return draw.randrange(8, 29)


class Wage:
    """A wage that rises once a year; `amount` is the present one."""

    def __init__(self, draw: random.Random, amount: int) -> None:
        self._amount, self._month, self._percent = amount, draw.choice((1, 4, 5, 5, 5, 7)), draw.randrange(2, 6)

    def on(self, day: date, last: date) -> int:
        """The wage of a day of a period that ends on `last`."""
        rises = (last.year - day.year) + (last.month >= self._month) - (day.month >= self._month)
        return round(self._amount * (100 / (100 + self._percent)) ** rises) // 100 * 100


@dataclass(frozen=True, slots=True)
class Recurring:
    """A movement of every month on one day of it; `varies`: by up to a tenth; `wage`: its amounts, if it is one."""

    day: int
    amount: int
    members: TransactionDetails
    before: bool = False
    varies: bool = False
    wage: Wage | None = None


def saving(draw: random.Random, period: Period) -> Iterator[tuple[date, int]]:
    """The transfers to a savings account, newest first: a fixed amount each month, and now and then some of it back.

    Each with its day and the amount in øre.
    """
    amount = draw.randrange(5, 60) * 100_00
    for day in period.monthly(_own_day(draw)):
        yield day, amount
        if draw.random() < 0.15:
            yield period.banking_day(draw), -amount * draw.randrange(1, 3) // 2


def interest(draw: random.Random, period: Period) -> Iterator[Move]:
    """The interest of a savings account, on the last banking day of each year."""
    members: TransactionDetails = {
        "remittanceInformationUnstructured": "Renter",
        "bankTransactionCode": INTEREST,
        "proprietaryBankTransactionCode": "Renter",
        "purposeCode": "INTC",
    }
    for year in range(period.first.year, period.last.year + 1):
        day = closest_banking_day(date(year, 12, 31), before=True)
        if period.first <= day <= period.last:
            yield Move(day, draw.randrange(50_00, 4_000_00), members)


def household(draw: random.Random, pools: Pools, period: Period, *, count: int) -> Iterator[Move]:
    """`count` movements of a household's current account: wages, rent, bills with KID, and shopping."""
    wage = draw.randrange(28_000, 52_000) * 100
    paid = _from(draw.choice(pools.employers), "Lønn") | _text("Lønn")
    paid |= {"purposeCode": "SALA", "bankTransactionCode": SALARY_IN}
    rent = Recurring(
        _own_day(draw), -wage * 3 // 10, _to(draw.choice(pools.landlords), "Fast betaling") | _text("Husleie")
    )
    bills = [
        Recurring(
            _own_day(draw),
            -draw.randrange(199_00, 2_400_00),
            _to(biller, "Avtalegiro") | _kid(draw),
            varies=True,
        )
        for biller in draw.sample(pools.billers, 5)
    ]
    wages = Recurring(_wage_day(draw), wage, paid, before=True, wage=Wage(draw, wage))
    fixed = list(_monthly(draw, [wages, rent, *bills], period, count=-(-count * 2 // 5)))
    yield from fixed
    rest = count - len(fixed)
    left = min(wage * 3 // 10 * period.months, rest * 450_00)
    for amount in _amounts(draw, total=left, count=rest, least=15_00):
        bought, booked = period.purchase(draw)
        yield Move(booked, -amount, draw.choice(pools.shops), bought)


def company(draw: random.Random, pools: Pools, period: Period, *, count: int) -> Iterator[Move]:
    """`count` movements of a company's operating account: payments of customers, suppliers, rent, wages and taxes."""
    turnover = draw.randrange(200_000, 1_500_000) * 100
    wage_day = _wage_day(draw)
    recurring = [
        Recurring(
            _own_day(draw), -turnover // 20, _to(draw.choice(pools.landlords), "Fast betaling") | _text("Leie lokale")
        ),
        Recurring(15, -turnover // 8, _to(pools.tax, "Skatt") | _kid(draw) | {"purposeCode": "TAXS"}),
    ]
    for _, account in draw.sample(pools.clients, 4):
        wage = _text("Lønn") | _to((pools.person(draw), account), "Lønn")
        wage |= {"purposeCode": "SALA", "bankTransactionCode": SALARY_OUT}
        recurring.append(Recurring(wage_day, -turnover // 12, wage, before=True))
    fixed = list(_monthly(draw, recurring, period, count=-(-count * 2 // 5)))
    yield from fixed
    rest = count - len(fixed)
    bills = rest // 3
    sales = turnover * period.months
    clients = [_from(client, "OCR") | _kid(draw) for client in pools.clients]
    suppliers = [_to(supplier) | _kid(draw) for supplier in pools.suppliers]
    yield from _transfers(draw, clients, period, total=sales, count=rest - bills)
    yield from _transfers(draw, suppliers, period, total=-sales * 3 // 10, count=bills)


def _monthly(draw: random.Random, recurring: Sequence[Recurring], period: Period, *, count: int) -> Iterator[Move]:
    """At most `count` movements of every month, the most important first."""
    for one in recurring:
        for day in period.monthly(one.day, before=one.before):
            if count <= 0:
                return
            count -= 1
            amount = one.amount if one.wage is None else one.wage.on(day, period.last)
            yield Move(day, amount * draw.randrange(90, 110) // 100 if one.varies else amount, one.members)


def _transfers(
    draw: random.Random, templates: Sequence[TransactionDetails], period: Period, *, total: int, count: int
) -> Iterator[Move]:
    sign = 1 if total > 0 else -1
    for amount in _amounts(draw, total=abs(total), count=count, least=50_00):
        yield Move(period.banking_day(draw), sign * amount, draw.choice(templates))


def _amounts(draw: random.Random, *, total: int, count: int, least: int) -> Iterator[int]:
    """`count` amounts with a sum of about `total`, each at least `least`."""
    mean = max(total // max(count, 1), least * 2)
    for _ in range(count):
        # Squared: many small amounts and a few large ones.
        share = draw.random()
        yield least + int(3 * (mean - least) * share * share)
