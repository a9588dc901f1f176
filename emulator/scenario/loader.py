"""From text or JSON to a checked scenario: every mistake at once, with file, line, column and a guess (CONTRACT 10)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from emulator.bank.fixtures.strict_yaml import MAX_BYTES, YamlError
from emulator.bank.fixtures.strict_yaml import read as read_yaml
from emulator.packaged import folder
from emulator.scenario.mistakes import Mistake, Origin, ScenarioMissing, ScenarioRefused, guess
from emulator.scenario.model import Scenario, Start
from emulator.scenario.part import Part

if TYPE_CHECKING:
    from emulator.scenario.rule import Rule

MEMBERS = ("scenario", "summary", "start", "rules", "as", "story")
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
MOST_RULES = 500


def read(part: Part, origin: Origin) -> Scenario:
    """The scenario that a value states; raises ScenarioRefused with every mistake."""
    # The language is imported where a scenario is read: a start without one is quicker.
    from emulator.scenario import persona as personas
    from emulator.scenario import start, story

    part.check_numbers()
    members = part.members(MEMBERS, required=("scenario",))
    name = members["scenario"].text(longest=63) if "scenario" in members else None
    if name is not None and not NAME.fullmatch(name):
        members["scenario"].wrong("A scenario's name has small letters, digits and dashes, such as slow-bank.")
    summary = (members["summary"].text(longest=500) if "summary" in members else None) or ""
    begins = start.read(members["start"]) if "start" in members else Start()
    rules: tuple[Rule, ...] = ()
    if "rules" in members:
        rules = read_rules(members["rules"])
        _check_names(members["rules"])
    acting, declared = personas.Persona(), personas.Declared()
    if "as" in members:
        acting = personas.read(members["as"], acting, declared)
    steps = story.read(members["story"], acting, declared) if "story" in members else ()
    if part.report or name is None:
        raise origin.refused(part.report.mistakes)
    return Scenario(name, summary, begins, rules, steps, part.value, origin)


def read_rules(part: Part) -> tuple[Rule, ...]:
    """The rules of a list."""
    from emulator.scenario import rule

    found = [rule.read(item) for item in part.items()]
    if len(found) > MOST_RULES:
        part.wrong(f"At most {MOST_RULES} rules were expected.")
    return tuple(one for one in found if one is not None)


def _check_names(part: Part) -> None:
    """Two rules of one name in one file are a slip: nobody could tell which of them acted."""
    names: set[str] = set()
    for item in part.items():
        name = item.value.get("name") if isinstance(item.value, dict) else None
        if isinstance(name, str):
            if name in names:
                item.wrong(f"There are two rules called {name!r}.")
            names.add(name)


def from_value(value: Any) -> Scenario:
    """A scenario given as JSON; raises ScenarioRefused."""
    return read(Part(value), Origin("scenario"))


def from_text(text: str, source: str) -> Scenario:
    """A scenario given as YAML; raises ScenarioRefused with lines and columns."""
    return read(*parsed(text, source))


def parsed(text: str, source: str) -> tuple[Part, Origin]:
    """What YAML states, not read as a scenario yet; raises ScenarioRefused."""
    try:
        found = read_yaml(text)
    except YamlError as error:
        raise ScenarioRefused(source, [Mistake((), error.text, error.line, 1)]) from None
    return Part(found.value), Origin(source, text, found)


def from_file(path: FilePath, source: str | None = None) -> Scenario:
    """A scenario in a file; raises ScenarioRefused."""
    source = source or str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        raise ScenarioMissing(source, [Mistake((), "There is no such file, or it cannot be read.")]) from None
    if len(raw) > MAX_BYTES:
        raise ScenarioRefused(source, [Mistake((), "The file is longer than 1 MiB.")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ScenarioRefused(source, [Mistake((), "UTF-8 was expected.", line, 1)]) from None
    return from_text(text, source)


def library() -> Mapping[str, FilePath]:
    """The ready scenarios, by name."""
    return {path.stem: path for path in sorted(folder("scenarios").glob("*.yaml"))}


def named(name: str) -> Scenario:
    """A ready scenario; raises ScenarioRefused with a guess."""
    known = library()
    if name not in known:
        near = guess(name, known) or f"; there are {', '.join(known)}."
        raise ScenarioMissing(name[:100], [Mistake((), f"There is no scenario {name[:100]!r}{near}")])
    return from_file(known[name], f"{name}.yaml")


def named_or_file(source: str) -> Scenario:
    """A ready scenario by its name, or a file by its path, as `--scenario` takes it."""
    looks_like_file = "/" in source or source.endswith((".yaml", ".yml")) or FilePath(source).is_file()
    return from_file(FilePath(source)) if looks_like_file and source not in library() else named(source)
