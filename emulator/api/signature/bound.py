"""What binds a request to a body and a moment: the Digest and Date headers (CONTRACT 3.1)."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from math import floor

from emulator.api.signature.evidence import Evidence
from emulator.api.signature.result import fault
from emulator.httpsig.dates import DateUnreadable, parse_date
from emulator.httpsig.digest import HASHES, parse_digest

_FURTHEST_ZONE = 14  # hours from GMT
_ON_ITS_WAY = 60  # seconds that a request may have taken, or its clock be wrong


def check_digest(found: Evidence) -> None:
    """A Digest that is sent is checked over the raw bytes of the body, whether or not it is required."""
    text, body = found.present.get("digest"), found.body
    if not text or body is None:
        return
    usual = text[:8].upper() == "SHA-256="
    if usual and text[8:] == b64encode(hashlib.sha256(body).digest()).decode():
        return
    trouble = _digest_trouble(text, body)
    if trouble is not None:
        found.faults.append(fault("Digest", trouble))


def _digest_trouble(text: str, body: bytes) -> str | None:
    known = [(name, value) for name, value in dict.fromkeys(parse_digest(text)) if name in HASHES]
    if not known:
        return f"The Digest names neither SHA-256 nor SHA-512 (write SHA-256=<base64>), it is {text[:60]!r}"
    for name, value in known:
        if value != b64encode(HASHES[name](body).digest()).decode():
            from emulator.api.signature import bodies  # only a refused request needs it

            return bodies.explain_digest(name, value, body)
    return None


def check_date(found: Evidence, instant: float, skew: int) -> None:
    """Date is RFC 7231 and within `skew` seconds of `instant`, the real time."""
    text = found.present.get("date")
    if not text:
        return
    try:
        seconds, note = parse_date(text)
    except DateUnreadable as error:
        found.faults.append(fault("Date", f"The header Date cannot be read: {error}"))
        return
    if note is not None:
        found.notes.append(note)
    difference = seconds - floor(instant)  # a Date has whole seconds: 300 s behind stays so until the next one
    if abs(difference) > skew:
        side = "behind" if difference < 0 else "ahead of"
        apart = f"{abs(difference):.0f} s {side} real time (bank time does not count)"
        text = f"The header Date is {apart}, at most {skew} s are allowed{_local_time(difference)}"
        found.faults.append(fault("Date", text))


def _local_time(difference: float) -> str:
    """A question where a clock may be right, and read in another time zone."""
    hours = round(difference / 3600)
    whole = abs(difference - hours * 3600) <= _ON_ITS_WAY and 0 < abs(hours) <= _FURTHEST_ZONE
    return " (whole hours: a local time called GMT?)" if whole else ""
