"""Lengths of time as people write them: `10s`, `2m`, `1h30m`, `3d`, and ISO 8601 such as `PT1H` or `P1DT12H`."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from emulator.bank.clock import OSLO

EXPECTED = "a length of time such as 10s, 2m, 1h30m, 3d or PT1H"
LONGEST = timedelta(days=36_525)  # a hundred years: beyond it is a slip of the keys

_PLAIN = re.compile(
    r"(?:(?P<weeks>\d{1,6})w)?(?:(?P<days>\d{1,6})d)?(?:(?P<hours>\d{1,8})h)?(?:(?P<minutes>\d{1,9})m)?"
    r"(?:(?P<seconds>\d{1,10}(?:\.\d{1,6})?)s)?(?:(?P<milliseconds>\d{1,10})ms)?",
    re.ASCII,
)
_FRACTION = r"(?:[.,]\d{1,6}(?=.\Z))?"  # of the smallest unit alone; a part of a month or year has no length
_ISO = re.compile(
    rf"P(?:(?P<years>\d{{1,3}})Y)?(?:(?P<months>\d{{1,4}})M)?(?:(?P<weeks>\d{{1,6}}{_FRACTION})W)?"
    rf"(?:(?P<days>\d{{1,6}}{_FRACTION})D)?(?:T(?=\d)(?:(?P<hours>\d{{1,8}}{_FRACTION})H)?"
    rf"(?:(?P<minutes>\d{{1,9}}{_FRACTION})M)?(?:(?P<seconds>\d{{1,10}}{_FRACTION})S)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time: whole months of the calendar and an exact rest."""

    months: int
    rest: timedelta

    def after(self, start: datetime) -> datetime:
        """The moment this long after `start`; months keep day and time of day in Oslo, a 31st becomes the last."""
        if not self.months:
            return start + self.rest
        local = start.astimezone(OSLO)
        year, month = divmod(local.year * 12 + local.month - 1 + self.months, 12)
        day = min(local.day, calendar.monthrange(year, month + 1)[1])
        return local.replace(year=year, month=month + 1, day=day).astimezone(start.tzinfo) + self.rest


def parse(text: object) -> Duration | None:
    """The duration that `text` says, or None; never negative, at most a hundred years."""
    if not isinstance(text, str) or len(text) > 60:
        return None
    found = _PLAIN.fullmatch(text) or _ISO.fullmatch(text)
    parts = {name: value for name, value in found.groupdict().items() if value} if found else {}
    if not parts:
        return None
    months = int(parts.pop("years", 0)) * 12 + int(parts.pop("months", 0))
    rest = timedelta(**{name: float(value.replace(",", ".")) for name, value in parts.items()})
    too_long = months > 1200 or rest > LONGEST
    return None if too_long else Duration(months, rest)


def exact(text: object) -> timedelta | None:
    """A duration without months and years, whose lengths differ; None for anything else."""
    found = parse(text)
    return None if found is None or found.months else found.rest
