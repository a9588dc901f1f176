"""Explains a Digest that does not match: other bytes that clients hash, and other forms of the hash."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator
from typing import Any

from emulator.api.json_body import is_plain, too_deep
from emulator.bank.errors import quoted
from emulator.httpsig.signing import HASHES, digest_value

_LARGEST = 64 * 1024  # bytes; a larger body is not hashed in forty other forms
_MOST_WRITTEN = 256 * 1024  # characters of all layouts together; an indented one grows with depth times length
_MOST_SHOWN = 20  # characters
_GZIP = b"\x1f\x8b"
_BY_LENGTH = {16: "MD5", 20: "SHA-1", 32: "SHA-256", 48: "SHA-384", 64: "SHA-512"}


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
