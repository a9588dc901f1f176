"""The Date header: RFC 7231 dates to and from seconds since 1970, UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from functools import lru_cache

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONG_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_NAME, _MONTH = "(?P<name>[A-Z][a-z]{2})", "(?P<month>[A-Z][a-z]{2})"
_LONG_NAME = "(?P<name>[A-Z][a-z]{5,8})"
_TIME = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_YEAR, _ZONE = "(?P<year>[0-9]{4})", "(?P<zone>GMT|[+-][0-9]{4})"
# The forms of a date, each with the note for a request that has it.
_FORMS = (
    (re.compile(f"{_NAME}, (?P<day>[0-9]{{1,2}}) {_MONTH} {_YEAR} {_TIME} {_ZONE}"), None),
    (
        re.compile(f"{_LONG_NAME}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
        "Date: the obsolete RFC 850 form",
    ),
    (re.compile(f"{_NAME} {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} {_YEAR}"), "Date: the obsolete asctime form"),
)


class DateUnreadable(ValueError):
    """The text is not an RFC 7231 date; the argument says why."""


def format_date(moment: datetime) -> str:
    """`moment` (aware) as RFC 7231 IMF-fixdate, e.g. `Mon, 02 Mar 2026 08:00:00 GMT`."""
    return format_datetime(moment.astimezone(UTC), usegmt=True)


@lru_cache(maxsize=256)
def parse_date(text: str) -> tuple[float, str | None]:
    """Seconds since 1970 and a note when the form is readable but not IMF-fixdate; raise DateUnreadable.

    Cached, since requests of one second share a date.
    """
    if len(text) > 64:
        raise DateUnreadable("it is too long for a date")
    readable = next(((match, note) for form, note in _FORMS if (match := form.fullmatch(text))), None)
    if readable is None:
        raise DateUnreadable("it is not of the RFC 7231 form `Mon, 02 Mar 2026 08:00:00 GMT`")
    match, note = readable
    parts = match.groupdict()
    zone, offset = parts.get("zone", "GMT"), timedelta(0)
    if zone != "GMT":
        note = "Date: a numeric zone in place of GMT"
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5])) * (-1 if zone[0] == "-" else 1)
    elif len(parts["day"]) == 1:
        note = "Date: the day has one digit, RFC 7231 requires two"
    if parts["month"] not in MONTHS or parts["name"] not in (*DAYS, *_LONG_DAYS):
        raise DateUnreadable("its day or month name is not one of RFC 7231")
    year, day, hour, minute, second = (int(parts[name]) for name in ("year", "day", "hour", "minute", "second"))
    try:
        local = datetime(
            year if len(parts["year"]) == 4 else 2000 + year,  # no request to this bank comes from another century
            MONTHS.index(parts["month"]) + 1,
            day,
            hour,
            minute,
            59 if second == 60 else second,  # RFC 7231 allows second 60 for a leap second, datetime does not
            tzinfo=timezone(offset),
        )
        seconds = local.timestamp()
    except (ValueError, OverflowError):
        raise DateUnreadable("there is no such day or time") from None
    stated = DAYS.index(parts["name"][:3])
    if local.weekday() != stated:
        raise DateUnreadable(f"that day is a {_LONG_DAYS[local.weekday()]}, not a {_LONG_DAYS[stated]}")
    return seconds, note
