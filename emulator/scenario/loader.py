"""A scenario, and how it is read from YAML or JSON: every problem has file, line, column and a guess."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from emulator.bank.fixtures.strict_yaml import Parsed, YamlError
from emulator.bank.fixtures.strict_yaml import read as read_yaml
from emulator.bank.fixtures.strict_yaml import text_of as text_of_yaml
from emulator.bank.formats import FILE_NAME, composed
from emulator.bank.problems import MOST_SHOWN, InputRefused, Path, Problem, described, guess, path_of, placed
from emulator.packaged import files, folder, twin
from emulator.scenario import variables

if TYPE_CHECKING:
    from emulator.scenario.rule import Rule
    from emulator.scenario.start import Start
    from emulator.scenario.steps import Scene

LEAST, MOST = -(2**63), 2**63 - 1


class ScenarioRefused(InputRefused):
    """A scenario has problems; nothing was changed."""


class ScenarioMissing(ScenarioRefused):
    """There is no scenario of this name, or the file cannot be read."""


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


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario with values in place of its parameters.

    `source` is its JSON, of the same structure as its YAML; `rule_sources` is that of its rules with the values filled
    in; `origin` is its file; `parameters` are the values by name, `story_values` those that its story is played with.
    """

    name: str
    summary: str
    play_only: bool
    parameters: Mapping[str, Any]
    start: Start
    rules: tuple[Rule, ...]
    rule_sources: tuple[Mapping[str, Any], ...]
    story: tuple[Scene, ...]
    story_values: Mapping[str, Any]
    source: Mapping[str, Any]
    origin: Origin

    @property
    def notes(self) -> list[str]:
        """What its author may not expect of its rules."""
        named = enumerate(self.rules, 1)
        return [f"{rule.name or f'rule {place}'}: {note}" for place, rule in named for note in rule.notes]


def read(value: Any, origin: Origin, values: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario in a value, with `values` for its parameters; raises ScenarioRefused with every problem."""
    # Imported on use, as a start without a scenario is faster without the forms.
    from emulator.bank.validation import validate
    from emulator.scenario import model

    if not isinstance(value, dict):
        raise origin.refused([Problem((), f"Expected a mapping, found {described(value)}.")])
    value = composed(value)
    values = variables.typed(value, composed(dict(values or {})))
    source = variables.with_defaults(value, values)
    story_values = source.get("with") if isinstance(source.get("with"), dict) else {}
    chosen = variables.defaults(source)
    full = variables.filled(source, chosen)
    form, invalid = validate(model.ScenarioFile, full)
    problems = [
        *too_large(source),
        *variables.unknown_values(source, values, at="parameters"),
        *variables.unknown_values(source, story_values or {}, at="with"),
        *variables.unknown_parameters(source),
        *invalid,
    ]
    problems += islice(variables.unsaved_names(source.get("story"), chosen), max(0, MOST_SHOWN - len(problems)))
    if problems or form is None:
        raise origin.refused(list(dict.fromkeys(problems))[:MOST_SHOWN])
    return Scenario(
        name=form.scenario,
        summary=form.summary or "",
        play_only=form.play == "only",
        parameters=chosen,
        start=form.start,
        rules=tuple(form.rules),
        rule_sources=tuple(full.get("rules", ())),
        story=model.scenes(form.story, source.get("story", ()), form.as_),
        story_values={**chosen, **(story_values or {})},
        source=source,
        origin=origin,
    )


def too_large(value: Any) -> Iterator[Problem]:
    """A problem for each number that cannot be stored."""
    for path, number in variables.leaves(value):
        if isinstance(number, int) and not isinstance(number, bool) and not LEAST <= number <= MOST:
            yield Problem(path, f"Whole numbers are from {LEAST} to {MOST}; what is text stands in quotes.")
        elif isinstance(number, float) and not math.isfinite(number):
            yield Problem(path, "This number is too large.")


def from_value(value: Any, values: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario in a JSON value; raises ScenarioRefused."""
    return read(value, Origin("scenario"), values)


def from_text(text: str, source: str, values: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario in a YAML text; raises ScenarioRefused with lines and columns."""
    return read(*parsed(text, source), values)


def parsed(text: str, source: str) -> tuple[Any, Origin]:
    """The value of a YAML text, not validated yet, and its origin; raises ScenarioRefused."""
    try:
        document = read_yaml(text)
    except YamlError as error:
        raise ScenarioRefused(source, [error.problem()]) from None
    return document.value, Origin(source, text, document)


def text_of(path: FilePath, source: str) -> str:
    """The text of a file that is called `source` in problems; raises ScenarioRefused if it is missing or too long."""
    try:
        return text_of_yaml(path)
    except YamlError as error:
        raise ScenarioRefused(source, [error.problem()]) from None
    except (OSError, ValueError):
        raise ScenarioMissing(source, [Problem((), "There is no such file, or it cannot be read.")]) from None


def from_file(path: FilePath, values: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario in a file; raises ScenarioRefused."""
    return from_text(text_of(path, str(path)), str(path), values)


def library() -> Mapping[str, FilePath]:
    """The scenarios that have a name, ready ones and those of --data: their files, by name."""
    return files("scenarios")


def named(name: str, values: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario of this name; raises ScenarioRefused, ScenarioMissing with a guess."""
    known = library()
    if name not in known:
        end = guess(name, known) or f"; expected one of {', '.join(known)}."
        raise ScenarioMissing(name[:100], [Problem((), f"There is no scenario {name[:100]!r}{end}")])
    return _named(name, known[name], values)


def _named(name: str, path: FilePath, values: Mapping[str, Any] | None = None) -> Scenario:
    is_own = path.parent != folder("scenarios")
    source = str(path) if is_own else path.name
    if path.exists() and not path.is_file():  # the bank would wait for a writer of a pipe, at each list
        raise ScenarioRefused(source, [Problem((), "This is not a regular file; the bank reads it at each use.")])
    if not FILE_NAME.fullmatch(name):
        text = (
            "A scenario has the name of its file, which is 1 to 63 small letters, digits and dashes, as slow-bank.yaml."
        )
        raise ScenarioRefused(source, [Problem((), text)])
    if (other := twin(path)) is not None:
        raise ScenarioRefused(source, [Problem((), f"{other.name} has the same name; delete one of the two.")])
    text = text_of(path, source)
    scenario = from_text(text, source, values) if values or is_own else _ready(text, source)
    if scenario.name != name:
        text = f"It has the name of its file, {name}, as lists show and apply it by that."
        raise scenario.origin.refused([Problem(("scenario",), text)])
    return scenario


@lru_cache(maxsize=64)
def _ready(text: str, source: str) -> Scenario:
    """A ready scenario with its defaults, read once: a list of all of them blocked other requests for half a second.

    One of --data is read at each use, as it may name a fixture that is gone by then.
    """
    return from_text(text, source)


def listed() -> Iterator[tuple[str, Scenario | ScenarioRefused]]:
    """The scenarios that have a name, each with its name; one with problems is its refusal."""
    for name, path in library().items():
        try:
            yield name, _named(name, path)
        except ScenarioRefused as refused:
            yield name, refused


def named_or_file(source: str, values: Mapping[str, Any] | None = None) -> Scenario:
    """The ready scenario of this name, or the scenario in the file of this path; raises ScenarioRefused."""
    looks_like_file = "/" in source or source.endswith((".yaml", ".yml")) or FilePath(source).is_file()
    if looks_like_file and source not in library():
        return from_file(FilePath(source), values)
    return named(source, values)
