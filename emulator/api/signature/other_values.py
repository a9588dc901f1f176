"""What a client may have signed instead of the request target or the value of a header, or hashed instead of the body.

Each has a stable name, and a phrase that continues the sentence "the signature was made over a signing string".
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from emulator.api.json_body import is_plain, too_deep
from emulator.api.signature.result import Inspection
from emulator.bank.errors import quoted
from emulator.httpsig.dates import DAYS, MONTHS, DateUnreadable, format_date, parse_date
from emulator.httpsig.signing import HASHES, digest_value

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
# Headers in which proxies pass on the original path, or the part of it that they have removed.
_BEFORE_PROXY = (
    *("X-Forwarded-Prefix", "X-Forwarded-Path", "X-Forwarded-Uri"),
    *("X-Original-URI", "X-Original-URL", "X-Envoy-Original-Path"),
)
_MOST_PERMUTED = 4  # parameters of the query; 24 orders
_LARGEST = 64 * 1024  # bytes; a larger body is not hashed in forty other forms
_MOST_WRITTEN = 256 * 1024  # characters of all layouts together; an indented one grows with depth times length
_MOST_SHOWN = 20  # characters
_GZIP = b"\x1f\x8b"
_BY_LENGTH = {16: "MD5", 20: "SHA-1", 32: "SHA-256", 48: "SHA-384", 64: "SHA-512"}


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


# The Digest: other bytes that clients hash, and other forms of the hash


def other_bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Other bytes that a client may have hashed instead of `body`, each with a phrase that names them."""
    if body:
        yield "no body at all", b""
    if len(body) > _LARGEST:
        return
    if body.startswith(_GZIP):
        yield "the body before it was compressed: send it as it is", _unzipped(body)
    yield "the body with a newline at its end", body + b"\n"
    yield "the body with CRLF at its end", body + b"\r\n"
    stripped = body.strip()
    if stripped != body:
        yield "the body without the blanks and newlines around it", stripped
    if b"\n" in body:
        yield "the body with CRLF in place of newlines", body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        yield "the body with newlines in place of CRLF", body.replace(b"\r\n", b"\n")
    yield "the body with a byte order mark", b"\xef\xbb\xbf" + body
    yield "the base64 text of the body", base64.b64encode(body)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        yield "the body in UTF-8, while ISO-8859-1 was sent", body.decode("latin-1").encode()
        return
    yield "the body in UTF-16", text.encode("utf-16-le")
    if not text.isascii():
        yield "the body in ISO-8859-1", text.encode("latin-1", "replace")
    yield from _other_json(text)


def _unzipped(body: bytes) -> bytes:
    """The decompressed body, up to _LARGEST bytes; empty if it is not gzip."""
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(body, _LARGEST)
    except zlib.error:
        return b""


def _other_json(text: str) -> Iterator[tuple[str, bytes]]:
    if too_deep(text):
        return
    try:
        value = json.loads(text)
    except ValueError:
        return
    yield "the JSON text as a quoted string", json.dumps(text).encode()
    if isinstance(value, str):
        yield "the text inside the JSON string that was sent", value.encode("utf-8", "surrogatepass")
    left = _MOST_WRITTEN
    for phrase, options in _layouts(text):
        layout = _written(value, options, left)
        left -= len(layout)
        if left < 0:
            return
        written = layout.encode("utf-8", "surrogatepass")
        yield phrase, written
        yield f"{phrase}, with a newline at its end", written + b"\n"
        if b"\n" in written:
            yield f"{phrase}, with CRLF", written.replace(b"\n", b"\r\n")
        if b"/" in written:
            yield f"{phrase} and slashes escaped, as PHP does", written.replace(b"/", b"\\/")


def _layouts(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ways in which libraries serialize the JSON of `text`, the common ones first."""
    layouts: tuple[tuple[str, dict[str, Any]], ...] = (
        ("the JSON written compactly", {"separators": (",", ":")}),
        ("the JSON with blanks after commas and colons", {}),
        ("the JSON indented by 2", {"indent": 2}),
        ("the JSON indented by 4", {"indent": 4}),
        ("the JSON indented by tabs", {"indent": "\t"}),
        ("the JSON indented as Java does", {"indent": 2, "separators": (",", " : ")}),
    )
    escapings = (False,) if is_plain(text.encode()) else (False, True)  # for plain text both are the same
    for phrase, options in layouts:
        for suffix, sort in (("", False), (" and sorted by name", True)):
            for escaped in escapings:
                yield phrase + suffix, options | {"sort_keys": sort, "ensure_ascii": escaped}


def _written(value: Any, options: dict[str, Any], most: int) -> str:
    """`value` in one layout; an indented layout is cut soon after `most` characters."""
    encoder = json.JSONEncoder(**options)
    if encoder.indent is None:  # not much longer than the text itself, and encoded in C
        return encoder.encode(value)
    pieces, size = [], 0
    for piece in encoder.iterencode(value):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            break
    return "".join(pieces)


def explain_digest(name: str, value: str, body: bytes) -> str:
    """Why `value` is not the base64 `name` hash of `body`, as a sentence."""
    expected = digest_value(body, name)
    cause = _other_spelling(name, value, body) or _other_hash(name, value, body) or _other_bytes(name, value, body)
    if cause is None:
        cause = _no_hash(name, value) or f"it is that of other bytes{_unless_json(body)}"
    return f"The Digest does not match the body of {len(body)} bytes that was received (expected {expected}): {cause}"


def _other_spelling(name: str, value: str, body: bytes) -> str | None:
    raw = HASHES[name](body).digest()
    if value.lower() == raw.hex():
        return "the hash is in hexadecimal, it must be base64"
    good = base64.b64encode(raw).decode()
    safe = base64.urlsafe_b64encode(raw).decode()
    spellings = {  # a later entry wins if both alphabets give the same text
        safe.rstrip("="): "it is URL-safe base64 without padding",
        safe: "it is URL-safe base64, use the alphabet with + and /",
        good.rstrip("="): "the padding of the base64 is missing",
        base64.b64encode(raw.hex().encode()).decode(): "it is the base64 of the hexadecimal hash, not of its bytes",
        base64.b64encode(good.encode()).decode(): "the base64 is encoded twice",
        f'"{good}"': "the value is in quotes",
        f"b'{good}'": "it is Python's repr of bytes; call decode() on them",
        f":{good}:": "the value is between colons, as in Content-Digest (RFC 9530)",
    }
    return spellings.get(value)


def _other_hash(name: str, value: str, body: bytes) -> str | None:
    for other in ("sha1", "sha256", "sha384", "sha512", "md5"):
        if value == base64.b64encode(hashlib.new(other, body, usedforsecurity=False).digest()).decode():
            length = hashlib.new(other, usedforsecurity=False).digest_size
            return f"it is the {_BY_LENGTH[length]} hash under the name {name}"
    return None


def _no_hash(name: str, value: str) -> str | None:
    try:
        size = len(base64.b64decode(value, validate=True))
    except ValueError:
        return "it is not base64"
    expected = HASHES[name]().digest_size
    return None if size == expected else f"it is the base64 of {size} bytes, a {name} hash has {expected}"


def _unless_json(body: bytes) -> str:
    """A hint for a body that is not JSON: a client may have hashed an object and sent another form of it."""
    text = body.decode(errors="replace")  # the syntax of JSON is ASCII
    try:
        if 0 < len(body) <= _LARGEST and not too_deep(text):
            json.loads(text)
    except ValueError:
        return f", and the body is not JSON but {quoted(text[:_MOST_SHOWN])}"
    return ""


def _other_bytes(name: str, value: str, body: bytes) -> str | None:
    function = HASHES[name]
    for phrase, other in other_bodies(body):
        if value == base64.b64encode(function(other).digest()).decode():
            return f"it was made over {phrase}"
    return None
