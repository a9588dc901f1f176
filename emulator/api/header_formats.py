"""The formats of header values, for the header gate and the OpenAPI document (CONTRACT 3.2, 13).

A check returns a description of the expected value, or None if the value is valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

Check = Callable[[str], str | None]

_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_PRINTABLE = re.compile(r"[ -~]{1,128}")
_METHOD = re.compile(r"ENGANGSKODEAPP_BIOMETRI|HA2|[A-Z]+_MOBILE|[A-Z]+ID")
_IDENTITY = re.compile(r"[0-9]{8,11}")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LOCATION = re.compile(r"GEO:(-?[0-9]{1,2}(?:\.[0-9]{1,15})?)[,;](-?[0-9]{1,3}(?:\.[0-9]{1,15})?)")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# RFC 3986: unreserved, reserved and whole percent escapes; `#` is left out, since a fragment is refused.
_URI = re.compile(r"(?:[A-Za-z0-9._~:/?@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})+")
_AUTHORITY = re.compile(r"//([^/?]*)")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]+)(?::[0-9]{1,5})?")
# Schemes that a browser executes or reads from, and schemes of other services; an app's own scheme is none of them.
_REFUSED = "javascript vbscript data file filesystem blob about view-source jar ftp ftps ws wss mailto tel sms urn"
_REFUSED_SCHEMES = frozenset(_REFUSED.split())
_LONGEST_URI = 2048  # assumed; not every browser supports longer ones


# Characters that the bank's systems cannot process anywhere in a request (SPEC 1): control characters, halves of a
# surrogate pair, and characters outside the basic multilingual plane (emoji).
UNPROCESSABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\U00010000-\U0010ffff]")


def kind_of(character: str) -> str:
    """A description of an unprocessable character, with its code point."""
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        kind = "half of a surrogate pair"
    elif code > 0xFFFF:
        kind = "a character outside the basic multilingual plane, such as an emoji"
    else:
        kind = "a control character"
    return f"{kind} (U+{code:04X})"


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a header: its check and its JSON Schema."""

    check: Check
    schema: Mapping[str, Any]

    def __call__(self, value: str) -> str | None:
        """A description of the expected value, or None if `value` is valid."""
        return self.check(value)


def fitting(pattern: re.Pattern[str], expected: str, **schema: Any) -> Format:
    """A check that `pattern` matches the whole value; `schema` replaces the pattern in the JSON Schema."""

    def check(value: str) -> str | None:
        return None if pattern.fullmatch(value) else expected

    return Format(check, {"type": "string", **(schema or {"pattern": f"^(?:{pattern.pattern})$"})})


def one_of(*values: str) -> Format:
    """A check against a list of values, which are case-sensitive."""
    expected = f"one of {', '.join(values)}"
    return Format(lambda value: None if value in values else expected, {"type": "string", "enum": list(values)})


def free_text(value: str) -> str | None:
    """Text that the bank's systems can process; a tab counts as a blank, as in HTTP."""
    match = UNPROCESSABLE.search(value.replace("\t", " "))
    return None if match is None else f"text without {kind_of(match.group())}"


@lru_cache(maxsize=1024)
def address(value: str) -> str | None:
    """An IPv4 or IPv6 address, without zone, brackets or port."""
    try:
        ip_address(value)
    except ValueError:
        return "an IPv4 or IPv6 address"
    return "an IPv6 address without a zone" if "%" in value else None


def port(value: str) -> str | None:
    """A port from 1 to 65535 without leading zeros."""
    return None if _PORT.fullmatch(value) and int(value) <= 65535 else "a port from 1 to 65535"


def location(value: str) -> str | None:
    """`GEO:<latitude>,<longitude>` in degrees; `;` as separator is also accepted (CONTRACT 3.2)."""
    match = _LOCATION.fullmatch(value)
    if match is None or abs(float(match.group(1))) > 90 or abs(float(match.group(2))) > 180:
        return "a place of the form GEO:<latitude>,<longitude>, such as GEO:59.913,10.752"
    return None


@lru_cache(maxsize=1024)
def redirect_uri(value: str) -> str | None:
    """An absolute http(s) or app address, without user info or fragment, at most 2048 characters (CONTRACT 3.2)."""
    scheme = _SCHEME.match(value)
    if scheme is None:
        return "an absolute address such as https://tpp.example/callback"
    if scheme.group(1).lower() in _REFUSED_SCHEMES:
        return "an http, https or app address, not one that a browser runs or reads from"
    if "#" in value:
        return "an address without a fragment"
    if len(value) > _LONGEST_URI or not _URI.fullmatch(value):
        return f"an address of at most {_LONGEST_URI} characters, with all characters outside RFC 3986 escaped"
    return _authority(scheme.group(1).lower(), value[scheme.end() :])


def _authority(scheme: str, rest: str) -> str | None:
    """Check the part after the scheme: it must have a host if it is a web address, and no user info."""
    match = _AUTHORITY.match(rest)
    authority = match.group(1) if match else ""
    if "@" in authority:
        return "an address without user info"
    if scheme in ("http", "https"):
        if not _HOST.fullmatch(authority):
            return "a web address with a host, and a port only in digits"
        return None if _known_port(authority) else "a web address with a port from 1 to 65535"
    if authority and not _HOST.fullmatch(authority):
        return "an app address with a well-formed host"
    return None if rest.strip("/") or match else "an app address that leads somewhere"


def _known_port(authority: str) -> bool:
    _, colon, digits = authority.rpartition(":")
    return not colon or not digits.isdigit() or 1 <= int(digits) <= 65535


UUID = fitting(_UUID, "a UUID such as 0b5c1e5e-6e0c-4b52-9a51-2c2a51b0d6a8", format="uuid")
PRINTABLE = fitting(_PRINTABLE, "1 to 128 printable ASCII characters")
TRUE_OR_FALSE = one_of("true", "false")

_TEXT = Format(free_text, {"type": "string"})

# By their names in SPEC 2.1. Accept, Accept-* and Host are read elsewhere; Digest, Signature and
# TPP-Signature-Certificate are checked by the signature gate.
FORMATS: Mapping[str, Format] = {
    "X-Request-ID": PRINTABLE,
    "TPP-Session-ID": PRINTABLE,
    "TPP-Redirect-URI": Format(redirect_uri, {"type": "string", "format": "uri", "maxLength": _LONGEST_URI}),
    "TPP-Redirect-Preferred": TRUE_OR_FALSE,
    "TPP-Brand-Logging-Information": _TEXT,
    "x-accept-fix": _TEXT,
    "PSU-ID": UUID,
    "X-PSU-IDENTITY": fitting(_IDENTITY, "a national identity number or D-number in digits"),
    "X-PSU-AuthMethod-Preferred": fitting(
        _METHOD, "ENGANGSKODEAPP_BIOMETRI, HA2, or a name that ends in _MOBILE or ID"
    ),
    "PSU-Corporate-ID": UUID,
    "PSU-Context": one_of("PRIVATE", "CORPORATE"),
    "PSU-IP-Address": Format(address, {"type": "string", "pattern": "^[0-9A-Fa-f:.]{2,45}$"}),  # IPv4 or IPv6
    "PSU-IP-Port": Format(port, {"type": "string", "pattern": f"^{_PORT.pattern}$"}),
    "PSU-User-Agent": _TEXT,
    "PSU-Accept": _TEXT,
    "PSU-Accept-Charset": _TEXT,
    "PSU-Accept-Encoding": _TEXT,
    "PSU-Accept-Language": _TEXT,
    "PSU-HTTP-Method": one_of("GET", "POST", "PUT", "PATCH", "DELETE"),
    "PSU-Device-ID": UUID,
    "PSU-Geo-Location": Format(location, {"type": "string", "pattern": f"^{_LOCATION.pattern}$"}),
}


# Headers that the signature gate reads (SPEC 5.2).
_SIGNING_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "Date": {"type": "string", "minLength": 24},
    "Digest": {"type": "string", "pattern": "^[Ss][Hh][Aa]-(256|512)=.+$"},
    "TPP-Signature-Certificate": {"type": "string", "minLength": 1},
    "Signature": {"type": "string", "minLength": 1},
}


def schema_of(name: str) -> Mapping[str, Any]:
    """JSON Schema of a header, by its name in SPEC 2.1."""
    return FORMATS[name].schema if name in FORMATS else _SIGNING_SCHEMAS[name]
