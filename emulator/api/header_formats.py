"""The format of each header of SPEC 2.1 (CONTRACT 3.2, 13): a check gives what was expected, or None when it fits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import ip_address

from emulator.api.characters import UNPROCESSABLE, kind_of

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
# Schemes that a browser would run or read from, and those of other services: none of an app's own.
_REFUSED = "javascript vbscript data file filesystem blob about view-source jar ftp ftps ws wss mailto tel sms urn"
_REFUSED_SCHEMES = frozenset(_REFUSED.split())
_LONGEST_URI = 2048  # assumed; longer ones do not survive every browser


def fitting(pattern: re.Pattern[str], expected: str) -> Check:
    """A check against a whole pattern."""

    def check(value: str) -> str | None:
        return None if pattern.fullmatch(value) else expected

    return check


def one_of(*values: str) -> Check:
    """A check against a list of values, spelt exactly so."""
    expected = f"one of {', '.join(values)}"
    return lambda value: None if value in values else expected


def free_text(value: str) -> str | None:
    """Text of what the bank's systems can process; HTTP takes a tab for a blank."""
    found = UNPROCESSABLE.search(value.replace("\t", " "))
    return None if found is None else f"text without {kind_of(found.group())}"


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
    """`GEO:<latitude>,<longitude>` in degrees; `;` between them is in use too (CONTRACT 3.2)."""
    found = _LOCATION.fullmatch(value)
    if found is None or abs(float(found.group(1))) > 90 or abs(float(found.group(2))) > 180:
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
        return f"an address of at most {_LONGEST_URI} characters, other characters than those of RFC 3986 escaped"
    return _authority(scheme.group(1).lower(), value[scheme.end() :])


def _authority(scheme: str, rest: str) -> str | None:
    """What is wrong behind the scheme: no host on the web, user info anywhere."""
    found = _AUTHORITY.match(rest)
    authority = found.group(1) if found else ""
    if "@" in authority:
        return "an address without user info"
    if scheme in ("http", "https"):
        if not _HOST.fullmatch(authority):
            return "a web address with a host, and a port only in digits"
        return None if _known_port(authority) else "a web address with a port from 1 to 65535"
    if authority and not _HOST.fullmatch(authority):
        return "an app address with a well-formed host"
    return None if rest.strip("/") or found else "an app address that leads somewhere"


def _known_port(authority: str) -> bool:
    _, colon, digits = authority.rpartition(":")
    return not colon or not digits.isdigit() or 1 <= int(digits) <= 65535


UUID: Check = fitting(_UUID, "a UUID such as 0b5c1e5e-6e0c-4b52-9a51-2c2a51b0d6a8")
PRINTABLE: Check = fitting(_PRINTABLE, "1 to 128 printable ASCII characters")
TRUE_OR_FALSE: Check = one_of("true", "false")

# The spelling of SPEC 2.1 -> its check. Accept, Accept-* and Host are read elsewhere; Digest, Signature and
# TPP-Signature-Certificate are the signature gate's.
FORMATS: Mapping[str, Check] = {
    "X-Request-ID": PRINTABLE,
    "TPP-Session-ID": PRINTABLE,
    "TPP-Redirect-URI": redirect_uri,
    "TPP-Redirect-Preferred": TRUE_OR_FALSE,
    "TPP-Brand-Logging-Information": free_text,
    "x-accept-fix": free_text,
    "PSU-ID": UUID,
    "X-PSU-IDENTITY": fitting(_IDENTITY, "a national identity number or D-number in digits"),
    "X-PSU-AuthMethod-Preferred": fitting(
        _METHOD, "ENGANGSKODEAPP_BIOMETRI, HA2, or a name that ends in _MOBILE or ID"
    ),
    "PSU-Corporate-ID": UUID,
    "PSU-Context": one_of("PRIVATE", "CORPORATE"),
    "PSU-IP-Address": address,
    "PSU-IP-Port": port,
    "PSU-User-Agent": free_text,
    "PSU-Accept": free_text,
    "PSU-Accept-Charset": free_text,
    "PSU-Accept-Encoding": free_text,
    "PSU-Accept-Language": free_text,
    "PSU-HTTP-Method": one_of("GET", "POST", "PUT", "PATCH", "DELETE"),
    "PSU-Device-ID": UUID,
    "PSU-Geo-Location": location,
}
