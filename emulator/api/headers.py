"""The headers of a request: as they were sent, in the spelling in which they are compared, and their check.

`header_matrix.py` says which are required and what their values must be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from itertools import compress
from operator import itemgetter

from emulator.api.header_matrix import BASKET_GET, BASKET_POST, COLUMNS, FORMATS, INSTANT_POST, MATRIX, TRANSFER_POST
from emulator.api.messages import Fields, HeaderPairs
from emulator.bank.errors import BankError, Message, quoted
from emulator.bank.formats import UUID_TEXT, Format, composed
from emulator.httpsig.sendable import LISTS

IDS = frozenset({"psu-id", "psu-corporate-id", "x-request-id"})  # compared without regard to case where they are UUIDs

_LOWER = {name: name.lower() for name in MATRIX}
_REQUIRED = {
    column: tuple(_LOWER[name] for name, marks in MATRIX.items() if marks[column] == "R") for column in COLUMNS
}
_CHECKS = {name.lower(): form.check for name, form in FORMATS.items()}
_EACH_TIME = ("x-request-id", "x-psu-identity")  # not cached: one differs in each request, one is personal data
_UNTIL_FIRST_SCA = frozenset({"tpp-session-id", "psu-id"})
_IDENTITY_REPLACES_PSU_ID = frozenset({BASKET_POST, BASKET_GET, INSTANT_POST, TRANSFER_POST})
_SPELLING = {lower: name for name, lower in _LOWER.items()}
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
