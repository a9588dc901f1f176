"""The headers of a request: which operation requires or takes which, their formats, and their check (headers.md).

The OpenAPI document and the manual show the matrix and the formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_address
from itertools import compress
from operator import itemgetter
from typing import Any

from emulator.api.messages import Fields, HeaderPairs
from emulator.bank.errors import BankError, Message, quoted
from emulator.bank.formats import (
    LONGEST_URI,
    NATIONAL_NUMBER,
    PORT,
    TRUE_OR_FALSE,
    UNPROCESSABLE,
    UUID,
    UUID_TEXT,
    Format,
    composed,
    kind_of,
    matching,
    one_of,
    unusable_address,
    where,
)
from emulator.httpsig.sendable import LISTS

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


PRINTABLE = matching(r"[ -~]{1,128}", "1 to 128 printable ASCII characters")

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
        r"ENGANGSKODEAPP_BIOMETRI|HA2|[A-Z]+_MOBILE|[A-Z]+ID",
        "ENGANGSKODEAPP_BIOMETRI, HA2, or a name that ends in _MOBILE or ID",
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


# As they were sent

IDS = frozenset({"psu-id", "psu-corporate-id", "x-request-id"})  # compared without regard to case where they are UUIDs


class Headers(dict[str, str]):
    """A request's headers by lower-case name, with values stripped of blanks; do not change it.

    Lists sent as several lines are joined with commas; of any other header sent more than once the first value counts,
    and `repeated` contains its name. `single`: no header was sent more than once; `names`: all names, each once.
    """

    __slots__ = ("names", "repeated", "single")

    def __init__(self, pairs: HeaderPairs = ()) -> None:
        sent = pairs if isinstance(pairs, Fields) else Fields.of(pairs)
        self.update(zip(sent.lower, sent.values, strict=True))
        self.repeated: tuple[str, ...] = ()
        self.names = sent.lower
        self.single = len(self) == len(sent.lower)
        if not self.single:
            self._combine(sent)

    def _combine(self, sent: Fields) -> None:
        self.clear()
        for lower, value in zip(sent.lower, sent.values, strict=True):
            if lower not in self:
                self[lower] = value
            elif lower in LISTS:
                self[lower] = f"{self[lower]},{value}"
            elif lower not in self.repeated:
                self.repeated = (*self.repeated, lower)
        self.names = tuple(self)


def one_spelling(lower: str, value: str) -> str:
    """The value of a header in the spelling in which it is compared: capitals of UUIDs, NFC."""
    return value.lower() if lower in IDS and UUID_TEXT.fullmatch(value) else composed(value)


def with_one_spelling(headers: HeaderPairs) -> HeaderPairs | None:
    """The headers in the spelling in which they are compared; None if they have it already."""
    sent = headers if isinstance(headers, Fields) else Fields.of(headers)
    ids = "".join(compress(sent.values, map(IDS.__contains__, sent.lower)))
    if "".join(sent.values).isascii() and ids == ids.lower():  # as nearly all are
        return None
    values = tuple(map(one_spelling, sent.lower, sent.values))
    return None if values == sent.values else Fields(sent.names, sent.lower, values)


# The check

_REQUIRED = {
    column: tuple(name.lower() for name, marks in MATRIX.items() if marks[column] == "R") for column in COLUMNS
}
_CHECKS = {name.lower(): form.check for name, form in FORMATS.items()}
_EACH_TIME = ("x-request-id", "x-psu-identity")  # not cached: one differs in each request, one is personal data
_UNTIL_FIRST_SCA = frozenset({"tpp-session-id", "psu-id"})
_IDENTITY_REPLACES_PSU_ID = frozenset({BASKET_POST, BASKET_GET, INSTANT_POST, TRANSFER_POST})
_SPELLING = {name.lower(): name for name in MATRIX}
ValuesOf = Callable[[Mapping[str, str]], tuple[str, ...]]


def check_headers(
    headers: Headers,
    column: str,
    *,
    profile: str = "documented",
    needs: frozenset[str] = frozenset(),
    session_optional: bool = False,
    acts: bool = True,
) -> list[Message]:
    """All problems of a request's headers, in the order of the matrix.

    `column`: one of COLUMNS; `needs`: lower-case names required under every profile (`lenient` requires no others);
    `session_optional`: TPP-Session-ID and PSU-ID may be missing, because SCA comes first; `acts`: the
    customer acts in a context, so PSU-Context and PSU-Corporate-ID must be consistent (headers.md#psu-corporate-id).
    A missing header is HTTP_HEADER_REQUIRED, a malformed or repeated one FORMAT_ERROR. Every header that the matrix
    lists is checked, whether or not the operation uses it.
    """
    missing, checked, values_of = _by_names(headers.names, column, profile, needs, session_optional)
    problems = [*missing]
    if acts and "psu-context" in headers:
        problems += _inconsistent_agreement(headers)
    if headers.repeated or not all(map(_fits, checked, values_of(headers))) or not _others_fit(headers):
        problems += malformed(headers, FORMATS)
    return problems


def demanded(column: str, needs: frozenset[str], session_optional: bool) -> frozenset[str]:
    """The lower-case names of the headers that `check_headers` requires in a request that has all others."""
    names = needs.union(_REQUIRED[column])
    return frozenset(lower for lower in names if not _excused(lower, _SPELLING, column, session_optional))


def malformed(headers: Headers, formats: Mapping[str, Format]) -> Iterator[Message]:
    """A message for each header that appears more than once, or does not have its format; `formats`: by name."""
    for name, form in formats.items():
        value = headers.get(name.lower())
        if name.lower() in headers.repeated:
            yield Message("FORMAT_ERROR", f"The header {name} appears more than once.", name)
        if value is not None and (expected := form.check(value)) is not None:
            text = f"The header {name} must be {expected}; received {quoted(value)}."
            yield Message("FORMAT_ERROR", text, name)


# A client's requests have the same header names each time, and mostly the same values, so results are cached by them.


@lru_cache(maxsize=256)
def _by_names(
    sent: tuple[str, ...], column: str, profile: str, needs: frozenset[str], session_optional: bool
) -> tuple[tuple[Message, ...], tuple[str, ...], ValuesOf]:
    """For a request with these lower-case header names: messages for missing headers, the names of the headers whose
    format is checked, and a function that returns their values.
    """
    required = () if profile == "lenient" else _REQUIRED[column]
    missing = [
        _SPELLING.get(lower, lower)
        for lower in (*required, *sorted(needs.difference(required)))
        if lower not in sent and not _excused(lower, sent, column, session_optional)
    ]
    messages = tuple(Message("HTTP_HEADER_REQUIRED", f"The header {name} is required.", name) for name in missing)
    checked = tuple(lower for lower in sent if lower in _CHECKS and lower not in _EACH_TIME)
    # itemgetter returns a tuple only for two or more names.
    values_of = itemgetter(*checked) if len(checked) > 1 else lambda headers: tuple(map(headers.__getitem__, checked))
    return messages, checked, values_of


def _excused(lower: str, sent: Collection[str], column: str, session_optional: bool) -> bool:
    """Whether a required header may be missing after all."""
    if session_optional and lower in _UNTIL_FIRST_SCA:
        return True
    return lower == "psu-id" and column in _IDENTITY_REPLACES_PSU_ID and "x-psu-identity" in sent


@lru_cache(maxsize=1024)
def _fits(lower: str, value: str) -> bool:
    return _CHECKS[lower](value) is None


def _others_fit(headers: Headers) -> bool:
    for lower in _EACH_TIME:
        value = headers.get(lower)
        if value is not None and _CHECKS[lower](value) is not None:
            return False
    return True


def _inconsistent_agreement(headers: Headers) -> list[Message]:
    """PSU-Corporate-ID is required in the corporate context once the PSU is known, and refused in the private one."""
    path, context = "PSU-Corporate-ID", headers["psu-context"]
    if context == "CORPORATE" and "psu-id" in headers and "psu-corporate-id" not in headers:
        text = "With PSU-Context CORPORATE, PSU-Corporate-ID must name the agreement that the customer acts under."
        return [Message("HTTP_HEADER_REQUIRED", text, path)]
    if context == "PRIVATE" and "psu-corporate-id" in headers:
        return [Message("FORMAT_ERROR", "PSU-Corporate-ID is not allowed with PSU-Context PRIVATE.", path)]
    return []


# The form of a body

JSON = ("application/json",)
UTF_8 = "utf-8"
# Content-Type charset -> Python's name for it.
_CHARSETS = {"utf-8": UTF_8, "utf8": UTF_8, "iso-8859-1": "latin-1", "iso8859-1": "latin-1", "latin1": "latin-1"}


def charset_of(headers: Headers, media_types: Collection[str] = JSON) -> str:
    """The Python codec of the body, from Content-Type (an empty one counts as missing); 415 for other charsets."""
    encoding = headers.get("content-encoding")
    if encoding is not None and encoding.lower() not in ("", "identity"):
        text = "A body with a Content-Encoding is not supported: send it unencoded."
        raise BankError("BAD_REQUEST", text, "Content-Encoding", status=415)
    content_type = headers.get("content-type", "")
    if content_type in ("", "application/json") and "content-type" not in headers.repeated:
        return UTF_8
    media_type, *parameters = (part.strip() for part in content_type.split(";"))
    if media_type.lower() not in media_types or "content-type" in headers.repeated:
        text = f"The bank accepts {', '.join(sorted(media_types))} only."
        raise BankError("BAD_REQUEST", text, "Content-Type", status=415)
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            codec = _CHARSETS.get(value.strip().strip('"').lower())
            if codec is None:
                text = "The bank accepts UTF-8 and ISO-8859-1 only."
                raise BankError("BAD_REQUEST", text, "Content-Type", status=415)
            return codec
    return UTF_8
