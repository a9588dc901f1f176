"""The usual mistakes in the values of signed headers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

from emulator.api.signature.bodies import other_bodies
from emulator.api.signature.evidence import Evidence
from emulator.api.signature.recipe import Mistake, each, value
from emulator.httpsig.dates import DAYS, MONTHS, DateUnreadable, format_date, parse_date
from emulator.httpsig.digest import HASHES, digest_value
from emulator.httpsig.message import REQUEST_TARGET

_SECONDS_APART = (1, -1, 2, -2, 3, -3, 4, -4, 5, -5)
_HOURS_APART = (1, 2, 3, -1, -2, -3, *range(4, 15), *range(-4, -13, -1))  # of the zones, those of Europe first


def value_mistakes(found: Evidence) -> Iterator[Mistake]:
    """Values other than those sent."""
    for name in found.names:
        if name != REQUEST_TARGET:
            for kind, phrase, text in other_values(found, name, found.present[name]):
                yield Mistake(kind, phrase, value(name, text))
    lower = each(lambda name, text: (name, text.lower()))
    yield Mistake("values-lower-case", "with the values in lower case", lower)
    upper = each(lambda name, text: (name, text if name == REQUEST_TARGET else text.upper()))
    yield Mistake("values-upper-case", "with the values in upper case", upper)
    quoted = each(lambda name, text: (name, text if name == REQUEST_TARGET else f'"{text}"'))
    yield Mistake("values-quoted", "with the values in quotes", quoted)


def other_values(found: Evidence, name: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Other values for one header: a stable name, a phrase and the text."""
    if name in found.repeated:
        sent = [other.strip(" \t") for written, other in found.headers if written.lower() == name]
        yield "value-repeated", f"with the last {name} of {len(sent)}", sent[-1]
        for joiner in (", ", ","):
            yield "value-repeated", f"with the {len(sent)} values of {name} joined by commas", joiner.join(sent)
    if name == "date":
        yield from _other_dates(text)
    elif name == "digest":
        yield from _other_digests(text, found.body or b"")
    elif name == "host":
        host = text.rpartition(":")[0] or text
        yield "host", "with the host without its port", host
        forwarded = found.present.get("x-forwarded-host")
        if forwarded:
            yield "host", "with the host of X-Forwarded-Host, which a proxy has changed since", forwarded
        for port in ("80", "443", "8080"):
            yield "host", f"with the port {port} after the host", f"{host}:{port}"
    elif name == "content-type":
        plain = text.partition(";")[0].rstrip(" ")
        for written in ("", "; charset=utf-8", ";charset=utf-8", "; charset=UTF-8", ";charset=UTF-8"):
            phrase = f"with the content-type {plain}{written}: the library that sends it writes another charset or none"
            yield "content-type", phrase, plain + written
    elif name == "tpp-redirect-uri":
        yield "redirect-uri-decoded", "with TPP-Redirect-URI decoded", unquote(text)
        yield "redirect-uri-encoded", "with TPP-Redirect-URI encoded", quote(text, safe="")
        yield "redirect-uri-slash", "with a slash more at the end of TPP-Redirect-URI", text + "/"
        yield "redirect-uri-slash", "with a slash less at the end of TPP-Redirect-URI", text.removesuffix("/")
    yield "value-case", f"with {name} in lower case", text.lower()
    yield "value-case", f"with {name} in upper case", text.upper()
    yield "value-blanks", f"with a blank at the end of {name}", text + " "
    yield "value-blanks", f"with a blank before the value of {name}", " " + text
    yield "value-newline", f"with a newline at the end of {name}", text + "\n"
    yield "value-empty", f"with an empty {name}", ""
    if not text.isascii():
        yield "value-latin-1", f"with {name} in ISO-8859-1 read as UTF-8", text.encode().decode("latin-1")


def _other_dates(value: str) -> Iterator[tuple[str, str, str]]:
    try:
        seconds, _ = parse_date(value)
        moment = datetime.fromtimestamp(seconds, UTC)
        apart = [(shift, moment + timedelta(seconds=shift)) for shift in _SECONDS_APART]
        local = [moment + timedelta(hours=shift) for shift in _HOURS_APART]
    except (DateUnreadable, ValueError, OverflowError):
        return
    for shift, other in apart:
        kind = "later" if shift > 0 else "earlier"
        phrase = f"with a date {abs(shift)} s {kind} than the header Date: the clock was read twice"
        yield "date-read-twice", phrase, format_date(other)
    for other in local:
        text = format_date(other)
        yield "date-local", f"with the date {text!r}, which is not the header Date: a local time called GMT?", text
    day, month = DAYS[moment.weekday()], MONTHS[moment.month - 1]
    clock = f"{moment:%H:%M:%S}"
    for text in (
        moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        moment.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        moment.strftime("%Y-%m-%dT%H:%M:%S+00:00"),
        moment.strftime("%Y-%m-%d %H:%M:%S"),
        f"{day}, {moment:%d} {month} {moment:%Y} {clock} +0000",
        f"{day}, {moment:%d} {month} {moment:%Y} {clock} -0000",
        f"{day}, {moment:%d} {month} {moment:%Y} {clock} UTC",
        f"{day}, {moment.day} {month} {moment:%Y} {clock} GMT",
        f"{day} {month} {moment.day:2d} {clock} {moment:%Y}",
        str(int(seconds)),
        str(int(seconds * 1000)),
    ):
        yield "date-format", f"with the date written as {text!r}, not as the header Date", text
    if value != format_date(moment):
        yield "date-format", "with the date as RFC 7231 writes it, not as the header Date", format_date(moment)


def _other_digests(value: str, body: bytes) -> Iterator[tuple[str, str, str]]:
    name, _, encoded = value.partition("=")
    yield "digest-without-name", "with the hash alone as digest, without SHA-256=", encoded
    yield "digest-name-case", "with the algorithm of the digest in lower case", f"{name.lower()}={encoded}"
    yield "digest-name-case", "with the algorithm of the digest in upper case", f"{name.upper()}={encoded}"
    yield "digest-blank", "with a blank in the digest", f"{name}= {encoded}"
    for algorithm in HASHES:
        right = digest_value(body, algorithm)
        raw = HASHES[algorithm](body).digest()
        if right != value:
            yield "digest-of-body", f"with the {algorithm} digest of the body, not with the header Digest", right
        yield "digest-hexadecimal", "with the digest in hexadecimal", f"{algorithm}={raw.hex()}"
        yield "digest-hexadecimal", "with the digest in hexadecimal, without its name", raw.hex()
        safe = base64.urlsafe_b64encode(raw).decode()
        yield "digest-url-safe", "with the digest in URL-safe base64", f"{algorithm}={safe}"
    for phrase, other in other_bodies(body):
        yield "digest-of-other-bytes", f"with the digest of {phrase}", digest_value(other)
