"""A scenario that is refused: its problems, with file, line and column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from emulator.bank.problems import Path, Problem, column, path_of

if TYPE_CHECKING:
    from emulator.bank.fixtures.strict_yaml import Parsed


class ScenarioRefused(Exception):
    """A scenario with problems; it has changed nothing."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One line each: `file:line:column: sentence (path)`."""
        lines = []
        for problem in self.problems:
            place = f"{self.source}:{problem.line}:{problem.column}" if problem.line else self.source
            path = f" ({problem.where()})" if problem.path else ""
            lines.append(f"{place}: {problem.text}{path}")
        return lines


class ScenarioMissing(ScenarioRefused):
    """There is no scenario of that name, or no file that can be read."""


class Misfit(Exception):
    """What a scenario asks of this bank cannot be: the part at fault and a sentence."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(text)
        self.path = path
        self.text = text


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a scenario was read: the name of its file, and of what came as text where each member stands in it."""

    source: str
    text: str = ""
    parsed: Parsed | None = None

    def refused(self, problems: Sequence[Problem]) -> ScenarioRefused:
        """The problems with their places, in the order in which they stand in the text."""
        if self.parsed is None:
            return ScenarioRefused(self.source, problems)
        lines = self.text.split("\n")
        placed = []
        for problem in problems:
            line = self.parsed.line(problem.path)
            at = column(lines[line - 1] if line <= len(lines) else "", problem.path)
            placed.append(replace(problem, line=line, column=at))
        return ScenarioRefused(self.source, sorted(placed, key=lambda problem: (problem.line, problem.column)))

    def refused_by(self, messages: Iterable[Mapping[str, Any]], *, start: str = "start") -> ScenarioRefused:
        """What a bank has answered to the scenario as JSON: its tppMessages; `start`: where its start stands here."""
        problems = []
        for entry in messages:
            path: Path = path_of(entry.get("path", ""))
            path = (start, *path[1:]) if path[:1] == ("start",) else path
            problems.append(Problem(path, entry["text"]))
        return self.refused(problems)
