"""Reading a checked value out of JSON or YAML: each part knows where it stands and says what was expected."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from emulator.scenario import durations
from emulator.scenario.mistakes import Path, Report, unknown

LEAST, MOST = -(2**63), 2**63 - 1
EARLIEST_YEAR, LATEST_YEAR = 1990, 2200
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})")
LONGEST_TEXT = 10_000


def text_schema(longest: int = LONGEST_TEXT) -> dict[str, Any]:
    """JSON Schema of what `Part.text` takes."""
    return {"type": "string", "pattern": r"\S", "maxLength": longest}


def kind(value: Any) -> str:
    """What a value is, in words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    return "a list" if isinstance(value, list) else "a mapping"


def _too_large(value: Any, path: Path) -> Iterator[Path]:
    """Where in a value numbers stand that no document can hold."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _too_large(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _too_large(inner, (*path, index))
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield path
    elif isinstance(value, int) and not LEAST <= value <= MOST:
        yield path


class Part:
    """One value of a file with where it stands; every reader notes a mistake and gives None when it does not fit."""

    __slots__ = ("path", "report", "value")

    def __init__(self, value: Any, path: Path = (), report: Report | None = None) -> None:
        self.value = value
        self.path = path
        self.report = report if report is not None else Report()

    def wrong(self, text: str) -> None:
        """Note a mistake about this part."""
        self.report.add(self.path, text)

    def expected(self, what: str) -> None:
        """Note that something else was expected here."""
        self.wrong(f"Expected {what}, found {kind(self.value)}.")

    def unknown(self, word: object, known: Collection[str], what: str) -> None:
        """Note a word that is none of `known`, with a guess, which takes long, where it will be told."""
        if not self.report.full:
            self.wrong(unknown(word, known, what))

    def inner(self, name: str | int, value: Any) -> Part:
        """A value inside this one."""
        return Part(value, (*self.path, name), self.report)

    def check_numbers(self) -> None:
        """Note every number in here that is too large for a document."""
        for path in _too_large(self.value, self.path):
            self.report.add(path, "This number is too large; in quotes it is text.")

    def mapping(self) -> dict[str, Part]:
        """The members, whatever their names; empty when this is not a mapping."""
        if not isinstance(self.value, dict):
            self.expected("a mapping")
            return {}
        return {name: self.inner(name, value) for name, value in self.value.items()}

    def members(self, known: Collection[str], *, required: Sequence[str] = ()) -> dict[str, Part]:
        """The members with known names; unknown ones are mistakes with a guess, missing ones too."""
        found = self.mapping()
        for name in [name for name in found if name not in known]:
            found.pop(name).unknown(name, known, "There is no member")
        if isinstance(self.value, dict):
            for name in required:
                if name not in self.value:
                    self.wrong(f"The member {name} is missing.")
        return found

    def items(self, *, least: int = 0) -> Iterator[Part]:
        """The entries of a list; none when this is not a list."""
        if not isinstance(self.value, list):
            self.expected("a list")
            return
        if len(self.value) < least:
            self.wrong(f"Expected a list with at least {least} entry.")
        for index, value in enumerate(self.value):
            yield self.inner(index, value)

    def text(self, *, longest: int = LONGEST_TEXT) -> str | None:
        """Text that is not empty."""
        if isinstance(self.value, bool | int | float):
            self.wrong(f"Expected text, found {kind(self.value)}; write it in quotes.")
            return None
        if not isinstance(self.value, str) or not self.value.strip():
            self.expected("text")
            return None
        if len(self.value) > longest:
            self.wrong(f"Expected text of at most {longest} characters.")
            return None
        return self.value

    def one_of(self, words: Collection[str], what: str) -> str | None:
        """One of the known words."""
        if isinstance(self.value, str) and self.value in words:
            return self.value
        if isinstance(self.value, str):
            self.unknown(self.value, words, f"There is no {what}")
        else:
            self.expected(f"one of {', '.join(words)}")
        return None

    def whole(self, low: int, high: int) -> int | None:
        """A whole number from `low` to `high`."""
        value = self.value
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.expected(f"a whole number from {low} to {high}")
        return None

    def number(self, low: float, high: float) -> float | None:
        """A number from `low` to `high`."""
        value = self.value
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if is_number and low <= value <= high:
            return float(value)
        self.expected(f"a number from {low:g} to {high:g}")
        return None

    def boolean(self) -> bool | None:
        """true or false."""
        if isinstance(self.value, bool):
            return self.value
        self.expected("true or false")
        return None

    def duration(self, *, longest: timedelta = durations.LONGEST) -> timedelta | None:
        """A length of time without months and years."""
        found = durations.exact(self.value)
        if found is None:
            self.expected(durations.expected(self.value, calendar=False))
        elif found > longest:
            self.wrong(f"At most {longest} was expected.")
            found = None
        return found

    def moment(self) -> datetime | None:
        """A moment with its zone, such as 2026-03-02T09:00:00+01:00."""
        expected = "a moment with its zone, such as 2026-03-02T09:00:00+01:00"
        value = self.value
        try:
            at = datetime.fromisoformat(value) if isinstance(value, str) and MOMENT.fullmatch(value) else None
        except ValueError:
            at = None
        if at is not None and not EARLIEST_YEAR <= at.year <= LATEST_YEAR:
            at, expected = None, f"a moment of the years {EARLIEST_YEAR} to {LATEST_YEAR}"
        if at is None:
            self.expected(expected)
        return at
