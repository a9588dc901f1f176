"""The form of a scenario file with its story, and its JSON Schema (scenario-language.md).

`scenarios/scenario.schema.json` is a copy of the schema, which `python -m tests.docs.sections` writes: a new effect,
step, setting, product, error code or member of a story changes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from emulator.bank import fixtures
from emulator.bank.conditions import NAMED, Scalar
from emulator.bank.formats import FILE_NAME
from emulator.bank.validation import Mismatch, Model, Names, Omittable, filled, json_schema, matching, refuse
from emulator.scenario.actors import As, NewTpp
from emulator.scenario.rule import MOST_RULES, Rule
from emulator.scenario.start import Start
from emulator.scenario.steps import Scene, Step, step_kinds
from emulator.scenario.values import by_member
from emulator.scenario.variables import NAME as VARIABLE


class Parameter(Model):
    """A parameter with its default; `about` describes it."""

    model_config = ConfigDict(title="parameter")

    default: Scalar
    about: Omittable[Annotated[str, filled(500)]] = None


def _check_rules(rules: list[Rule]) -> list[Rule]:
    """Refuse two rules of one name in one file: reports could not distinguish them."""
    names: set[str] = set()
    wrong = []
    for index, rule in enumerate(rules):
        if rule.name is not None and rule.name in names:
            wrong.append(Mismatch(text=f"There are two rules called {rule.name!r}.", path=(index,)))
        names.add(rule.name or "")
    if wrong:
        refuse(*wrong)
    return rules


class ScenarioFile(Model):
    """Scenario of the bank emulator."""

    model_config = ConfigDict(alias_generator=None, title="Scenario of the bank emulator")

    scenario: Annotated[
        str, matching(FILE_NAME, "a name of 1 to 63 small letters, digits and dashes, such as slow-bank")
    ] = Field(description="Its name.")
    summary: Omittable[Annotated[str, filled(500)]] = Field(None, description="What it shows, in one sentence.")
    play: Omittable[Literal["only"]] = Field(
        None, description="only: its story can be played, but it cannot be applied."
    )
    parameters: Annotated[
        dict[str, Parameter],
        Names(VARIABLE, "The name of a parameter has letters, digits, - and _, and starts with a letter."),
    ] = Field({}, description="Values that can be chosen when it is applied; ${name} in start and rules.")
    start: Start = Field(default_factory=lambda: Start.model_validate({}))
    rules: Annotated[list[Rule], Field(max_length=MOST_RULES), AfterValidator(_check_rules)] = Field(
        default_factory=list
    )
    with_: dict[str, Scalar] = Field({}, alias="with", description="The parameters with which the story is played.")
    story_start: Omittable[Start] = Field(
        None, description="What the bank starts from when the story is played, before start."
    )
    as_: Omittable[As] = Field(None, alias="as")
    story: Annotated[list[AnyStep], Field(max_length=MOST_STEPS)] = Field(default_factory=list)


def scenario_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a scenario; cached: do not change it."""
    return _schema(tuple(fixtures.names()))


@lru_cache(maxsize=1)
def _schema(_fixtures: tuple[str, ...]) -> dict[str, Any]:
    schema = json_schema(ScenarioFile)
    shared = schema["$defs"]
    for name in _reached(shared, "Start", "Rule"):
        shared[name] = _with_placeholders(shared[name])
    shared["Placeholder"] = {"type": "string", "pattern": NAMED, "description": "${name} of a parameter."}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _reached(shared: Mapping[str, Any], *names: str) -> set[str]:
    """The named schemas, and those that they refer to."""
    reached, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += re.findall(r'"#/\$defs/(\w+)"', json.dumps(shared[name]))
    return reached


def _with_placeholders(schema: Any) -> Any:
    """The schema, with `${name}` allowed for every value that a parameter may have."""
    if isinstance(schema, list):
        return [_with_placeholders(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    allowed = {name: inner if name == "enum" else _with_placeholders(inner) for name, inner in schema.items()}
    if not {"enum", "pattern", "const"} & schema.keys() and schema.get("type") not in ("integer", "number", "boolean"):
        return allowed
    about = {"description": allowed.pop("description")} if "description" in allowed else {}
    return {"anyOf": [allowed, {"$ref": "#/$defs/Placeholder"}], **about}


MOST_STEPS = 1000


def _no_step(value: dict[str, Any]) -> Mismatch:
    kinds = step_kinds()
    named = [name for name in value if name in kinds]
    if named:
        return Mismatch(text=f"A step has one of {', '.join(named)}; write two steps.")
    return Mismatch(text="There is no step", known=tuple(kinds), value=next(iter(value), ""))


if TYPE_CHECKING:
    AnyStep = Step
else:
    AnyStep = by_member(step_kinds(), _no_step)


def scenes(steps: Sequence[Step], stated: Sequence[Mapping[str, Any]], everybody: As | None) -> tuple[Scene, ...]:
    """The steps ready to play; `stated`: their source; `everybody`: `as` of the story."""
    described: dict[str, NewTpp] = {}
    nobody = As.model_validate({})
    base = nobody if everybody is None else everybody.over(nobody, described)
    ready = []
    for step, source in zip(steps, stated, strict=True):
        persona = base if step.as_ is None else step.as_.over(base, described)
        ready.append(Scene(step, f"{step.word} {source[step.word]}", persona, source.get("expect")))
    return tuple(ready)
