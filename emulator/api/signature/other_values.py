"""Other values that a client may have signed instead of the request target, or of the value of a header.

Each has a stable name, and a phrase that continues the sentence "the signature was made over a signing string".
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote, unquote, urlencode

from emulator.api.signature.bodies import other_bodies
from emulator.api.signature.result import Inspection
from emulator.httpsig.dates import DAYS, MONTHS, DateUnreadable, format_date, parse_date
from emulator.httpsig.signing import HASHES, digest_value

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
# Headers in which proxies pass on the original path, or the part of it that they have removed.
_BEFORE_PROXY = (
    *("X-Forwarded-Prefix", "X-Forwarded-Path", "X-Forwarded-Uri"),
    *("X-Original-URI", "X-Original-URL", "X-Envoy-Original-Path"),
)
_MOST_PERMUTED = 4  # parameters of the query; 24 orders


def other_targets(inspection: Inspection) -> Iterator[tuple[str, str, str]]:
    """Other spellings of path and query: a stable name, a phrase and the text."""
    target = inspection.target
    path, mark, query = target.partition("?")
    if mark:
        yield "query-left-out", "without the query", path
        yield from _query_orders(path, query.split("&"))
        yield "query-decoded", "with the query decoded", f"{path}?{unquote(query)}"
        encoded = urlencode(parse_qsl(query, keep_blank_values=True))
        yield "query-encoded", "with the query encoded otherwise", f"{path}?{encoded}"
        yield "query-encoded", "with the query encoded otherwise", f"{path}?{encoded.replace('+', '%20')}"
    else:
        yield "query-mark", "with an empty query", f"{target}?"
    for prefix in _prefixes(path):
        shorter = target.removeprefix(prefix)
        yield "prefix-left-out", f"without {prefix} before the path", shorter
        if mark:
            phrase = f"without {prefix} before the path and without the query"
            yield "prefix-left-out", phrase, path.removeprefix(prefix)
    if not path.startswith("/api-sandbox/"):
        yield "prefix-added", "with /api-sandbox before the path", f"/api-sandbox{target}"
    for name in _BEFORE_PROXY:
        forwarded = inspection.present.get(name.lower())
        if forwarded:
            phrase = f"with the path of {name}, which a proxy has changed since"
            yield "path-before-proxy", phrase, forwarded.removesuffix("/") + target
            yield "path-before-proxy", phrase, forwarded
    for host in _hosts(inspection):
        for scheme in ("https", "http"):
            yield "whole-address", f"with the whole {scheme} address as target", f"{scheme}://{host}{target}"
            yield "whole-address", f"with the {scheme} address without query as target", f"{scheme}://{host}{path}"
        yield "host-in-target", "with the host before the path", host + target
    yield "target-decoded", "with the target decoded", unquote(target)
    yield "target-encoded", "with the target encoded", quote(target, safe="/?&=%")
    yield "target-encoded", "with the target encoded once more", quote(target, safe="/?&=")
    yield "slash-missing", "without the first slash of the path", target.removeprefix("/")
    slashed = f"{path.removesuffix('/')}{'' if path.endswith('/') else '/'}{mark}{query}"
    yield "final-slash", "with a slash more or less at the end of the path", slashed
    yield "target-lower-case", "with the target in lower case", target.lower()
    yield "path-encoded", "with the path encoded", f"{quote(path, safe='/')}{mark}{query}"
    yield "escapes-case", "with the escapes in upper case", _ESCAPE.sub(lambda escape: escape[0].upper(), target)
    yield "escapes-case", "with the escapes in lower case", _ESCAPE.sub(lambda escape: escape[0].lower(), target)


def _query_orders(path: str, parameters: list[str]) -> Iterator[tuple[str, str, str]]:
    """The parameters of the query sorted, and if they are few, in every order."""
    yield "query-sorted", "with the query sorted", f"{path}?{'&'.join(sorted(parameters))}"
    if len(parameters) <= _MOST_PERMUTED:
        for other in itertools.islice(itertools.permutations(parameters), 1, None):
            query = "&".join(other)
            yield "query-order", f"with the parameters of the query in another order: {query}", f"{path}?{query}"


def _hosts(inspection: Inspection) -> Iterator[str]:
    """The bank's host as a client may know it: as sent, before a proxy, and without its port."""
    for name in ("host", "x-forwarded-host"):
        if host := inspection.present.get(name):
            yield host
            yield host.rpartition(":")[0] or host


def _prefixes(path: str) -> Iterator[str]:
    """The part of the path before /v1, without and with /v1."""
    at = path.find("/v1/")
    if at > 0:
        yield path[:at]
    if at >= 0:
        yield path[: at + 3]


_SECONDS_APART = (1, -1, 2, -2, 3, -3, 4, -4, 5, -5)
_HOURS_APART = (1, 2, 3, -1, -2, -3, *range(4, 15), *range(-4, -13, -1))  # time zones, those of Europe first


def other_values(inspection: Inspection, name: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Other values for one header: a stable name, a phrase and the text."""
    if name in inspection.repeated:
        sent = [other.strip(" \t") for written, other in inspection.headers if written.lower() == name]
        yield "value-repeated", f"with the last {name} of {len(sent)}", sent[-1]
        for joiner in (", ", ","):
            yield "value-repeated", f"with the {len(sent)} values of {name} joined by commas", joiner.join(sent)
    if name == "date":
        yield from _other_dates(text)
    elif name == "digest":
        yield from _other_digests(text, inspection.body or b"")
    elif name == "host":
        host = text.rpartition(":")[0] or text
        yield "host", "with the host without its port", host
        forwarded = inspection.present.get("x-forwarded-host")
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
