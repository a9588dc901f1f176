"""The problems of a refused scenario, with file, line and column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.bank.fixtures.strict_yaml import Parsed
from emulator.bank.problems import InputRefused, Path, Problem, path_of, placed


class ScenarioRefused(InputRefused):
    """A scenario has problems; nothing was changed."""


class ScenarioMissing(ScenarioRefused):
    """There is no scenario of this name, or the file cannot be read."""


class Misfit(Exception):
    """A scenario does not fit the bank; `problems` has every problem with its path."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.text for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a scenario comes from: the name of its file, and the place of each member if it was read from text."""

    source: str
    text: str = ""
    parsed: Parsed | None = None

    def refused(self, problems: Sequence[Problem]) -> ScenarioRefused:
        """The error for these problems, with their places, in the order of the text."""
        if self.parsed is None:
            return ScenarioRefused(self.source, problems)
        return ScenarioRefused(self.source, placed(problems, self.text, self.parsed.line))

    def refused_by(self, messages: Iterable[Mapping[str, Any]], *, start: str = "start") -> ScenarioRefused:
        """The error for the tppMessages of a bank that refused the scenario; `start`: the member with its start."""
        problems = []
        for entry in messages:
            path: Path = path_of(entry.get("path", ""))
            path = (start, *path[1:]) if path[:1] == ("start",) else path
            problems.append(Problem(path, entry["text"]))
        return self.refused(problems)
