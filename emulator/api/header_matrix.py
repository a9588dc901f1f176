"""The matrix of headers: which operation requires or takes which, and their formats (headers.md).

`headers.py` checks the headers of a request by it; the OpenAPI document and the manual show it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from emulator.bank.formats import (
    LONGEST_URI,
    NATIONAL_NUMBER,
    PORT,
    TRUE_OR_FALSE,
    UNPROCESSABLE,
    UUID,
    Format,
    kind_of,
    matching,
    one_of,
    unusable_address,
    where,
)

# The columns of the matrix below in its order; each operation names one of them.
BASKET_POST = "basket-post"
BASKET_GET = "basket-get"  # also payment GET, status, DELETE, authorisations
INSTANT_POST = "instant-post"
TRANSFER_POST = "transfer-post"  # SEPA, and every other payment POST
DETAILS = "details"  # also accounts, cards, consents, user(s), agreements
SANDBOX = "sandbox"  # also contact information
COLUMNS = (BASKET_POST, BASKET_GET, INSTANT_POST, TRANSFER_POST, DETAILS, SANDBOX)

# R required, O optional, - not part of the operation; one letter per column. Beyond the real bank's matrix:
# PSU-Corporate-ID is optional on every payment operation, INDCTS too; X-PSU-IDENTITY may replace PSU-ID on all payment
# and basket operations (after a declined first SCA there is no PSU-ID).
_ROWS = """
    x-accept-fix                   R R R R R -
    Accept                         O O O O O O
    Accept-Charset                 O O O O O O
    Accept-Encoding                O O O O O O
    Accept-Language                O O O O O O
    Host                           O O O O O O
    X-Request-ID                   R R R R R R
    TPP-Session-ID                 R R R R R -
    TPP-Redirect-URI               R R R R R -
    TPP-Redirect-Preferred         O O O O O -
    TPP-Brand-Logging-Information  - - O O - -
    Digest                         - - R R - -
    TPP-Signature-Certificate      R R R R R R
    Signature                      R R R R R R
    PSU-ID                         R R R R O -
    X-PSU-IDENTITY                 O O O O - -
    X-PSU-AuthMethod-Preferred     - - O O - -
    PSU-Corporate-ID               O O O O O -
    PSU-Context                    - - O O O -
    PSU-IP-Address                 R R R R O -
    PSU-IP-Port                    O O O O O -
    PSU-User-Agent                 O O O O O -
    PSU-Accept                     O O O O O -
    PSU-Accept-Charset             O O O O O -
    PSU-Accept-Encoding            O O O O O -
    PSU-Accept-Language            O O O O O -
    PSU-HTTP-Method                O O O O O -
    PSU-Device-ID                  O O O O O -
    PSU-Geo-Location               O O O O O -
"""
MATRIX: Mapping[str, Mapping[str, str]] = {
    name: dict(zip(COLUMNS, marks, strict=True)) for name, *marks in map(str.split, _ROWS.strip().splitlines())
}


# Formats

_PRINTABLE = re.compile(r"[ -~]{1,128}")
_METHOD = re.compile(r"ENGANGSKODEAPP_BIOMETRI|HA2|[A-Z]+_MOBILE|[A-Z]+ID")
_LOCATION = re.compile(r"GEO:(-?[0-9]{1,2}(?:\.[0-9]{1,15})?)[,;](-?[0-9]{1,3}(?:\.[0-9]{1,15})?)")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"//([^/?]*)")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]+)(?::[0-9]{1,5})?")
# Schemes that a browser executes or reads from, and schemes of other services; an app's own scheme is none of them.
_REFUSED = "javascript vbscript data file filesystem blob about view-source jar ftp ftps ws wss mailto tel sms urn"
_REFUSED_SCHEMES = frozenset(_REFUSED.split())


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


def location(value: str) -> bool:
    """`GEO:<latitude>,<longitude>` in degrees; `;` as separator is also accepted."""
    match = _LOCATION.fullmatch(value)
    return match is not None and abs(float(match.group(1))) <= 90 and abs(float(match.group(2))) <= 180


@lru_cache(maxsize=1024)
def redirect_uri(value: str) -> str | None:
    """An absolute http(s) or app address, without user info or fragment, at most 2048 characters."""
    scheme = _SCHEME.match(value)
    if scheme is None:
        return "an absolute address such as https://tpp.example/callback"
    if scheme.group(1).lower() in _REFUSED_SCHEMES:
        return "an http, https or app address, not one that a browser runs or reads from"
    if "#" in value:
        return "an address without a fragment"
    return unusable_address(value) or _authority(scheme.group(1).lower(), value[scheme.end() :])


def _authority(scheme: str, rest: str) -> str | None:
    """Check the part after the scheme: it must have a host if it is a web address, and no user info."""
    match = _AUTHORITY.match(rest)
    authority = match.group(1) if match else ""
    if "@" in authority:
        return "an address without user info"
    if scheme in ("http", "https"):
        if not _HOST.fullmatch(authority):
            return "a web address with a host, and a port only in digits"
        _, colon, port = authority.rpartition(":")
        wrong = colon and port.isdigit() and not 1 <= int(port) <= 65535
        return "a web address with a port from 1 to 65535" if wrong else None
    if authority and not _HOST.fullmatch(authority):
        return "an app address with a well-formed host"
    return None if rest.strip("/") or match else "an app address that leads somewhere"


PRINTABLE = matching(_PRINTABLE, "1 to 128 printable ASCII characters")

_TEXT = Format("text", {"type": "string"}, free_text)

# By their names in the matrix, in its order. Accept, Accept-* and Host are read elsewhere; Digest, Signature and
# TPP-Signature-Certificate are checked by the signature gate.
FORMATS: Mapping[str, Format] = {
    "x-accept-fix": _TEXT,
    "X-Request-ID": PRINTABLE,
    "TPP-Session-ID": PRINTABLE,
    "TPP-Redirect-URI": Format(
        "an address", {"type": "string", "format": "uri", "maxLength": LONGEST_URI}, redirect_uri
    ),
    "TPP-Redirect-Preferred": TRUE_OR_FALSE,
    "TPP-Brand-Logging-Information": _TEXT,
    "PSU-ID": UUID,
    "X-PSU-IDENTITY": matching(NATIONAL_NUMBER, "a national identity number or D-number in digits"),
    "X-PSU-AuthMethod-Preferred": matching(
        _METHOD, "ENGANGSKODEAPP_BIOMETRI, HA2, or a name that ends in _MOBILE or ID"
    ),
    "PSU-Corporate-ID": UUID,
    "PSU-Context": one_of("PRIVATE", "CORPORATE"),
    "PSU-IP-Address": Format("an IP address", {"type": "string", "pattern": "^[0-9A-Fa-f:.]{2,45}$"}, address),
    "PSU-IP-Port": PORT,
    "PSU-User-Agent": _TEXT,
    "PSU-Accept": _TEXT,
    "PSU-Accept-Charset": _TEXT,
    "PSU-Accept-Encoding": _TEXT,
    "PSU-Accept-Language": _TEXT,
    "PSU-HTTP-Method": one_of("GET", "POST", "PUT", "PATCH", "DELETE"),
    "PSU-Device-ID": UUID,
    "PSU-Geo-Location": where(
        "a place of the form GEO:<latitude>,<longitude>, such as GEO:59.913,10.752",
        {"type": "string", "pattern": f"^{_LOCATION.pattern}$"},
        location,
    ),
}


# Headers that the signature gate reads.
_SIGNING_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "Date": {"type": "string", "minLength": 24},
    "Digest": {"type": "string", "pattern": "^[Ss][Hh][Aa]-(256|512)=.+$"},
    "TPP-Signature-Certificate": {"type": "string", "minLength": 1},
    "Signature": {"type": "string", "minLength": 1},
}


def schema_of(name: str) -> Mapping[str, Any]:
    """JSON Schema of a header, by its name in the matrix."""
    return FORMATS[name].schema if name in FORMATS else _SIGNING_SCHEMAS[name]
