"""Requests that are spoilt on purpose, by name: what a bank must refuse."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

from emulator.httpsig.dates import format_date, parse_date
from emulator.httpsig.signing import REQUEST_TARGET, digest_value, header_text, signature_of, signing_string

Headers = dict[str, str]
Lines = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A request before it is signed: the headers to send and the lines to sign.

    `listed` and `claimed` are what the Signature header says was signed and with which algorithm, where that is
    not the truth; `finish` changes the signature itself.
    """

    headers: Headers
    lines: Lines
    key_id: str
    key: RSAPrivateKey
    algorithm: str
    listed: tuple[str, ...] | None = None
    claimed: str | None = None
    finish: Callable[[str], str] | None = None

    def signed(self) -> Headers:
        """The headers with their Signature."""
        text = signing_string(self.lines)
        signature = signature_of(text, self.key, self.algorithm)
        header = header_text(
            key_id=self.key_id,
            algorithm=self.claimed or self.algorithm,
            names=self.listed or [name for name, _ in self.lines],
            signature=self.finish(signature) if self.finish else signature,
            ascii_only=text.isascii(),
        )
        return {**self.headers, "Signature": header}

    def over(self, lines: Lines) -> Draft:
        """A draft that signs `lines` and lists what it should have signed."""
        return replace(self, lines=lines, listed=tuple(name for name, _ in self.lines))


@cache
def _stranger() -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=2048)


def _bit_flipped(signature: str) -> str:
    raw = bytearray(base64.b64decode(signature))
    raw[-1] ^= 1
    return base64.b64encode(raw).decode()


def _without_query(lines: Lines) -> Lines:
    return [(name, value.partition("?")[0] if name == REQUEST_TARGET else value) for name, value in lines]


def _later(date: str, seconds: int) -> str:
    return format_date(datetime.fromtimestamp(parse_date(date)[0] + seconds, UTC))


def _renewed(headers: Headers, name: str, change: Callable[[str], str]) -> Headers:
    return {kept: change(value) if kept.lower() == name else value for kept, value in headers.items()}


def _old(draft: Draft) -> Headers:
    hour = -3600
    lines = [(name, _later(value, hour) if name == "date" else value) for name, value in draft.lines]
    headers = _renewed(draft.headers, "date", lambda value: _later(value, hour))
    return replace(draft, headers=headers, lines=lines).signed()


def _serial(draft: Draft, change: Callable[[str], str]) -> Headers:
    serial, comma, issuer = draft.key_id.partition(",")
    return replace(draft, key_id=f"SN={change(serial[3:])}{comma}{issuer}").signed()


def _without(draft: Draft, name: str) -> Headers:
    return {kept: value for kept, value in draft.signed().items() if kept.lower() != name}


def _unlisted(draft: Draft, name: str) -> Headers:
    return replace(draft, lines=[line for line in draft.lines if line[0] != name]).signed()


TAMPERINGS: Mapping[str, Callable[[Draft], Headers]] = {
    "no-signature": lambda draft: _without(draft, "signature"),
    "no-certificate": lambda draft: _without(draft, "tpp-signature-certificate"),
    "no-date": lambda draft: _without(draft, "date"),
    "no-digest": lambda draft: _without(draft, "digest"),
    "unlisted": lambda draft: _unlisted(draft, "x-request-id"),
    "leading-word": lambda draft: _renewed(draft.signed(), "signature", lambda value: f"Signature {value}"),
    "algorithm": lambda draft: replace(draft, claimed="hs2019").signed(),
    "other-serial": lambda draft: _serial(draft, lambda serial: f"{int(serial, 16) + 1:X}"),
    "lower-case-serial": lambda draft: _serial(draft, str.lower),
    "other-key": lambda draft: replace(draft, key=_stranger()).signed(),
    "bit-flipped": lambda draft: replace(draft, finish=_bit_flipped).signed(),
    "old-date": _old,
    "other-date": lambda draft: _renewed(draft.signed(), "date", lambda value: _later(value, 1)),
    "other-body": lambda draft: _renewed(draft.signed(), "digest", lambda _: digest_value(b"another body")),
    "reordered": lambda draft: draft.over(draft.lines[::-1]).signed(),
    "without-query": lambda draft: draft.over(_without_query(draft.lines)).signed(),
}


def tampered(draft: Draft, name: str) -> Headers:
    """The headers of `draft` spoilt as `name` says; raise ValueError for a name that is not in TAMPERINGS."""
    if name not in TAMPERINGS:
        raise ValueError(f"there is no tampering {name!r}; there are {', '.join(TAMPERINGS)}")
    return TAMPERINGS[name](draft)
