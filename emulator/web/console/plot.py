"""Balance over time as paths of an SVG image, computed on the server so that the page needs no script."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import orjson

from emulator.bank.bank import Bank
from emulator.bank.documents import Account, Card
from emulator.bank.kinds import TRANSACTION, EntryKind

DAYS = 90
MOST_READ = 5_000  # bookings, so that the page stays fast for an account with a million
WIDTH, HEIGHT = 720, 200
LEFT, RIGHT, TOP, BOTTOM = 76, 10, 12, 26


@dataclass(frozen=True, slots=True)
class Plot:
    """A balance plot in the units of its view box; `balances` are the closing balances by day, oldest first."""

    line: str
    area: str
    zero: float | None
    rows: list[tuple[float, str]]  # where, and the label
    columns: list[tuple[float, str]]
    balances: list[tuple[date, Decimal]]

    @property
    def lowest(self) -> tuple[date, Decimal]:
        return min(self.balances, key=lambda day: day[1])

    @property
    def highest(self) -> tuple[date, Decimal]:
        return max(self.balances, key=lambda day: day[1])


def closing_balances(bank: Bank, holder: Account | Card, kind: EntryKind) -> list[tuple[date, Decimal]]:
    """The booked balance at the end of each of the last days, computed backwards from the present booked balance.

    For an account with more than MOST_READ bookings in these days: only the days that the newest of them cover.
    """
    today = bank.clock.today()
    first = today - timedelta(days=DAYS)
    moved: dict[str, Decimal] = defaultdict(Decimal)
    # `order` begins with the booking date, so a date is a lower bound of its own day.
    newest = bank.documents.range_texts(
        kind, "shelf", group=f"{holder['id']}|booked", low=first.isoformat(), reverse=True, limit=MOST_READ
    )
    booked_on = ""
    for text in newest:
        entry = orjson.loads(text)
        amount = entry["amount"] if kind is TRANSACTION else entry["transactionAmount"]["amount"]
        booked_on = str(entry["order"])[:10]
        moved[booked_on] += Decimal(amount)
    if len(newest) == MOST_READ:  # bookings of the oldest day may be missing: its closing balance is the last known one
        first = min(date.fromisoformat(booked_on), today)
    # Bookings dated later than today (from a fixture) are part of the present balance.
    balance = Decimal(holder["booked"])
    balances = []
    for back in range((today - first).days + 1):
        day = today - timedelta(days=back)
        balances.append((day, balance))
        balance -= moved[day.isoformat()]
    return balances[::-1]


def draw(balances: list[tuple[date, Decimal]]) -> Plot:
    """A stepped line: a balance holds until the day on which it changes."""
    values = [balance for _, balance in balances]
    rows = _round_values(min(values), max(values))
    low, high = rows[0], rows[-1]
    inner = HEIGHT - TOP - BOTTOM

    def across(index: int) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * index / max(1, len(values) - 1), 1)

    def down(value: Decimal) -> float:
        return round(TOP + inner * float((high - value) / (high - low)), 1)

    steps = [f"M{across(0)} {down(values[0])}"]
    for index in range(1, len(values)):
        steps.append(f"H{across(index)}")
        if values[index] != values[index - 1]:
            steps.append(f"V{down(values[index])}")
    line = "".join(steps)
    floor = TOP + inner
    columns = [
        (across(index), f"{day.day} {day:%b}")
        for index, (day, _) in enumerate(balances)
        if day.day == 1 or (index == 0 and balances[0][0].day < 22)
    ]
    return Plot(
        line=line,
        area=f"{line}V{floor}H{across(0)}Z",
        zero=down(Decimal(0)) if low < 0 < high else None,
        rows=[(down(value), _short(value)) for value in rows],
        columns=columns,
        balances=balances,
    )


def _round_values(low: Decimal, high: Decimal) -> list[Decimal]:
    """Three to six round values for the axis, enclosing `low` and `high`."""
    if low == high:
        low, high = (low, low + 100) if low == 0 else (min(low, Decimal(0)), max(high, Decimal(0)))
    size = Decimal(10) ** ((high - low).adjusted())
    step = next(
        size * part for part in map(Decimal, ("0.2", "0.25", "0.5", "1", "2", "5")) if (high - low) / (size * part) <= 5
    )
    first = (low / step).to_integral_value(ROUND_FLOOR)
    last = (high / step).to_integral_value(ROUND_CEILING)
    return [step * number for number in range(int(first), int(last) + 1)]


def _short(value: Decimal) -> str:
    for size, name in ((Decimal(10) ** 9, "bn"), (Decimal(10) ** 6, "m"), (Decimal(1000), "k")):
        if abs(value) >= size:
            return f"{(value / size).normalize():f} {name}".replace("-", "−")
    return f"{value.normalize():f}".replace("-", "−")
