"""The headers of a request: the matrix of SPEC 2.1 of required headers, and its check (CONTRACT 3.2, 13)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from operator import itemgetter

from emulator.api.header_formats import FORMATS
from emulator.api.messages import Fields, HeaderPairs
from emulator.bank.errors import Message, quoted

# The columns of SPEC 2.1 in its order; an operation's row names one of them.
BASKET_POST = "basket-post"
BASKET_GET = "basket-get"  # also payment GET, status, DELETE, authorisations (CONTRACT 13)
INSTANT_POST = "instant-post"
TRANSFER_POST = "transfer-post"  # SEPA, and every other payment POST (CONTRACT 13)
DETAILS = "details"  # also accounts, cards, consents, user(s), agreements (CONTRACT 13)
SANDBOX = "sandbox"  # also contact information (CONTRACT 13)
COLUMNS = (BASKET_POST, BASKET_GET, INSTANT_POST, TRANSFER_POST, DETAILS, SANDBOX)

# SPEC 2.1: R required, O optional, - not part of the operation; one letter per column.
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
# CONTRACT 13 and 19, over SPEC: PSU-Corporate-ID is optional on every payment operation, INDCTS too; X-PSU-IDENTITY
# may replace PSU-ID on all payment and basket operations (after a declined first SCA there is no PSU-ID).
_OVER_SPEC = {
    ("PSU-Corporate-ID", INSTANT_POST): "O",
    ("X-PSU-IDENTITY", BASKET_POST): "O",
    ("X-PSU-IDENTITY", BASKET_GET): "O",
}


def _matrix() -> dict[str, dict[str, str]]:
    rows = [line.split() for line in _ROWS.strip().splitlines()]
    matrix = {name: dict(zip(COLUMNS, marks, strict=True)) for name, *marks in rows}
    for (name, column), mark in _OVER_SPEC.items():
        matrix[name][column] = mark
    return matrix


MATRIX: Mapping[str, Mapping[str, str]] = _matrix()

# Lists, which HTTP allows as several lines; every other header of SPEC 2.1 may be sent only once.
_LISTS = frozenset({"accept", "accept-charset", "accept-encoding", "accept-language", "x-accept-fix"})
_LOWER = {name: name.lower() for name in MATRIX}
_SINGLE = {lower: name for name, lower in _LOWER.items() if lower not in _LISTS}
_REQUIRED = {
    column: tuple(_LOWER[name] for name, marks in MATRIX.items() if marks[column] == "R") for column in COLUMNS
}
_CHECKS = {name.lower(): check for name, check in FORMATS.items()}
_EACH_TIME = ("x-request-id", "x-psu-identity")  # not cached: one differs in each request, one is personal data
_UNTIL_FIRST_SCA = frozenset({"tpp-session-id", "psu-id"})
_IDENTITY_REPLACES_PSU_ID = frozenset({BASKET_POST, BASKET_GET, INSTANT_POST, TRANSFER_POST})
_SPELLING = {lower: name for name, lower in _LOWER.items()}
_POSITION = {lower: position for position, lower in enumerate(_SPELLING)}
ValuesOf = Callable[[Mapping[str, str]], tuple[str, ...]]


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
            elif lower in _LISTS:
                self[lower] = f"{self[lower]},{value}"
            elif lower not in self.repeated:
                self.repeated = (*self.repeated, lower)
        self.names = tuple(self)


def check_headers(
    headers: Headers,
    column: str,
    *,
    profile: str = "documented",
    needs: frozenset[str] = frozenset(),
    session_optional: bool = False,
    acts: bool = True,
) -> list[Message]:
    """All problems of a request's headers, in the order of SPEC 2.1.

    `column`: one of COLUMNS; `needs`: lower-case names required under every profile (`lenient` requires no others);
    `session_optional`: TPP-Session-ID and PSU-ID may be missing, because SCA comes first (CONTRACT 3.2); `acts`: the
    customer acts in a context, so PSU-Context and PSU-Corporate-ID must be consistent (CONTRACT 13).
    A missing header is HTTP_HEADER_REQUIRED, a malformed or repeated one FORMAT_ERROR. Every header that SPEC 2.1
    lists is checked, whether or not the operation uses it.
    """
    missing, checked, values_of = _by_names(headers.names, column, profile, needs, session_optional)
    problems = [*missing]
    if acts and "psu-context" in headers:
        problems += _inconsistent_agreement(headers)
    for lower in headers.repeated:
        if lower in _SINGLE:
            name = _SINGLE[lower]
            problems.append(Message("FORMAT_ERROR", f"The header {name} appears more than once.", name))
    if not _all_fit(checked, values_of(headers)) or not _others_fit(headers):
        problems += _malformed(headers)
    return problems


def demanded(column: str, needs: frozenset[str], session_optional: bool) -> frozenset[str]:
    """The lower-case names of the headers that `check_headers` requires in a request that has all others."""
    names = needs.union(_REQUIRED[column])
    return frozenset(lower for lower in names if not _excused(lower, _SPELLING, column, session_optional))


def _malformed(headers: Headers) -> Iterator[Message]:
    """A message for each malformed header."""
    for lower in sorted(_CHECKS.keys() & headers.keys(), key=_POSITION.__getitem__):
        name, value = _SPELLING[lower], headers[lower]
        expected = _CHECKS[lower](value)
        if expected is not None:
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


@lru_cache(maxsize=256)
def _all_fit(names: tuple[str, ...], values: tuple[str, ...]) -> bool:
    return all(map(_fits, names, values))


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
