"""What is wrong with a scenario, all of it at once: where it stands, a plain sentence, a guess at the meant word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.bank.fixtures.strict_yaml import Parsed

Path = tuple[str | int, ...]

MOST_SHOWN = 100
MOST_NAMED = 40  # words that a mistake lists where none is near
LONGEST_NAME = 100  # characters
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]", re.ASCII)


def shown(path: Sequence[str | int]) -> str:
    """A path as people write it: `rules[0].then.delay`; of a long name its beginning."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part[:LONGEST_NAME]}"
    return text


def path_of(text: str) -> Path:
    """The path that `shown` has written."""
    return tuple(int(index) if index else name for name, index in _STEP.findall(text))


def guess(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` when a known word is near, else nothing."""
    words = sorted(known)
    by_lower = {candidate.lower(): candidate for candidate in words}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""


def unknown(word: object, known: Collection[str], what: str) -> str:
    """A sentence about a word that is none of `known`, with a guess, or the list where it is short."""
    near = guess(str(word), known)
    if not near:
        near = f"; there are {', '.join(sorted(known))}." if len(known) <= MOST_NAMED else "."
    return f"{what} {str(word)[:LONGEST_NAME]!r}{near}"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake: the part at fault, the sentence, and line and column (from 1; 0 where there is no text)."""

    path: Path
    text: str
    line: int = 0
    column: int = 0

    def where(self) -> str:
        """The part at fault, as `rules[0].then`."""
        return shown(self.path)


class ScenarioRefused(Exception):
    """A scenario with mistakes; it has changed nothing."""

    def __init__(self, source: str, mistakes: Sequence[Mistake]) -> None:
        self.source = source
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One line each: `file:line:column: sentence (part)`."""
        lines = []
        for mistake in self.mistakes:
            place = f"{self.source}:{mistake.line}:{mistake.column}" if mistake.line else self.source
            part = f" ({mistake.where()})" if mistake.path else ""
            lines.append(f"{place}: {mistake.text}{part}")
        return lines


class ScenarioMissing(ScenarioRefused):
    """There is no scenario of that name, or no file that can be read."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a scenario was read: the name of its file, and of what came as text where each part stands in it."""

    source: str
    text: str = ""
    parsed: Parsed | None = None

    def refused(self, mistakes: Sequence[Mistake]) -> ScenarioRefused:
        """The mistakes with their places, in the order in which they stand in the text."""
        if self.parsed is None:
            return ScenarioRefused(self.source, mistakes)
        lines = self.text.split("\n")
        placed = []
        for mistake in mistakes:
            line = self.parsed.line(mistake.path)
            at = column(lines[line - 1] if line <= len(lines) else "", mistake.path)
            placed.append(Mistake(mistake.path, mistake.text, line, at))
        return ScenarioRefused(self.source, sorted(placed, key=lambda mistake: (mistake.line, mistake.column)))

    def refused_by(self, messages: Iterable[Mapping[str, Any]]) -> ScenarioRefused:
        """What a bank has answered to the scenario as JSON: its tppMessages."""
        return self.refused([Mistake(path_of(entry.get("path", "")), entry["text"]) for entry in messages])


@dataclass(slots=True)
class Report:
    """Collects the mistakes of one reading."""

    mistakes: list[Mistake] = field(default_factory=list)

    def add(self, path: Path, text: str) -> None:
        """Note a mistake; a part is reported once, and no more than a hundred in all."""
        if not self.full and all(m.path != path or m.text != text for m in self.mistakes):
            self.mistakes.append(Mistake(path, text))

    @property
    def full(self) -> bool:
        """Whether no more mistakes are taken."""
        return len(self.mistakes) >= MOST_SHOWN

    def __bool__(self) -> bool:
        return bool(self.mistakes)


def column(line: str, path: Path) -> int:
    """The column (from 1) in a line of the text at which the member at `path` stands."""
    last = path[-1] if path else None
    if isinstance(last, str):
        found = re.search(rf"(?<![\w.-])[\"']?{re.escape(last)}[\"']?\s*:", line)
        if found is not None:
            return found.start() + 1
    begins = re.match(r"[\s-]*", line)
    return (begins.end() if begins is not None and begins.end() < len(line) else 0) + 1
