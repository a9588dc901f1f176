"""Formats of single values: each one checks a value, says in words what it expects, and states it as JSON Schema.

Headers, query parameters, settings, and the members of bodies, fixtures and scenarios are made of formats, so that a
pattern or a list of values stands in one place. It does not import pydantic, which a start does not need;
`emulator.bank.validation.typed` makes a type for pydantic of a format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, TypeVar
from unicodedata import normalize

from emulator.bank.problems import Problem

Check = Callable[[Any], str | None]
"""Returns a description of the expected value, or None if the value is valid."""

# Patterns that several formats need.
UUID_TEXT = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
NATIONAL_NUMBER = r"[0-9]{8,11}"  # of a person, or of an organisation as a customer
BIC = r"[A-Z]{6}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3})?"  # ISO 9362
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
NOT_BLANK = r"\S"
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# The years of moments and sandbox data; far from the ends of what can be computed with.
EARLIEST, END = datetime(1990, 1, 1, tzinfo=UTC), datetime(2201, 1, 1, tzinfo=UTC)
YEARS = f"of the years {EARLIEST.year} to {END.year - 1}"
# The name of a scenario, a fixture or a bank, which is also that of a file or folder.
FILE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
# RFC 3986: unreserved, reserved and whole percent escapes; `#` is left out, since a fragment is refused.
_URI = re.compile(r"(?:[A-Za-z0-9._~:/?@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})+")
LONGEST_URI = 2048  # assumed; not every browser supports longer ones


# Characters that the bank's systems cannot process anywhere in a request: control characters, halves of a
# surrogate pair, and characters outside the basic multilingual plane (emoji).
UNPROCESSABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Format:
    """What a value must be: `words` continue "must be", `check` finds a more exact description where there is one.

    `stated` is the JSON Schema, or a function that returns it. `problems` finds problems inside a value that is a list.
    """

    words: str
    stated: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    check: Check
    problems: Callable[[list[Any]], list[Problem]] | None = None

    @property
    def schema(self) -> Mapping[str, Any]:
        return self.stated() if callable(self.stated) else self.stated

    def fits(self, value: Any) -> bool:
        return self.check(value) is None


def where(words: str, schema: Mapping[str, Any], fits: Callable[[Any], object]) -> Format:
    """The format of the values that `fits` accepts."""
    return Format(words, schema, lambda value: None if fits(value) else words)


def matching(pattern: re.Pattern[str] | str, words: str, /, **schema: Any) -> Format:
    """Text that `pattern` matches completely; `schema` replaces the pattern in the JSON Schema."""
    compiled = re.compile(pattern, re.ASCII) if isinstance(pattern, str) else pattern
    alternatives = "|" in compiled.pattern
    stated = f"^(?:{compiled.pattern})$" if alternatives else f"^{compiled.pattern}$"
    return where(
        words,
        {"type": "string", **(schema or {"pattern": stated})},
        lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None,
    )


def one_of(*values: str, words: str = "", any_case: bool = False) -> Format:
    """One of these texts; `words` replaces the list of them."""
    among = frozenset(value.lower() for value in values) if any_case else frozenset(values)
    return where(
        words or f"one of {', '.join(values)}",
        {"type": "string", "enum": list(values), **({"description": "In any case."} if any_case else {})},
        lambda value: isinstance(value, str) and (value.lower() if any_case else value) in among,
    )


def whole(least: int, most: int, unit: str = "") -> Format:
    """A whole number within these bounds."""
    return where(
        f"a whole number {unit}from {least} to {most}",
        {"type": "integer", "minimum": least, "maximum": most},
        lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
    )


def _expected_date(text: Any) -> str | None:
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        return "a date of the form YYYY-MM-DD"
    try:
        date.fromisoformat(text)
    except ValueError:
        return "a date that exists"
    return None


def digits_of(text: str) -> str:
    """A number without the dots and blanks with which people write it."""
    return text.replace(".", "").replace(" ", "")


def is_port(text: str) -> bool:
    """Whether this is a port from 1 to 65535 without leading zeros."""
    return _PORT.fullmatch(text) is not None and int(text) <= 65535


def unusable_address(text: str) -> str | None:
    """The expected address if this one is too long or has characters that an address does not have, else None."""
    if len(text) <= LONGEST_URI and _URI.fullmatch(text):
        return None
    return f"an address of at most {LONGEST_URI} characters, with all characters outside RFC 3986 escaped"


YES_OR_NO = where("true or false", {"type": "boolean"}, lambda value: isinstance(value, bool))
TRUE_OR_FALSE = one_of("true", "false")  # as text
UUID = matching(UUID_TEXT, "a UUID such as 0b5c1e5e-6e0c-4b52-9a51-2c2a51b0d6a8", format="uuid")
DATE = Format("a date of the form YYYY-MM-DD", {"type": "string", "format": "date"}, _expected_date)
PORT = where("a port from 1 to 65535", {"type": "string", "pattern": f"^{_PORT.pattern}$"}, is_port)
LINE = where("text without control characters", {"type": "string"}, lambda value: value and not CONTROL.search(value))


Value = TypeVar("Value")


def composed(value: Value) -> Value:
    """A JSON value with all its texts in Unicode's composed form (NFC).

    So equal texts are equal and every letter counts once: Apple's systems and PDF files write `å` as two characters.
    A text of more than 1000 characters stays as it is: the time to compose marks grows with the square of their number.
    """
    changed: Any = value
    if isinstance(value, str):
        changed = value if value.isascii() or len(value) > 1000 else normalize("NFC", value)
    elif isinstance(value, dict):
        changed = {composed(name): composed(inner) for name, inner in value.items()}
    elif isinstance(value, list):
        changed = [composed(inner) for inner in value]
    return changed  # type: ignore[no-any-return]


_BACKSLASH, _DELETE = b"\\\x7f"  # ints: searching bytes for an int is faster than for bytes


def is_plain(body: bytes) -> bool:
    """Whether a JSON text is ASCII without escapes: then all its texts are composed, and none has a control character.

    Most bodies are plain, and checking every text takes longer than all other checks together.
    """
    return body.isascii() and _BACKSLASH not in body and _DELETE not in body


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
