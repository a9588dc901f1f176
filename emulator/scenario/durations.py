"""Durations in text: `10s`, `2m`, `1h30m`, `3d`, and ISO 8601 such as `PT1H` or `P1DT12H`."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from emulator.bank.clock import OSLO

EXPECTED = "a duration such as 10s, 2m, 1h30m, 3d or PT1H"
LONGEST = timedelta(days=36_525)  # a hundred years; a longer one is a typing error
TOO_LONG = "a duration of at most a hundred years"

_PLAIN = re.compile(
    r"(?:(?P<weeks>\d+)w)?(?:(?P<days>\d+)d)?(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?"
    r"(?:(?P<seconds>\d+(?:\.\d{1,6})?)s)?(?:(?P<milliseconds>\d+)ms)?",
    re.ASCII,
)
_FRACTION = r"(?:[.,]\d{1,6}(?=.\Z))?"  # only of the smallest unit; a fraction of a month or year has no fixed length
_ISO = re.compile(
    rf"P(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<weeks>\d+{_FRACTION})W)?(?:(?P<days>\d+{_FRACTION})D)?"
    rf"(?:T(?=\d)(?:(?P<hours>\d+{_FRACTION})H)?(?:(?P<minutes>\d+{_FRACTION})M)?(?:(?P<seconds>\d+{_FRACTION})S)?)?",
    re.ASCII,
)


# Of an `exact` duration for JSON Schema: without group names, months and years.
SCHEMA_PATTERN = (
    re.sub(r"\?P<\w+>", "?:", rf"^(?=.)(?:{_PLAIN.pattern})$|^(?=P.)(?!P[^T]*[YM])(?:{_ISO.pattern})$")
    .replace(r"\Z", "$")
    .replace(r"\d", "[0-9]")
)


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration: whole calendar months, and an exact rest."""

    months: int
    rest: timedelta

    def after(self, start: datetime) -> datetime:
        """The time this long after `start`. Months keep day and time in Oslo; a 31st becomes the last of the month."""
        if not self.months:
            return start + self.rest
        local = start.astimezone(OSLO)
        year, month = divmod(local.year * 12 + local.month - 1 + self.months, 12)
        day = min(local.day, calendar.monthrange(year, month + 1)[1])
        return local.replace(year=year, month=month + 1, day=day).astimezone(start.tzinfo) + self.rest


def parse(text: object) -> Duration | None:
    """The duration in `text`, or None; never negative, at most a hundred years."""
    parts = _parts(text)
    if not parts:
        return None
    months = int(parts.pop("years", 0)) * 12 + int(parts.pop("months", 0))
    try:
        rest = timedelta(**{name: float(value.replace(",", ".")) for name, value in parts.items()})
    except OverflowError:
        return None
    too_long = months > 1200 or rest > LONGEST
    return None if too_long else Duration(months, rest)


def _parts(text: object) -> dict[str, str]:
    """The digits of each unit; empty if the form is not that of a duration."""
    if not isinstance(text, str) or len(text) > 60:
        return {}
    match = _PLAIN.fullmatch(text) or _ISO.fullmatch(text)
    return {name: value for name, value in match.groupdict().items() if value} if match else {}


def expected(text: object, *, calendar: bool = True) -> str:
    """What was expected instead of a text; without `calendar` months and years are refused too."""
    if not calendar and parse(text) is not None:
        return "a duration without months and years, such as 30d"
    return TOO_LONG if _parts(text) else EXPECTED


def exact(text: object) -> timedelta | None:
    """A duration without months and years, which differ in length; None for anything else."""
    length = parse(text)
    return None if length is None or length.months else length.rest
