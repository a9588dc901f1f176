"""The headers of a request: the matrix of SPEC 2.1, who must send what, and their formats (CONTRACT 3.2, 13)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from operator import methodcaller

from emulator.api.header_formats import FORMATS
from emulator.bank.errors import Message

# The columns of SPEC 2.1 in its order; an operation's row names one of them.
BASKET_POST = "basket-post"
BASKET_GET = "basket-get"  # also payment GET, status, DELETE, authorisations (CONTRACT 13)
INSTANT_POST = "instant-post"
TRANSFER_POST = "transfer-post"  # SEPA, and every other payment POST (CONTRACT 13)
DETAILS = "details"  # also accounts, cards, consents, user(s), agreements (CONTRACT 13)
SANDBOX = "sandbox"  # also contact information (CONTRACT 13)
COLUMNS = (BASKET_POST, BASKET_GET, INSTANT_POST, TRANSFER_POST, DETAILS, SANDBOX)

# SPEC 2.1: R required, O optional, - not part of the operation; one letter a column.
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
    X-PSU-IDENTITY                 - - O O - -
    X-PSU-AuthMethod-Preferred     - - O O - -
    PSU-Corporate-ID               O O - O O -
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
# CONTRACT 13, over SPEC: PSU-Corporate-ID is optional on every payment operation, INDCTS too.
_OVER_SPEC = {("PSU-Corporate-ID", INSTANT_POST): "O"}


def _matrix() -> dict[str, dict[str, str]]:
    rows = [line.split() for line in _ROWS.strip().splitlines()]
    matrix = {name: dict(zip(COLUMNS, marks, strict=True)) for name, *marks in rows}
    for (name, column), mark in _OVER_SPEC.items():
        matrix[name][column] = mark
    return matrix


MATRIX: Mapping[str, Mapping[str, str]] = _matrix()

# Lists that HTTP lets a client write as several lines; every other header of SPEC 2.1 may be sent once.
_LISTS = frozenset({"accept", "accept-charset", "accept-encoding", "accept-language", "x-accept-fix"})
_LOWER = {name: name.lower() for name in MATRIX}
_SINGLE = {lower: name for name, lower in _LOWER.items() if lower not in _LISTS}
_REQUIRED = {
    column: tuple(_LOWER[name] for name, marks in MATRIX.items() if marks[column] == "R") for column in COLUMNS
}
_CHECKS = {name.lower(): check for name, check in FORMATS.items()}
_CHECKED = frozenset(_CHECKS)
_UNTIL_FIRST_SCA = frozenset({"tpp-session-id", "psu-id"})
_IDENTITY_STANDS_IN = frozenset({INSTANT_POST, TRANSFER_POST})
_NAMES_AGREEMENT = frozenset({BASKET_POST, BASKET_GET, INSTANT_POST, TRANSFER_POST})
_SPELLING = {lower: name for name, lower in _LOWER.items()}
_PLACE = {lower: place for place, lower in enumerate(_SPELLING)}
_without_blanks = methodcaller("strip", " \t")
_SHOWN = 60  # characters of a refused value that its message repeats


class Headers(dict[str, str]):
    """A request's headers by lower-case name, blanks around values taken off; not to be changed.

    Lists sent as several lines are joined with commas; of any other header sent twice the first value counts, and
    its name stands in `repeated`. `single`: nothing at all was sent twice.
    """

    __slots__ = ("repeated", "single")

    def __init__(self, pairs: Collection[tuple[str, str]] = ()) -> None:
        self.repeated: tuple[str, ...] = ()
        self.single = True
        if pairs:
            names, values = zip(*pairs, strict=True)
            super().__init__(zip(_lowered(names), map(_without_blanks, values), strict=True))
            if len(self) != len(names):
                self.single = False
                self._combine(pairs)

    def _combine(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.clear()
        for name, value in pairs:
            lower = name.lower()
            if lower not in self:
                self[lower] = value.strip(" \t")
            elif lower in _LISTS:
                self[lower] = f"{self[lower]},{value}"
            else:
                self.repeated = (*self.repeated, lower)


@lru_cache(maxsize=256)
def _lowered(names: tuple[str, ...]) -> tuple[str, ...]:
    """Header names in lower case; remembered, since a client's requests carry the same ones each time."""
    return tuple(name.lower() for name in names)


def check_headers(
    headers: Headers,
    column: str,
    profile: str = "documented",
    needs: frozenset[str] = frozenset(),
    session_optional: bool = False,
) -> list[Message]:
    """Everything that is wrong with a request's headers, in the order of SPEC 2.1; empty when nothing is.

    `column`: one of COLUMNS; `needs`: lower-case names demanded under every profile, all that `lenient` demands;
    `session_optional`: TPP-Session-ID and PSU-ID may be missing, because SCA comes first (CONTRACT 3.2).
    A missing header is HTTP_HEADER_REQUIRED, a malformed or repeated one FORMAT_ERROR; all are checked that SPEC 2.1
    lists, whether or not the operation uses them.
    """
    found: list[Message] = []
    demanded = _demanded(column, profile, needs)
    if not headers.keys() >= demanded.keys():
        found += [
            _missing(_SPELLING.get(lower, lower))
            for lower in demanded
            if lower not in headers and not _excused(lower, headers, column, session_optional)
        ]
    if column in _NAMES_AGREEMENT and headers.get("psu-context") == "CORPORATE":
        _check_agreement(headers, found)
    for lower in headers.repeated:
        if lower in _SINGLE:
            name = _SINGLE[lower]
            found.append(Message("FORMAT_ERROR", f"The header {name} is there more than once.", name))
    checked = _CHECKED.intersection(headers)
    if not all(map(_fits, checked, map(headers.__getitem__, checked))):
        found += _malformed(headers, checked)
    return found


def _malformed(headers: Headers, checked: Iterable[str]) -> Iterator[Message]:
    """A message for each of these headers that is not well-formed."""
    for lower in sorted(checked, key=_PLACE.__getitem__):
        name, value = _SPELLING[lower], headers[lower]
        if not _fits(lower, value):
            text = f"The header {name} must be {_CHECKS[lower](value)}; {_shortened(value)} came."
            yield Message("FORMAT_ERROR", text, name)


@lru_cache(maxsize=256)
def _demanded(column: str, profile: str, needs: frozenset[str]) -> dict[str, None]:
    """The lower-case names that a request must carry, in order."""
    listed = () if profile == "lenient" else _REQUIRED[column]
    return dict.fromkeys((*listed, *sorted(needs.difference(listed))))


@lru_cache(maxsize=1024)
def _fits(lower: str, value: str) -> bool:
    """Whether a header is well-formed; remembered, since a client's headers are mostly the same each time."""
    return _CHECKS[lower](value) is None


def _missing(name: str) -> Message:
    return Message("HTTP_HEADER_REQUIRED", f"The header {name} is required.", name)


def _excused(lower: str, headers: Headers, column: str, session_optional: bool) -> bool:
    """Whether a required header may be missing after all."""
    if session_optional and lower in _UNTIL_FIRST_SCA:
        return True
    return lower == "psu-id" and column in _IDENTITY_STANDS_IN and "x-psu-identity" in headers


def _check_agreement(headers: Headers, found: list[Message]) -> None:
    """In the corporate context the agreement must be named, once the PSU is known (CONTRACT 13)."""
    if "psu-id" in headers and "psu-corporate-id" not in headers:
        text = "With PSU-Context CORPORATE the header PSU-Corporate-ID says which agreement the customer acts under."
        found.append(Message("HTTP_HEADER_REQUIRED", text, "PSU-Corporate-ID"))


def _shortened(value: str) -> str:
    shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
    return f'"{shown}"' if shown.isprintable() else ascii(shown)
