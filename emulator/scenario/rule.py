"""One scripted rule as a file states it: when, how often, and what then (CONTRACT 10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from emulator.scenario import matching
from emulator.scenario.effect import Effect
from emulator.scenario.effects import effects
from emulator.scenario.matching import Matcher
from emulator.scenario.part import Part
from emulator.scenario.vocabulary import vocabulary

MEMBERS = ("name", "unsigned", "when", "times", "then")
TIMES = ("first", "every", "after", "chance", "for")
MOST_COUNTED = 10**9
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Times:
    """On which matches a rule acts: `kind` is a word of TIMES, or empty for every match."""

    kind: str = ""
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule ready to act, which may have no name; `source` is its JSON, exactly of the YAML's shape."""

    name: str | None
    unsigned: bool
    matcher: Matcher
    times: Times
    effects: Mapping[str, Effect]
    source: Mapping[str, Any]


def read(part: Part) -> Rule | None:
    """The rule that a file states; None, with its mistakes noted, when it is none."""
    members = part.members(MEMBERS, required=("then",))
    name = members["name"].text(longest=LONGEST_NAME) if "name" in members else None
    unsigned = bool(members["unsigned"].boolean()) if "unsigned" in members else False
    matcher = matching.read(members["when"]) if "when" in members else Matcher(())
    times = _times(members["times"]) if "times" in members else Times()
    if "then" not in members:
        return None
    found = _effects(members["then"], members["when"].value if "when" in members else {})
    return Rule(name, unsigned, matcher, times, found, part.value)


def _times(part: Part) -> Times:
    members = part.members(TIMES)
    if isinstance(part.value, dict) and len(part.value) != 1:
        part.wrong(f"Expected one of {', '.join(TIMES)}.")
    for kind, member in members.items():
        if kind == "chance":
            value: float | timedelta | None = member.number(0, 1)
        elif kind == "for":
            value = member.duration()
        else:
            value = member.whole(0 if kind == "after" else 1, MOST_COUNTED)
        if isinstance(value, timedelta):
            value = value.total_seconds()
        if value is not None:
            return Times(kind, value)
    return Times()


def _effects(part: Part, when: Any) -> dict[str, Effect]:
    known = effects()
    members = part.members(known)
    if isinstance(part.value, dict) and not part.value:
        part.wrong(f"A rule needs an effect: one of {', '.join(known)}.")
    found: dict[str, Effect] = {}
    for name, member in members.items():
        effect = known[name].read(member)
        _check_useful(name, member, when)
        if effect is not None:
            found[name] = effect
    for instead in (name for name, effect in found.items() if effect.instead):
        for name in found:
            if known[name].inside and name not in found[instead].leaves:
                members[name].wrong(f"{name} has no use beside {instead}, which keeps the bank from acting.")
    return found


def _check_useful(name: str, part: Part, when: Any) -> None:
    """An effect on operations that it does nothing to is a slip that nobody would notice."""
    useful = effects()[name].operations
    meant = matching.operations_meant(when, vocabulary())
    if useful and meant and not meant & frozenset(useful):
        part.wrong(f"{name} does nothing to {', '.join(sorted(meant))}; it acts on {', '.join(useful)}.")
