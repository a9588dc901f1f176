"""Explains why the signature of a captured request is invalid, as data and as text (the command `explain`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from emulator.api.operation import routes
from emulator.api.operations import table
from emulator.api.router import split_target
from emulator.api.signature.captures import Capture, CaptureUnreadable, read_capture
from emulator.api.signature.check import collect, verdict
from emulator.api.signature.result import Inspection, SignaturePolicy, SignatureRefused, Terms
from emulator.bank.errors import BankError
from emulator.httpsig.dates import DateUnreadable, parse_date


class Explanation(NamedTuple):
    """`valid`, the diagnosis as a JSON object (as in the request log), and the diagnosis as lines of text."""

    valid: bool
    data: dict[str, Any]
    text: str


def explain(
    captured: str,
    *,
    now: datetime,
    body: bytes | None = None,
    policy: SignaturePolicy | None = None,
) -> Explanation:
    """Explain the request in `captured` (see `read_capture`); raise CaptureUnreadable.

    `body` replaces the body of a capture that does not contain it. Dates are checked at the time of the request's own
    Date header, or at `now` (aware) if it cannot be parsed; `now` also determines the age of the request. The verdict
    in an entry of the bank's log is returned as it was logged, unless there is a `body` or `policy`: an entry contains
    less than the bank received.
    """
    logged = _verdict_in(captured) if body is None and policy is None else None
    if logged is not None:
        return explain_verdict(logged)
    seen = read_capture(captured)
    if body is not None:
        seen = seen._replace(body=body)
    rules = policy or SignaturePolicy()
    inspection = collect(seen.method, seen.target, seen.headers, seen.body)
    sent_at = _sent_at(inspection)
    try:
        data = verdict(inspection, Terms(_wants_digest(seen), rules, (sent_at or now).timestamp(), None)).diagnosis()
    except SignatureRefused as refused:
        data = refused.diagnosis()
    return _explanation(data | _around(seen, inspection, sent_at, now, rules))


def _around(
    seen: Capture, inspection: Inspection, sent_at: datetime | None, now: datetime, rules: SignaturePolicy
) -> dict[str, Any]:
    """What the verdict leaves out, and the facts that only the bank that received the request can know."""
    remarks = []
    if seen.body is None and "digest" in inspection.present:
        remarks.append("The capture does not contain the complete body, so the Digest was not compared with it.")
    if sent_at is not None and abs((now - sent_at).total_seconds()) > rules.date_skew:
        when = f"{sent_at:%Y-%m-%d %H:%M:%S} UTC"
        remarks.append(f"The request was sent at {when}; sent again now, its Date would be refused.")
    received = "now, as it has no usable Date" if sent_at is None else f"at its Date, {sent_at:%Y-%m-%d %H:%M:%S} UTC"
    assumed = [
        f"The bank has the settings profile={rules.profile}, trust={rules.trust}, date_skew={rules.date_skew}.",
        f"The bank received the request {received}, and exactly as in the capture.",
    ]
    return {**({"remarks": remarks} if remarks else {}), "assumed": assumed}


def explain_verdict(verdict: dict[str, Any]) -> Explanation:
    """The explanation for a bank's own verdict, the member `signature` of a log entry; raise CaptureUnreadable."""
    try:
        return _explanation(verdict)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CaptureUnreadable("its member signature does not have the form that a bank writes") from None


def _verdict_in(captured: str) -> dict[str, Any] | None:
    """The bank's own verdict, if `captured` is an entry of its log with one."""
    try:
        entry = json.loads(captured.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None
    verdict = entry.get("signature") if isinstance(entry, dict) else None
    return verdict if isinstance(verdict, dict) and isinstance(verdict.get("valid"), bool) else None


def _explanation(data: dict[str, Any]) -> Explanation:
    return Explanation(data["valid"], data, "\n".join(_lines(data)) + "\n")


def _sent_at(inspection: Inspection) -> datetime | None:
    try:
        seconds, _ = parse_date(inspection.present.get("date", ""))
        return datetime.fromtimestamp(seconds, UTC)
    except (DateUnreadable, ValueError, OverflowError, OSError):
        return None


def _wants_digest(seen: Capture) -> bool:
    """Whether the route requires a Digest; the path before /v1 is ignored, because it differs between banks."""
    path, _ = split_target(seen.target)
    try:
        return routes(table()).find(seen.method, path[max(path.find("/v1/"), 0) :]).digest
    except BankError:
        return False


def _lines(data: dict[str, Any]) -> Iterator[str]:
    if data["valid"]:
        yield f"The signature is valid. TPP {data['tpp']}, roles {', '.join(data['roles']) or 'none'}."
    else:
        yield "The bank refuses this request:"
        for message in data["messages"]:
            yield f"  {message['path']}: {message['text']}"
    own, likely = data.get("signingString"), data.get("likelySent")
    for title, text in (
        ("The bank's signing string:", own),
        ("The signing string that was signed instead:", likely if likely != own else None),
    ):
        if text is not None:
            yield from ("", title, *(f"  {_visible(line)}" for line in text.split("\n")))
    place = data.get("firstDifference") if likely != own else None
    if place is not None:
        yield ""
        yield f"First difference: line {place['line']}, column {place['column']}"
        yield f"  bank    {_visible(place['expected'])}"
        yield f"  client  {_visible(place['sent'])}"
        yield f"          {' ' * (len(_visible((place['sent'] or '')[: place['column'] - 1])))}^"
    key_id = data.get("keyId", {})
    if "firstDifference" in key_id:
        yield ""
        yield "The keyId:"
        yield f"  expected  {key_id['expected']}"
        yield f"  sent      {key_id['sent']}"
        yield f"            {' ' * len(key_id['sent'][: key_id['firstDifference']['column'] - 1])}^"
    for title, member in (
        ("Accepted, although not in the documented form:", "notes"),
        ("Remarks:", "remarks"),
        ("Assumed, because no bank was asked:", "assumed"),
    ):
        if data.get(member):
            yield from ("", title, *(f"  {line}" for line in data[member]))


def _visible(line: str | None) -> str:
    """`line` with invisible characters escaped."""
    if line is None:
        return "(no such line)"
    shown = "".join(character if character.isprintable() else repr(character)[1:-1] for character in line)
    return shown[:-1] + "·" if shown.endswith(" ") else shown
