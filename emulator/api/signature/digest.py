"""Other bytes that a client may have hashed instead of the body, and the cause of a Digest that does not match."""

from __future__ import annotations

import hashlib
import json
import zlib
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

from emulator.api.json_body import too_deep
from emulator.bank.errors import quoted
from emulator.bank.formats import is_plain
from emulator.httpsig.signing import HASHES, digest_value

_LARGEST = 64 * 1024  # bytes; a larger body is not hashed in forty other forms
_MOST_WRITTEN = 256 * 1024  # characters of all layouts together; an indented one grows with depth times length
_MOST_SHOWN = 20  # characters
_GZIP = b"\x1f\x8b"
_HASHES = {"SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512", "MD5": "md5"}
# How libraries serialize JSON, the common ways first: a phrase and the options of JSONEncoder.
_LAYOUTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("the JSON written compactly", {"separators": (",", ":")}),
    ("the JSON with blanks after commas and colons", {}),
    ("the JSON indented by 2", {"indent": 2}),
    ("the JSON indented by 4", {"indent": 4}),
    ("the JSON indented by tabs", {"indent": "\t"}),
    ("the JSON indented as Java does", {"indent": 2, "separators": (",", " : ")}),
)


def explain_digest(name: str, value: str, body: bytes) -> str:
    """Why `value` is not the base64 `name` hash of `body`, as a sentence."""
    cause = next((cause for other, cause in _other_values(name, body) if value == other), None)
    if value.lower() == HASHES[name](body).hexdigest():
        cause = "the hash is in hexadecimal, it must be base64"
    if cause is None:
        cause = _no_hash(name, value) or f"it is that of other bytes{_unless_json(body)}"
    expected = digest_value(body, name)
    return f"The Digest does not match the body of {len(body)} bytes that was received (expected {expected}): {cause}"


def _other_values(name: str, body: bytes) -> Iterator[tuple[str, str]]:
    """What may have been sent instead of the hash, and the cause that this would have."""
    raw = HASHES[name](body).digest()
    good, safe = b64encode(raw).decode(), urlsafe_b64encode(raw).decode()
    yield f":{good}:", "the value is between colons, as in Content-Digest (RFC 9530)"
    yield f"b'{good}'", "it is Python's repr of bytes; call decode() on them"
    yield f'"{good}"', "the value is in quotes"
    yield b64encode(good.encode()).decode(), "the base64 is encoded twice"
    yield b64encode(raw.hex().encode()).decode(), "it is the base64 of the hexadecimal hash, not of its bytes"
    yield good.rstrip("="), "the padding of the base64 is missing"
    yield safe, "it is URL-safe base64, use the alphabet with + and /"
    yield safe.rstrip("="), "it is URL-safe base64 without padding"
    for other, function in _HASHES.items():
        hashed = hashlib.new(function, body, usedforsecurity=False).digest()
        yield b64encode(hashed).decode(), f"it is the {other} hash under the name {name}"
    for phrase, hashed in other_bodies(body):
        yield b64encode(HASHES[name](hashed).digest()).decode(), f"it was made over {phrase}"


def _no_hash(name: str, value: str) -> str | None:
    try:
        size = len(b64decode(value, validate=True))
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
    yield "the body without the blanks and newlines around it", body.strip()
    newlines = body.replace(b"\r\n", b"\n")
    yield "the body with CRLF in place of newlines", newlines.replace(b"\n", b"\r\n")
    yield "the body with newlines in place of CRLF", newlines
    yield "the body with a byte order mark", b"\xef\xbb\xbf" + body
    yield "the base64 text of the body", b64encode(body)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        yield "the body in UTF-8, while ISO-8859-1 was sent", body.decode("latin-1").encode()
        return
    yield "the body in UTF-16", text.encode("utf-16-le")
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
    escapings = (False,) if is_plain(text.encode()) else (False, True)  # for plain text both are the same
    left = _MOST_WRITTEN
    for phrase, options in _LAYOUTS:
        for suffix, sorted_ in (("", False), (" and sorted by name", True)):
            for escaped in escapings:
                layout = _written(value, options | {"sort_keys": sorted_, "ensure_ascii": escaped}, left)
                left -= len(layout)
                if left < 0:
                    return
                written = layout.encode("utf-8", "surrogatepass")
                yield phrase + suffix, written
                yield f"{phrase}{suffix}, with a newline at its end", written + b"\n"
                for more, old, new in (
                    (", with CRLF", b"\n", b"\r\n"),
                    (" and slashes escaped, as PHP does", b"/", b"\\/"),
                ):
                    if old in written:
                        yield phrase + suffix + more, written.replace(old, new)


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
