"""The problems in a text or body: all of them at once, each with its position.

Used by fixtures, scenarios and the control interface. It does not import pydantic, which a start does not need;
`emulator.bank.validation` converts pydantic's errors to problems.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from emulator.failure import Failed

Path = tuple[str | int, ...]

MOST_SHOWN = 100
MOST_LISTED = 40  # words that a problem lists if none is similar
LONGEST_NAME = 100  # characters
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: the path of the member, a sentence, and line and column (from 1; 0 without a text)."""

    path: Path
    text: str
    line: int = 0
    column: int = 0

    def where(self) -> str:
        """The path as text: `rules[0].then`."""
        return written(self.path)


class InputRefused(Failed):
    """A text or value is refused, with every problem in it; nothing has been changed."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(self.one_line())

    def lines(self) -> list[str]:
        """One line each: `file:line:column: sentence (path)`."""
        lines = []
        for problem in self.problems:
            place = f"{self.source}:{problem.line}:{problem.column}" if problem.line else self.source
            path = f" ({problem.where()})" if problem.path else ""
            lines.append(f"{place}: {problem.text}{path}")
        return lines

    def one_line(self) -> str:
        """All problems in one line, for the error of a command."""
        lines = self.lines()
        text = "; ".join(lines)
        return text if len(lines) == 1 else f"{self.source} has {len(lines)} problems: {text}"


def placed(problems: Iterable[Problem], text: str, line_of: Callable[[Path], int]) -> list[Problem]:
    """The problems with line and column, in the order of the text; `line_of` returns the line of a path."""
    lines = text.split("\n")
    ordered = []
    for problem in problems:
        line = line_of(problem.path)
        at = column(lines[line - 1] if line <= len(lines) else "", problem.path)
        ordered.append(replace(problem, line=line, column=at))
    return sorted(ordered, key=lambda problem: (problem.line, problem.column))


def written(path: Sequence[str | int]) -> str:
    """A path as text: `rules[0].then.delay`."""
    text = ""
    for part in path:
        text = f"{text}[{part}]" if isinstance(part, int) else member_path(text, part)
    return text


def member_path(path: str, name: str) -> str:
    """`path.name`, or `name` at the root; a name with unprintable characters is escaped, a long one cut."""
    shown = name if name.isprintable() and len(name) <= LONGEST_NAME else ascii(name[:LONGEST_NAME])[1:-1]
    return f"{path}.{shown}" if path else shown


def path_of(text: str) -> Path:
    """The path of a text; the inverse of `written`."""
    return tuple(int(index) if index else name for name, index in _STEP.findall(text))


def described(value: Any) -> str:
    """A description of a value: `the number 5`, `the text 'x'`, `a list`, `an empty list`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    kind = "list" if isinstance(value, list) else "mapping"
    return f"a {kind}" if value else f"an empty {kind}"


def beginning(value: Any, most: int) -> Any:
    """A refused value with each of its lists cut to `most` entries: enough to tell what is wrong."""
    if isinstance(value, dict):
        return {name: beginning(inner, most) for name, inner in value.items()}
    return [beginning(inner, most) for inner in value[:most]] if isinstance(value, list) else value


def guess(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` if a known word is similar, else nothing."""
    words = sorted(known)
    by_lower = {candidate.lower(): candidate for candidate in words}
    similar = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return f"; did you mean {by_lower[similar[0]]}?" if similar else ""


def unknown(word: object, known: Collection[str], what: str) -> str:
    """A sentence about a word that is not in `known`, with a suggestion, or with the list if it is short."""
    end = guess(str(word), known)
    if not end:
        end = f"; expected one of {', '.join(sorted(known))}." if 0 < len(known) <= MOST_LISTED else "."
    return f"{what} {str(word)[:LONGEST_NAME]!r}{end}"


def column(line: str, path: Path) -> int:
    """The column (from 1) of the member at `path` in its line of the text."""
    last = path[-1] if path else None
    if isinstance(last, str):
        member = re.search(rf"(?<![\w.-])[\"']?{re.escape(last)}[\"']?\s*:", line)
        if member is not None:
            return member.start() + 1
    indent = re.match(r"[\s-]*", line)
    return (indent.end() if indent is not None and indent.end() < len(line) else 0) + 1
