"""The story of a scenario: its steps read and checked against one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.scenario import expectation, persona, variables
from emulator.scenario.part import Part
from emulator.scenario.persona import Declared, Persona
from emulator.scenario.step import COMMON, Step, StepKind
from emulator.scenario.steps import step_kinds

MOST_STEPS = 1000
LONGEST_PATH = 500


def read(part: Part, base: Persona, declared: Declared) -> tuple[Step, ...]:
    """The steps that a file states; mistakes are noted, names that no earlier step saves among them.

    `declared`: the TPPs that are described already; those of the steps are added.
    """
    steps: list[Step] = []
    saved: set[str] = set()
    for item in part.items():
        kind = _kind(item)
        if kind is None:
            continue
        members = item.members(kind.known())
        variables.check(item, saved)
        # What a step with mistakes saves is known to the steps after it.
        save = _save(members["save"]) if "save" in members else {}
        saved |= save.keys()
        acting = persona.read(members["as"], base, declared) if "as" in members else base
        step = _step(item, kind, members, acting, save)
        if step is not None:
            steps.append(step)
    if len(steps) > MOST_STEPS:
        part.wrong(f"At most {MOST_STEPS} steps were expected.")
    return tuple(steps)


def _kind(part: Part) -> StepKind | None:
    kinds = step_kinds()
    found = part.mapping()
    named = [name for name in found if name in kinds]
    if len(named) == 1:
        return kinds[named[0]]
    if named:
        part.wrong(f"One step is one of {', '.join(named)}; write two steps.")
    elif isinstance(part.value, dict):
        part.unknown(next(iter(found), ""), kinds, f"A step is one of {', '.join(kinds)}; there is no")
    return None


def _step(
    part: Part, kind: StepKind, members: Mapping[str, Part], acting: Persona, save: Mapping[str, str]
) -> Step | None:
    action = kind.read({name: member for name, member in members.items() if name not in COMMON})
    expect = _expect(members["expect"]) if "expect" in members else None
    if action is None:
        return None
    return Step(kind.name, f"{kind.name} {part.value[kind.name]}", action, acting, expect, save)


def _expect(part: Part) -> Mapping[str, Any] | None:
    expectation.read(part)
    return part.value if isinstance(part.value, dict) else None


def _save(part: Part) -> dict[str, str]:
    save: dict[str, str] = {}
    for name, member in part.mapping().items():
        if not variables.NAME.fullmatch(name):
            member.wrong("A name to save under has letters, digits, - and _, and starts with a letter.")
        path = member.text(longest=LONGEST_PATH)
        if path is not None:
            save[name] = path
    return save
