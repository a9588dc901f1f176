"""The words of pages: how amounts, account numbers and dates are written, and the texts of `wording.json`.

That file has by key the Norwegian text and the English one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from importlib.resources import files

from emulator.bank import products
from emulator.bank.clock import OSLO, moment
from emulator.bank.payment.payment_views import ApprovalItem

NORWEGIAN = "nb"
ENGLISH = "en"
LANGUAGES = (NORWEGIAN, ENGLISH)

_NO_BREAK = "\u00a0"
_MONTHS = {
    NORWEGIAN: ("jan.", "feb.", "mars", "april", "mai", "juni", "juli", "aug.", "sep.", "okt.", "nov.", "des."),
    ENGLISH: ("Jan", "Feb", "March", "April", "May", "June", "July", "Aug", "Sep", "Oct", "Nov", "Dec"),
}


def money(amount: str, currency: str = "", language: str = ENGLISH) -> str:
    """A decimal string grouped by thousands: `1 234,50 NOK` or `1,234.50 NOK`."""
    sign = "−" if amount.startswith("-") else ""
    whole, _, fraction = amount.lstrip("+-").partition(".")
    group, point = (_NO_BREAK, ",") if language == NORWEGIAN else (",", ".")
    text = f"{int(whole):,}".replace(",", group) + (point + fraction if fraction else "")
    return f"{sign}{text} {currency}" if currency else sign + text


def account_number(number: str) -> str:
    """An account number in groups: `9990 10 00014`, an IBAN in fours, anything else unchanged."""
    plain = number.replace(" ", "")
    if len(plain) == 11 and plain.isdigit():
        return " ".join((plain[:4], plain[4:6], plain[6:]))
    if len(plain) >= 15 and plain[:2].isalpha() and plain[2:4].isdigit():
        return " ".join(plain[at : at + 4] for at in range(0, len(plain), 4))
    return number


def day(iso: str, language: str = ENGLISH) -> str:
    """A date `YYYY-MM-DD` in words: `2. mars 2026` or `2 March 2026`; other text unchanged."""
    try:
        at = date.fromisoformat(iso[:10])
    except ValueError:
        return iso
    return f"{at.day}{'.' if language == NORWEGIAN else ''} {_MONTHS[language][at.month - 1]} {at.year}"


def months(numbers: str, language: str = ENGLISH) -> str:
    """Months by their numbers, `1, 6`, in words: `jan., juni` or `Jan, June`."""
    return ", ".join(_MONTHS[language][int(number) - 1] for number in numbers.split(", "))


def oslo(at: str | datetime) -> str:
    """A moment in the form of the console: Oslo time to the second, `2026-03-02 09:00:00`."""
    return (moment(at) if isinstance(at, str) else at).astimezone(OSLO).strftime("%Y-%m-%d %H:%M:%S")


def moment_in(at: str, language: str = ENGLISH) -> str:
    """A moment in Oslo time and words: `2. mars 2026 kl. 09:00` or `2 March 2026, 09:00`."""
    local = moment(at).astimezone(OSLO)
    return f"{day(local.date().isoformat(), language)}{' kl. ' if language == NORWEGIAN else ', '}{local:%H:%M}"


def abridged(name: str) -> str:
    """The first characters of a long id."""
    return name if len(name) <= 14 else f"{name[:12]}…"


_TONES = {
    "good": ("ACSC", "valid", "finalised", "live", "passed", "pass", "delivered"),
    "busy": ("ACTC", "ACWC", "PDNG", "ACSP", "ACWP", "started", "sending"),
    "waits": ("RCVD", "PATC", "ACCP", "PART", "skipped", "warn", "known", "waiting"),
    "bad": ("RJCT", "failed", "revoked", "terminated", "expired", "fail"),
}
_TONE_OF = {status: tone for tone, statuses in _TONES.items() for status in statuses}


def tone(status: str) -> str:
    """The colour class of a status: good, busy, waits, bad or quiet; for HTTP statuses by their first digit."""
    if len(status) == 3 and status.isdigit():
        return {"2": "good", "3": "quiet", "4": "waits"}.get(status[0], "bad")
    return _TONE_OF.get(status, "quiet")


# Each text in Norwegian and in English.
TEXTS: Mapping[str, Sequence[str]] = json.loads(files(__package__).joinpath("wording.json").read_bytes())


def translated(key: str, language: str) -> str:
    norwegian, english = TEXTS[key]
    return norwegian if language == NORWEGIAN else english


def payment_kind(line: ApprovalItem, language: str) -> str:
    """The kind of a payment in words: `Instant transfer`, `Standing order, monthly from 2 March 2026`."""
    product = products.table()[line["service"], line["product"]]
    words = product.norwegian if language == NORWEGIAN else product.words
    if "frequency" not in line:
        return words
    return translated("order_until" if "endDate" in line else "order_from", language).format(
        product=words,
        frequency=translated(f"frequency_{line['frequency']}", language),
        start=day(line["startDate"], language),
        end=day(line.get("endDate", ""), language),
    )


FILTERS = (money, account_number, day, months, oslo, moment_in, abridged, tone, payment_kind)  # of the templates
