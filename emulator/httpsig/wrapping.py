"""RFC 2047 wrapping of a Signature header with values beyond ASCII (SPEC 5.2 rule 4)."""

from __future__ import annotations

import base64

CHARSETS = {"utf-8": "utf-8", "utf8": "utf-8", "iso-8859-1": "iso-8859-1", "latin1": "iso-8859-1"}


class WrappingUnreadable(ValueError):
    """The text begins like an encoded word and is none; the argument is a sentence."""


def is_wrapped(text: str) -> bool:
    """Whether the header value is an RFC 2047 encoded word (or tries to be)."""
    return text.startswith("=?")


def unwrap(text: str) -> str:
    """The text inside one encoded word, or inside several that follow each other; raise WrappingUnreadable.

    Charsets utf-8 and iso-8859-1, encodings B and Q (CONTRACT 3.1). Words may be longer than RFC 2047's 75
    characters, as SPEC 5.2 wraps the whole header in one.
    """
    from email.header import decode_header  # not needed to serve plain headers

    pieces: list[bytes] = []
    charset = ""
    rest = text.strip(" \t")
    while rest:
        if pieces and not is_wrapped(rest):
            raise WrappingUnreadable("after its encoded words it goes on in plain text; it is to be encoded whole")
        named, encoding, payload, rest = _word(rest)
        if charset not in ("", named):
            raise WrappingUnreadable("its encoded words name different charsets")
        charset = named
        if encoding == "B" and not _is_base64(payload):
            raise WrappingUnreadable("its encoded word is not valid base64")
        # email.header takes a blank for the end of a word; clients that wrap by hand leave blanks in.
        word = f"=?{charset}?{encoding}?{payload.replace(' ', '_')}?="
        decoded, _ = decode_header(word)[0]
        pieces.append(decoded if isinstance(decoded, bytes) else decoded.encode("latin-1", "replace"))
        rest = rest.lstrip(" \t")
    try:
        return b"".join(pieces).decode(charset or "ascii")
    except UnicodeDecodeError:
        raise WrappingUnreadable(f"its bytes are not {charset}, the charset that it names") from None


def _word(text: str) -> tuple[str, str, str, str]:
    """Charset, encoding and payload of the encoded word at the start of `text`, and what follows it."""
    parts = text.split("?", 4)
    if len(parts) < 5 or parts[0] != "=" or not parts[4].startswith("="):
        raise WrappingUnreadable("it is not of the RFC 2047 form =?charset?encoding?text?=")
    charset = CHARSETS.get(parts[1].partition("*")[0].lower())
    if charset is None:
        raise WrappingUnreadable(f"its charset {parts[1][:30]!r} is neither utf-8 nor iso-8859-1")
    encoding = parts[2].upper()
    if encoding not in ("B", "Q"):
        raise WrappingUnreadable(f"its encoding {parts[2][:30]!r} is neither B nor Q")
    if not parts[3].isascii():
        raise WrappingUnreadable("its encoded word holds characters beyond ASCII")
    return charset, encoding, parts[3], parts[4][1:]


def _is_base64(payload: str) -> bool:
    try:
        base64.b64decode(payload, validate=True)
    except ValueError:
        return False
    return True


def wrap(text: str, *, charset: str = "utf-8", encoding: str = "B") -> str:
    """`text` as one encoded word, e.g. `=?utf-8?B?<base64 of the signature header>?=`."""
    raw = text.encode(charset)
    if encoding == "B":
        return f"=?{charset}?B?{base64.b64encode(raw).decode()}?="
    quoted = "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"={byte:02X}" for byte in raw)
    return f"=?{charset}?Q?{quoted}?="
