"""The Date header: RFC 7231 dates to and from seconds since 1970, UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from functools import lru_cache

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONG_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_FIXDATE = re.compile(
    r"([A-Z][a-z]{2}), ([0-9]{1,2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) (GMT|[+-][0-9]{4})"
)
_USUAL_LENGTH = len("Mon, 02 Mar 2026 08:00:00 GMT")
_RFC850 = re.compile(r"([A-Z][a-z]{5,8}), ([0-9]{2})-([A-Z][a-z]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT")
_ASCTIME = re.compile(r"([A-Z][a-z]{2}) ([A-Z][a-z]{2}) ([0-9 ][0-9]) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})")


class DateUnreadable(ValueError):
    """The text is not an RFC 7231 date; the argument says why."""


def format_date(moment: datetime) -> str:
    """`moment` (aware) as RFC 7231 IMF-fixdate, e.g. `Mon, 02 Mar 2026 08:00:00 GMT`."""
    return format_datetime(moment.astimezone(UTC), usegmt=True)


def parse_date(text: str) -> tuple[float, str | None]:
    """Seconds since 1970 and a note when the form is readable but not IMF-fixdate; raise DateUnreadable."""
    if len(text) > 64:
        raise DateUnreadable("it is too long for a date")
    if (seconds := usual_date(text)) is not None:
        return seconds, None
    outcome = _parse(text)
    if isinstance(outcome, str):
        raise DateUnreadable(outcome)
    return outcome


@lru_cache(maxsize=256)
def usual_date(text: str) -> float | None:
    """Seconds since 1970 of a date in its usual form, IMF-fixdate; None for every other text.

    Cached, since requests of one second share a date.
    """
    outcome = _parse(text) if len(text) == _USUAL_LENGTH else None
    return outcome[0] if isinstance(outcome, tuple) and outcome[1] is None else None


def _parse(text: str) -> tuple[float, str | None] | str:
    """The result, or the reason why the text is not a date."""
    fixdate = _FIXDATE.fullmatch(text)
    if fixdate is not None:
        day_name, day, month, year, hour, minute, second, zone = fixdate.groups()
        note = None
        if zone != "GMT":
            note = "Date: a numeric zone in place of GMT"
        elif len(day) == 1:
            note = "Date: the day has one digit, RFC 7231 requires two"
        return _moment((day_name, DAYS), (year, month, day), (hour, minute, second), zone, note)
    rfc850 = _RFC850.fullmatch(text)
    if rfc850 is not None:
        day_name, day, month, short, hour, minute, second = rfc850.groups()
        year = f"20{short}"  # no request to this bank comes from another century
        note = "Date: the obsolete RFC 850 form"
        return _moment((day_name, _LONG_DAYS), (year, month, day), (hour, minute, second), "GMT", note)
    asctime = _ASCTIME.fullmatch(text)
    if asctime is not None:
        day_name, month, day, hour, minute, second, year = asctime.groups()
        note = "Date: the obsolete asctime form"
        return _moment((day_name, DAYS), (year, month, day.strip()), (hour, minute, second), "GMT", note)
    return "it is not of the RFC 7231 form `Mon, 02 Mar 2026 08:00:00 GMT`"


def _moment(
    day_name: tuple[str, tuple[str, ...]],
    date: tuple[str, str, str],
    time: tuple[str, str, str],
    zone: str,
    note: str | None,
) -> tuple[float, str | None] | str:
    name, names = day_name
    year, month, day = date
    if month not in MONTHS or name not in names:
        return "its day or month name is not one of RFC 7231"
    hour, minute, second = (int(part) for part in time)
    offset = timedelta(0)
    if zone != "GMT":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5])) * (-1 if zone[0] == "-" else 1)
    try:
        # RFC 7231 allows second 60 for a leap second, datetime does not.
        local = datetime(
            int(year),
            MONTHS.index(month) + 1,
            int(day),
            hour,
            minute,
            min(second, 59 if second == 60 else second),
            tzinfo=timezone(offset),
        )
        seconds = local.timestamp()
    except (ValueError, OverflowError):
        return "there is no such day or time"
    if local.weekday() != names.index(name):
        return f"that day is a {_LONG_DAYS[local.weekday()]}, not a {_LONG_DAYS[names.index(name)]}"
    return seconds, note
