"""The patterns of generated transactions: those of a Norwegian household and of a company.

Names come from pools that are filled once, because Faker is slow; names of companies are surnames with trades, not
those of real companies. Amounts are whole numbers of the minor unit (øre) until they are written.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from emulator.bank.documents import AccountRef, StructuredReference, TransactionDetails
from emulator.bank.reference import iban_of, kid_mod_10, synthetic_account_number

if TYPE_CHECKING:
    from faker import Faker

Party = tuple[str, AccountRef]  # name and account

CARD = "PMNT-CCRD-POSD"
TRANSFER_OUT = "PMNT-ICDT-DMCT"
TRANSFER_IN = "PMNT-RCDT-DMCT"
SALARY_IN = "PMNT-RCDT-SALA"
SALARY_OUT = "PMNT-ICDT-SALA"


def transfer_code(*, outgoing: bool) -> str:
    """bankTransactionCode of a domestic transfer, which is also the default (SPEC 2.10 requires one)."""
    return TRANSFER_OUT if outgoing else TRANSFER_IN


# Groceries are the most frequent.
_SHOPS = (
    "Dagligvare",
    "Dagligvare",
    "Dagligvare",
    "Bakeri",
    "Kafé",
    "Drivstoff",
    "Apotek",
    "Sport",
    "Klær",
    "Bokhandel",
    "Kiosk",
    "Byggevare",
)
_BILLERS = ("Kraft", "Mobil", "Bredbånd", "Forsikring", "Barnehage", "Treningssenter", "Vann og avløp", "Fagforening")
_SUPPLIERS = ("Engros", "Frakt", "Regnskap", "Emballasje", "Renhold", "Verktøy", "Trykkeri", "Vikar")
_CLIENTS = ("Bygg", "Hotell", "Kantine", "Rådgivning", "Handel", "Kontor", "Eiendom", "Media")


@dataclass(frozen=True, slots=True)
class Move:
    """A transaction to generate: days in the past, signed amount in øre, and the members from its pattern."""

    day: int
    amount: int
    members: TransactionDetails


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
        self.first_names = _distinct(faker.first_name, 120)
        self.last_names = _distinct(faker.last_name, 120)
        self._draw = draw
        self.shops = [self._shop() for _ in range(60)]
        self.billers = [self._firm(_BILLERS) for _ in range(24)]
        self.suppliers = [self._firm(_SUPPLIERS) for _ in range(24)]
        self.clients = [self._firm(_CLIENTS) for _ in range(40)]
        self.employers = [self._firm(_CLIENTS) for _ in range(30)]
        self.landlords = [self._firm(("Utleie", "Eiendomsdrift")) for _ in range(12)]
        self.tax = self._firm(("Skatteoppkrever",))
        self.funds = self._firm(("Fondsforvaltning",))

    def person(self) -> str:
        return f"{self._draw.choice(self.first_names)} {self._draw.choice(self.last_names)}"

    def company(self) -> str:
        return f"{self._draw.choice(self.last_names)} {self._draw.choice(_CLIENTS)} AS"

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


def _distinct(draw: Callable[[], str], most: int) -> list[str]:
    """Up to `most` different values, in the order in which they were drawn."""
    return list(dict.fromkeys(draw() for _ in range(most * 2)))[:most]


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


def transfers(draw: random.Random, *, days: int) -> list[tuple[int, int]]:
    """Day and amount (øre) of the monthly transfers from the first account to another one."""
    amount = draw.randrange(5, 60) * 100_00
    first = draw.randrange(1, min(days, 28) + 1)
    return [(day, amount) for day in range(first, days + 1, 30)]


def household(draw: random.Random, pools: Pools, *, days: int, count: int) -> list[Move]:
    """`count` movements of a household's current account: salary, rent, bills with KID, and shopping."""
    salary = draw.randrange(28_000_00, 52_000_00)
    monthly: list[tuple[int, int, TransactionDetails]] = [
        (
            12,
            salary,
            _from(draw.choice(pools.employers), "Lønn")
            | _text("Lønn")
            | {"purposeCode": "SALA", "bankTransactionCode": SALARY_IN},
        ),
        (15, -salary * 3 // 10, _to(draw.choice(pools.landlords), "Fast betaling") | _text("Husleie")),
    ]
    for biller in draw.sample(pools.billers, 5):
        monthly.append(
            (draw.randrange(1, 29), -draw.randrange(199_00, 2_400_00), _to(biller, "Avtalegiro") | _kid(draw))
        )
    moves = _monthly(draw, monthly, days=days, count=-(-count * 2 // 5))
    rest = count - len(moves)
    left = min(salary * 3 // 10 * days // 30, rest * 450_00)
    moves += _spread(draw, pools.shops, -1, total=left, days=days, count=rest, least=15_00)
    return moves


def savings(draw: random.Random, pools: Pools, *, days: int, count: int) -> list[Move]:
    """`count` movements of a savings account: fund units are sold, and sometimes bought."""
    sold = _from(pools.funds, "Fond") | _text("Salg fondsandeler")
    bought = _to(pools.funds, "Fond") | _text("Kjøp fondsandeler")
    buys = count // 3
    moves = _spread(draw, [sold], 1, total=count * 900_00, days=days, count=count - buys, least=100_00)
    return moves + _spread(draw, [bought], -1, total=buys * 700_00, days=days, count=buys, least=100_00)


def company(draw: random.Random, pools: Pools, *, days: int, count: int) -> list[Move]:
    """`count` movements of a company's operating account: payments of customers, suppliers, rent, wages and taxes."""
    turnover = draw.randrange(200_000_00, 1_500_000_00)
    wages = [_text("Lønn") | _to((pools.person(), account), "Lønn") for _, account in draw.sample(pools.clients, 4)]
    monthly: list[tuple[int, int, TransactionDetails]] = [
        (20, -turnover // 20, _to(draw.choice(pools.landlords), "Fast betaling") | _text("Leie lokale")),
        (15, -turnover // 8, _to(pools.tax, "Skatt") | _kid(draw) | {"purposeCode": "TAXS"}),
    ]
    for wage in wages:
        paid = wage | {"purposeCode": "SALA", "bankTransactionCode": SALARY_OUT}
        monthly.append((12, -turnover // 12, paid))
    moves = _monthly(draw, monthly, days=days, count=-(-count * 2 // 5))
    rest = count - len(moves)
    bills = rest // 3
    period = turnover * max(days, 1) // 30
    clients = [_from(client, "OCR") | _kid(draw) for client in pools.clients]
    suppliers = [_to(supplier) | _kid(draw) for supplier in pools.suppliers]
    moves += _spread(draw, clients, 1, total=period, days=days, count=rest - bills, least=50_00)
    moves += _spread(draw, suppliers, -1, total=period * 3 // 10, days=days, count=bills, least=50_00)
    return moves


def _monthly(
    draw: random.Random, monthly: Sequence[tuple[int, int, TransactionDetails]], *, days: int, count: int
) -> list[Move]:
    """The movements that recur every 30 days, the most important first, at most `count`; bills vary a little."""
    moves = []
    for back in range(0, max(days, 1), 30):
        for day, amount, members in monthly:
            if back + day <= days:
                varied = (
                    amount * draw.randrange(90, 110) // 100
                    if members["proprietaryBankTransactionCode"] == "Avtalegiro"
                    else amount
                )
                moves.append(Move(back + day, varied, members))
    return moves[:count]


def _spread(
    draw: random.Random,
    templates: Sequence[TransactionDetails],
    sign: int,
    *,
    total: int,
    days: int,
    count: int,
    least: int,
) -> list[Move]:
    """`count` movements on random days, with a sum of about `total`, each at least `least`."""
    if count <= 0:
        return []
    mean = max(total // count, least * 2)
    choose, below = draw.choice, draw.random
    moves = []
    for _ in range(count):
        # Squared: many small amounts and a few large ones.
        share = below()
        amount = least + int(3 * (mean - least) * share * share)
        moves.append(Move(1 + int(below() * days), sign * amount, choose(templates)))
    return moves
