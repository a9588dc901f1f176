"""Explains why the signature of a captured request is invalid, as data and as text (the command `explain`).

A capture is raw HTTP, output of `curl -v`, HAR, or an entry of the bank's request log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from emulator.api.operations import router
from emulator.api.router import split_target
from emulator.api.signature.check import SignatureRefused, collect, verdict
from emulator.api.signature.rules import Inspection, Terms
from emulator.bank.errors import BankError
from emulator.bank.settings import Settings
from emulator.httpsig.signing import DateUnreadable, parse_date


def explain(
    captured: str,
    *,
    now: datetime,
    body: bytes | None = None,
    settings: Settings | None = None,
) -> dict[str, Any]:
    """The verdict on the request in `captured` (see `read_capture`), as in the request log; raise CaptureUnreadable.

    `body` replaces the body of a capture that does not contain it. Dates are checked at the time of the request's own
    Date header, or at `now` (aware) if it cannot be parsed; `now` also determines the age of the request. The verdict
    in an entry of the bank's log is returned as it was logged, unless there is a `body` or are `settings`: an entry
    contains less than the bank received.
    """
    logged = _verdict_in(captured) if body is None and settings is None else None
    if logged is not None:
        return logged
    seen = read_capture(captured)
    if body is not None:
        seen = seen._replace(body=body)
    settings = settings or Settings()
    inspection = collect(seen.method, seen.target, seen.headers, seen.body)
    sent_at = _sent_at(inspection)
    try:
        data = verdict(inspection, Terms(_wants_digest(seen), settings, (sent_at or now).timestamp(), None)).diagnosis()
    except SignatureRefused as refused:
        data = refused.diagnosis()
    return data | _around(seen, inspection, sent_at, now, settings)


def _around(
    seen: Capture, inspection: Inspection, sent_at: datetime | None, now: datetime, settings: Settings
) -> dict[str, Any]:
    """What the verdict leaves out, and the facts that only the bank that received the request can know."""
    remarks = []
    if seen.body is None and "digest" in inspection.present:
        remarks.append("The capture does not show the body as it was sent, so the Digest was not compared with it.")
    if sent_at is not None and abs((now - sent_at).total_seconds()) > settings.date_skew:
        when = f"{sent_at:%Y-%m-%d %H:%M:%S} UTC"
        remarks.append(f"The request was sent at {when}; sent again now, its Date would be refused.")
    received = "now, as it has no usable Date" if sent_at is None else f"at its Date, {sent_at:%Y-%m-%d %H:%M:%S} UTC"
    values = ", ".join(f"{name}={getattr(settings, name)}" for name in ("profile", "trust", "date_skew"))
    assumed = [
        f"The bank has the settings {values}.",
        f"The bank received the request {received}, and exactly as in the capture.",
    ]
    return {**({"remarks": remarks} if remarks else {}), "assumed": assumed}


def as_text(verdict: dict[str, Any]) -> str:
    """A verdict, which may be the member `signature` of a log entry, as lines of text; raise CaptureUnreadable."""
    try:
        return "\n".join(_lines(verdict)) + "\n"
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
        return router().find(seen.method, path[max(path.find("/v1/"), 0) :]).digest
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


# Captures

_EMPTY_LINE = re.compile(r"\r\n\r\n|\n\n")
_ANSWER = re.compile(rb"(?:\A|\r?\n)\s*HTTP/[0-9.]+ [0-9]{3}")
_LENGTH = re.compile(r"[0-9]{1,9}")
_ESCAPED = re.compile("[\udc80-\udcff]")  # a byte that surrogateescape has decoded
_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")


class CaptureUnreadable(ValueError):
    """The text is not a captured request; the argument says why."""


class Capture(NamedTuple):
    """A request as it was sent; `body` is None if the capture does not show it as it was sent."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None


def read_capture(text: str) -> Capture:
    """The request in `text`, in any of the supported formats; bytes that are not UTF-8 are surrogate escapes.

    Raises CaptureUnreadable.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith(("{", "[")):
        return _from_json(stripped)
    lines = stripped.splitlines()
    if any(line.startswith("> ") for line in lines):
        return _from_curl(lines)
    return _from_http(stripped)


def _from_curl(lines: list[str]) -> Capture:
    """The last request in the lines that `curl -v` marks with `>`; they do not contain the body."""
    sent = [line[2:].rstrip("\r") for line in lines if line.startswith(("> ", ">\t"))]
    starts = [at for at, line in enumerate(sent) if line.split(" ")[0] in _METHODS]
    if not starts:
        raise CaptureUnreadable("after > there is no request line such as `> GET /v1/accounts HTTP/1.1`")
    method, target = _request_line(sent[starts[-1]])
    headers = _headers(sent[starts[-1] + 1 :])
    return Capture(method, target, headers, None if _has_body(headers) else b"")


def _has_body(headers: Iterable[tuple[str, str]]) -> bool:
    given = {name.lower(): value for name, value in headers}
    length = given.get("content-length", "unknown" if "content-type" in given else "0")  # HTTP/2 may send none
    return length != "0" or "transfer-encoding" in given


def _from_http(text: str) -> Capture:
    """A request line, headers, an empty line, and the body."""
    head, body = [*_EMPTY_LINE.split(text, maxsplit=1), ""][:2]
    first, *rest = head.splitlines() or [""]
    method, target = _request_line(first)
    headers = _headers(rest)
    return Capture(method, target, headers, _sent_body(body.encode("utf-8", "surrogateescape"), headers))


def _sent_body(shown: bytes, headers: Iterable[tuple[str, str]]) -> bytes | None:
    """The body that was sent, or None if it is not shown as sent: in chunks, or indented as some tools do.

    Text after the body is removed: the answer that a tool printed, and by Content-Length blanks added by an editor.
    """
    for name, value in headers:
        if name.lower() == "transfer-encoding":
            return None
        if name.lower() == "content-length" and _LENGTH.fullmatch(value):
            sent, after = shown[: int(value)], shown[int(value) :].lstrip()
            return sent if len(sent) == int(value) and (not after or after.startswith(b"HTTP/")) else None
    return _ANSWER.split(shown, maxsplit=1)[0]


def _request_line(line: str) -> tuple[str, str]:
    parts = line.strip().split(" ")
    if len(parts) < 2 or not parts[0].isalpha() or not parts[0].isupper():
        raise CaptureUnreadable(f"a request line such as `GET /v1/accounts HTTP/1.1` was expected, found {line[:60]!r}")
    target = " ".join(parts[1:-1]) if parts[-1].startswith("HTTP/") else " ".join(parts[1:])
    return parts[0], _target(target)


def _target(url: str) -> str:
    if "://" not in url.partition("?")[0]:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        raise CaptureUnreadable(f"the address {url[:60]!r} cannot be read") from None
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _headers(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if line[:1] in (" ", "\t") and pairs:  # a folded line continues the one before
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {line.strip()}")
        elif colon and name.strip():
            pairs.append((name.strip(), value.strip()))
    return tuple(
        # as the bank decodes them: as ISO-8859-1 if it is not UTF-8
        (name, value.encode("utf-8", "surrogateescape").decode("latin-1") if _ESCAPED.search(value) else value)
        for name, value in pairs
    )


def _from_json(text: str) -> Capture:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CaptureUnreadable(f"it looks like JSON but is not ({error})") from None
    request = _find_request(value)
    if request is None:
        raise CaptureUnreadable("the JSON does not contain a request with method, url (or target) and headers")
    headers = tuple(_pairs(request["headers"]))
    return Capture(request["method"].upper(), _target(request.get("target") or request["url"]), headers, _body(request))


def _find_request(value: Any) -> dict[str, Any] | None:
    """The last signed request in HAR, a HAR entry, a log entry or a bare request; else the last one."""
    requests = list(_requests(value, depth=0))
    signed = [one for one in requests if any(name.lower() == "signature" for name, _ in _pairs(one["headers"]))]
    best = signed or requests
    return best[-1] if best else None


def _requests(value: Any, depth: int) -> Iterable[dict[str, Any]]:
    if depth > 8:
        return
    if isinstance(value, list):
        for item in value:
            yield from _requests(item, depth + 1)
    elif isinstance(value, dict):
        if _is_request(value):
            yield value
            return
        for name in ("log", "entries", "requests", "request"):
            if name in value:
                yield from _requests(value[name], depth + 1)


def _is_request(value: dict[str, Any]) -> bool:
    where = value.get("target") or value.get("url")
    headers = value.get("headers")
    return isinstance(value.get("method"), str) and isinstance(where, str) and isinstance(headers, list | dict)


def _pairs(headers: Any) -> Iterable[tuple[str, str]]:
    """Headers as an object, as pairs, or as objects with name and value."""
    if isinstance(headers, dict):
        headers = list(headers.items())
    for header in headers:
        if isinstance(header, dict):
            header = (header.get("name"), header.get("value"))
        if isinstance(header, list | tuple) and len(header) == 2 and isinstance(header[0], str):
            values = header[1] if isinstance(header[1], list) else [header[1]]
            yield from ((header[0], str(value)) for value in values if not header[0].startswith(":"))


def _body(request: dict[str, Any]) -> bytes | None:
    posted = request.get("postData")
    content = request.get("body") if posted is None else posted
    text = posted.get("text") if isinstance(posted, dict) else content
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    return None if content is not None or _has_body(_pairs(request["headers"])) else b""
