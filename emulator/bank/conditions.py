"""What a value must be like: exact, with `*`, or `{gt, lt, in, regex, absent}`; nested in mappings and lists.

Rules match requests with it, stories expect answers with it. A rule reads loosely (`10` fits "10.00", since what
stands in headers and amounts is text), an expectation strictly (text is text, a number is a number).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, Protocol

from emulator.bank.errors import counted
from emulator.bank.operators import DECIMAL, Operators, Pattern, expression
from emulator.bank.problems import Path, described


class _Absent:
    """What stands for a member that is not there."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()
MOST_COMPARED = 50  # entries of a list that are looked at for the nearest one
Difference = tuple[Path, str]


class Condition(Protocol):
    """What a value must be like."""

    def differences(self, value: Any, path: Path = ()) -> Iterator[Difference]:
        """Where and why `value` (ABSENT: not there) does not fit; nothing when it fits."""
        ...


def fits(condition: Condition, value: Any) -> bool:
    """Whether a value fits; of the usual conditions without putting into words why not."""
    if isinstance(condition, Exactly):
        return condition.holds(value)
    if isinstance(condition, Members) and isinstance(value, dict):
        return all(fits(inner, value.get(name, ABSENT)) for name, inner in condition.members)
    return next(condition.differences(value), None) is None


def number(value: Any) -> Decimal | None:
    """A number, also one that stands in text (CONTRACT 13, Control)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        return Decimal(repr(value)) if isfinite(value) else None
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        return Decimal(value)
    return None


def wildcard(pattern: str, text: str) -> bool:
    """Whether `text` is `pattern`, in which each `*` stands for any characters."""
    first, *others = pattern.split("*")
    if not others:
        return pattern == text
    last = others.pop()
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in others:
        start = text.find(piece, at, end)
        if start < 0:
            return False
        at = start + len(piece)
    return True


def _described(value: Any) -> str:
    return "nothing there" if value is ABSENT else described(value)


@dataclass(frozen=True, slots=True)
class Exactly:
    """A text (with `*`), a number, true, false or null."""

    wanted: Any
    strict: bool = False

    def differences(self, value: Any, path: Path = ()) -> Iterator[Difference]:
        if not self.holds(value):
            yield path, f"expected {described(self.wanted)}, found {_described(value)}"

    def holds(self, value: Any) -> bool:
        """Whether the value is what is wanted."""
        wanted = self.wanted
        if value is ABSENT:
            return False
        if isinstance(wanted, str):
            if isinstance(value, dict | list):
                return wanted == "*"
            # With a * it asks for what the value looks like, as a regex does, and not for a text.
            text = _text_of(value, self.strict and "*" not in wanted)
            return text is not None and wildcard(wanted, text)
        if isinstance(wanted, bool) or wanted is None:
            return value is wanted or (not self.strict and isinstance(value, str) and value == _as_text(wanted))
        if isinstance(value, bool) or (self.strict and isinstance(value, str)):
            return False
        return number(value) == number(wanted)


def _text_of(value: Any, strict: bool) -> str | None:
    """The text as which a value is compared with one; `strict`: none but a text has one."""
    if value is ABSENT or isinstance(value, dict | list) or (strict and not isinstance(value, str)):
        return None
    return _as_text(value)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)


Constant = str | Decimal


def constants_of(value: Any) -> Iterator[Constant]:
    """The constants (see `constants`) that a value fits, of those that are read loosely."""
    if value is ABSENT or isinstance(value, dict | list):
        return
    yield _as_text(value)
    as_number = number(value)
    if as_number is not None:
        yield as_number


def constants(condition: Condition) -> frozenset[Constant] | None:
    """The values one of which a loose condition asks for: text without `*` and numbers; None for another condition."""
    if isinstance(condition, Every) and len(condition.conditions) == 1:
        condition = condition.conditions[0]
    if isinstance(condition, OneOf):
        return condition.texts if not condition.others else None
    if not isinstance(condition, Exactly):
        return None
    wanted = condition.wanted
    if isinstance(wanted, str):
        return frozenset((wanted,)) if "*" not in wanted else None
    as_number = number(wanted)
    return None if as_number is None else frozenset((as_number,))


@dataclass(frozen=True, slots=True)
class Compared:
    """`gt` and `lt`: numbers, also where they stand in text."""

    sign: str
    bound: Decimal

    def differences(self, value: Any, path: Path = ()) -> Iterator[Difference]:
        given = number(value)
        if given is None or not (given > self.bound if self.sign == "gt" else given < self.bound):
            word = "more" if self.sign == "gt" else "less"
            yield path, f"expected {word} than {self.bound}, found {_described(value)}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """`in`: one of several; `texts` are those without `*`, of which there may be very many."""

    texts: frozenset[str]
    others: tuple[Exactly, ...]
    named: str
    strict: bool = False

    @classmethod
    def of(cls, wanted: list[Any], strict: bool) -> OneOf:
        """A condition that holds for each of those wanted."""
        texts = frozenset(one for one in wanted if isinstance(one, str) and "*" not in one)
        others = tuple(Exactly(one, strict) for one in wanted if not isinstance(one, str) or "*" in one)
        return cls(texts, others, ", ".join(map(str, wanted)), strict)

    def differences(self, value: Any, path: Path = ()) -> Iterator[Difference]:
        if _text_of(value, self.strict) not in self.texts and not any(fits(other, value) for other in self.others):
            yield path, f"expected one of {self.named}, found {_described(value)}"


@dataclass(frozen=True, slots=True)
class Matching:
    """`regex`: the expression is found in the text."""

    pattern: Pattern

    def differences(self, value: Any, path: Path = ()) -> Iterator[Difference]:
        if not isinstance(value, str | int | float) or not self.pattern.matches(_as_text(value)):
            yield path, f"expected text that matches {self.pattern.text}, found {_described(value)}"


@dataclass(frozen=True, slots=True)
class There:
    """`absent`: true when the member must not be there, false when it must."""

    absent: bool

    def differences(self, value: Any, path: Path = ()) -> Iterator[Difference]:
        if (value is ABSENT) != self.absent:
            yield path, f"expected {'nothing here' if self.absent else 'a value'}, found {_described(value)}"


@dataclass(frozen=True, slots=True)
class Every:
    """Several conditions at once."""

    conditions: tuple[Condition, ...]

    def differences(self, value: Any, path: Path = ()) -> Iterator[Difference]:
        for condition in self.conditions:
            yield from condition.differences(value, path)


@dataclass(frozen=True, slots=True)
class Members:
    """A mapping that has at least these members; of a list (in a rule) any entry may be it."""

    members: tuple[tuple[str, Condition], ...]
    strict: bool = False

    def differences(self, value: Any, path: Path = ()) -> Iterator[Difference]:
        if isinstance(value, list) and not self.strict:
            if not any(fits(self, entry) for entry in value):
                yield path, "expected an entry that fits, found none"
            return
        if value is ABSENT and self.members:
            value = {}
        if not isinstance(value, dict):
            yield path, f"expected a mapping, found {_described(value)}"
            return
        for name, condition in self.members:
            yield from condition.differences(value.get(name, ABSENT), (*path, name))


@dataclass(frozen=True, slots=True)
class Entries:
    """A list that has these entries in this order, others may stand between; an empty one is an empty list."""

    entries: tuple[Condition, ...]

    def differences(self, value: Any, path: Path = ()) -> Iterator[Difference]:
        if not isinstance(value, list):
            yield path, f"expected a list, found {_described(value)}"
            return
        if not self.entries and value:
            yield path, f"expected an empty list, found {counted(len(value), 'entry', 'entries')}"
        at = 0
        for index, entry in enumerate(self.entries):
            position = next((i for i in range(at, len(value)) if fits(entry, value[i])), None)
            if position is None:
                yield from self._nearest(entry, index, value[at:], at, path)
                return
            at = position + 1

    def _nearest(self, entry: Condition, index: int, rest: list[Any], start: int, path: Path) -> Iterator[Difference]:
        """Why the entry that differs least does not fit."""
        if not rest:
            yield path, f"expected an entry {index + 1} that fits, found no more entries"
            return
        several = [list(entry.differences(value, (*path, start + at))) for at, value in enumerate(rest[:MOST_COMPARED])]
        yield from min(several, key=len)


def compiled(stated: Any, *, strict: bool = False) -> Condition:
    """The condition that a validated form states: a value, a text with `*`, Operators, a list or a mapping."""
    if isinstance(stated, Operators):
        return Every(tuple(_operators(stated, strict)))
    if isinstance(stated, list):
        return Entries(tuple(compiled(entry, strict=strict) for entry in stated))
    if isinstance(stated, dict):
        return Members(tuple((name, compiled(inner, strict=strict)) for name, inner in stated.items()), strict)
    return Exactly(stated, strict)


def _operators(stated: Operators, strict: bool) -> Iterator[Condition]:
    for sign, bound in (("gt", stated.gt), ("lt", stated.lt)):
        if bound is not None:
            yield Compared(sign, number(bound) or Decimal(0))
    if stated.in_ is not None:
        yield OneOf.of(stated.in_, strict) if isinstance(stated.in_, list) else Exactly(stated.in_, strict)
    if stated.regex is not None:
        yield Matching(expression(stated.regex))
    if stated.absent is not None:
        yield There(stated.absent)
