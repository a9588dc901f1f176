"""The condition that a file states: a value, a text with `*`, or `{gt, lt, in, regex, absent}`; nested or not."""

from __future__ import annotations

from emulator.scenario.conditions import (
    Compared,
    Condition,
    Entries,
    Every,
    Exactly,
    Matching,
    Members,
    OneOf,
    There,
    number,
)
from emulator.scenario.part import Part
from emulator.scenario.regex import Pattern, PatternRefused

OPERATORS = ("gt", "lt", "in", "regex", "absent")
# Other tools' words: read as the name of a member they would never fit, and nobody would see why.
FOREIGN = frozenset({"gte", "lte", "ge", "le", "eq", "ne", "equals", "matches", "contains", "exists", "like", "not"})


def read(part: Part, *, nested: bool = True, strict: bool = False) -> Condition | None:
    """The condition a file states; mistakes are noted. `nested`: mappings and lists may stand inside."""
    value = part.value
    if isinstance(value, dict):
        return _mapping(part, nested=nested, strict=strict)
    if isinstance(value, list):
        if not nested:
            part.wrong("Expected one value; several are written as {in: [...]}.")
            return None
        entries = [read(item, strict=strict) for item in part.items()]
        return Entries(tuple(entry for entry in entries if entry is not None))
    return Exactly(value, strict)


def _mapping(part: Part, *, nested: bool, strict: bool) -> Condition | None:
    names = part.value.keys()
    operators = [name for name in names if name in OPERATORS]
    others = [name for name in names if name not in OPERATORS]
    if operators and not others:
        conditions = [_operator(name, part.inner(name, part.value[name]), strict) for name in operators]
        return Every(tuple(condition for condition in conditions if condition is not None))
    if operators:
        part.wrong(f"{operators[0]} cannot stand beside {others[0]}; a condition is {{gt, lt, in, regex, absent}}.")
        return None
    foreign = [name for name in others if name in FOREIGN]
    if not names and not nested:
        part.wrong(f"A condition says something: one of {', '.join(OPERATORS)}.")
        return None
    if foreign or (others and not nested):
        name = (foreign or others)[0]
        part.inner(name, None).unknown(name, OPERATORS, "There is no condition")
        return None
    members = [(name, read(member, strict=strict)) for name, member in part.mapping().items()]
    return Members(tuple((name, member) for name, member in members if member is not None), strict)


def _operator(name: str, part: Part, strict: bool) -> Condition | None:
    if name in ("gt", "lt"):
        bound = number(part.value)
        if bound is None:
            part.expected("a number")
            return None
        return Compared(name, bound)
    if name == "absent":
        absent = part.boolean()
        return None if absent is None else There(absent)
    if name == "regex":
        return _expression(part)
    choices = list(part.items(least=1))
    for item in choices:
        if isinstance(item.value, dict | list):
            item.expected("one value")
    return OneOf.of([item.value for item in choices], strict)


def _expression(part: Part) -> Condition | None:
    text = part.text()
    if text is None:
        return None
    try:
        return Matching(Pattern(text))
    except PatternRefused as refused:
        part.wrong(f"This is no regular expression: {refused}.")
        return None
