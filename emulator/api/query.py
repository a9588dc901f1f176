"""Query parameters: the declarations of operations, and parsing of the query as sent (requests.md#query-parameters)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from emulator.bank.errors import BankError, Message, quoted
from emulator.bank.formats import DATE, LINE, YES_OR_NO, Format, composed, one_of, where, whole

LARGEST_INT = 2**31 - 1  # int32

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DIGITS = re.compile(r"[0-9]{1,20}")
_MALFORMED = "The query is not well-formed: % must be followed by two hex digits, and the result must be UTF-8."


@dataclass(frozen=True, slots=True, eq=False)
class QueryParameter:
    """One query parameter of an operation.

    `type`: boolean is parsed to a bool, int to an int between `minimum` and `maximum`, enum to one of `values`, date
    and text to a str. `default` is the value in a request without it; None: no value. `text` describes it in the
    OpenAPI document.
    """

    name: str
    type: Literal["boolean", "int", "date", "enum", "text"]
    text: str = ""
    minimum: int = 0
    maximum: int = LARGEST_INT
    values: tuple[str, ...] = ()
    default: Any = None
    not_before: str | None = None  # the date parameter, declared earlier, that this one may not be before

    @property
    def format(self) -> Format:
        """The format of the text that is sent, with the JSON Schema of the value."""
        if self.type == "boolean":
            return where(YES_OR_NO.words, YES_OR_NO.schema, lambda text: text in ("true", "false"))
        if self.type == "int":
            bounds = whole(self.minimum, self.maximum)
            return where(bounds.words, bounds.schema, lambda text: _DIGITS.fullmatch(text) and bounds.fits(int(text)))
        return one_of(*self.values) if self.type == "enum" else DATE if self.type == "date" else LINE


ALLOW_LOGICAL_DUPLICATE = QueryParameter(  # requests.md#logical-duplicates
    "allowLogicalDuplicate", "boolean", "Whether a payment like one of the last 24 hours is accepted", default=True
)


@lru_cache(maxsize=256)
def parse(parameters: tuple[QueryParameter, ...], raw: str) -> Mapping[str, Any]:
    """The values of the declared parameters by name, with defaults; unknown parameters are ignored.

    `raw` is the query as sent, without `?`. Raises FORMAT_ERROR with every malformed or repeated parameter as a
    path. Results are cached: a client sends the same query again.
    """
    wrong: list[Message] = []
    sent = _pairs(raw, {parameter.name for parameter in parameters}, wrong) if raw else {}
    values: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name in sent:
            value, expected = _read(parameter, sent[parameter.name])
            if expected is None:
                values[parameter.name] = value
                if parameter.not_before is not None and values.get(parameter.not_before, "") > value:
                    text = f"{parameter.not_before} is after {parameter.name}."
                    wrong.append(Message("FORMAT_ERROR", text, parameter.not_before))
            else:
                received = f"received {quoted(value)}" if (value := sent[parameter.name]) else "received no value"
                text = f"The query parameter {parameter.name} must be {expected}; {received}."
                wrong.append(Message("FORMAT_ERROR", text, parameter.name))
        elif parameter.default is not None:
            values[parameter.name] = parameter.default
    if wrong:
        raise BankError.several(wrong)
    return MappingProxyType(values)


def _pairs(raw: str, declared: set[str], wrong: list[Message]) -> dict[str, str | None]:
    """The declared parameters that were sent, by name; None: a name without `=`."""
    sent: dict[str, str | None] = {}
    repeated: set[str] = set()
    for part in raw.split("&"):
        if not part:
            continue
        written_name, equals, written_value = part.replace("+", " ").partition("=")
        name, value = unescaped(written_name), unescaped(written_value)
        if name is None or value is None:
            malformed = Message("FORMAT_ERROR", _MALFORMED, name)
            if malformed not in wrong[-1:]:
                wrong.append(malformed)
        elif name in declared:
            if name in sent and name not in repeated:
                repeated.add(name)
                wrong.append(Message("FORMAT_ERROR", f"The query parameter {name} appears more than once.", name))
            sent[name] = value if equals else None
    for name in repeated:
        del sent[name]
    return sent


def unescaped(text: str) -> str | None:
    """`text` of an address with its percent escapes decoded as UTF-8, in NFC; None if it is malformed."""
    if "%" not in text:
        return text
    if _BAD_ESCAPE.search(text):
        return None
    try:
        return composed(unquote_to_bytes(text).decode())
    except UnicodeError:  # a captured address may contain bytes that are not UTF-8
        return None


def _read(parameter: QueryParameter, sent: str | None) -> tuple[Any, str | None]:
    """The value and None, or None and the expected value in words. A boolean without a value is true (assumed)."""
    value = "true" if sent is None and parameter.type == "boolean" else sent or ""
    expected = parameter.format.check(value)
    if expected is not None:
        return None, expected
    return (value == "true" if parameter.type == "boolean" else int(value) if parameter.type == "int" else value), None
