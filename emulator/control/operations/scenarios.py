"""`scenarios` and `scenario`: list, apply, withdraw and play scenarios (CONTRACT 9.5, 10, 14)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from emulator.api.messages import Response, Steps
from emulator.api.render import json_response
from emulator.bank.clock import date_time
from emulator.bank.errors import BankError
from emulator.bank.threads import in_thread
from emulator.control.answers import AnyObject, closed
from emulator.control.forms import scenario_in
from emulator.control.operation import LIMIT, AnswerSpec, ControlCall, ControlOperation
from emulator.control.operations.clock import ClockTime
from emulator.scenario import loader, target
from emulator.scenario.loader import Origin, Scenario, ScenarioRefused

LARGE = 1 << 16  # bytes of a body; a larger one is read in a thread


@closed
class ScenarioLine(TypedDict):
    """A ready scenario: what it does, whether it can be applied, and what applying it replaces.

    `parameters`: `{default, about?}` by name; `reset`: whether the documents of the bank are replaced; `clock`: the
    bank time that is set.
    """

    name: str
    summary: str
    play: Literal["only"] | None
    parameters: dict[str, dict[str, Any]]
    reset: bool
    clock: str | None
    rules: int
    steps: int


@closed
class Scenarios(TypedDict):
    """The ready scenarios."""

    scenarios: list[ScenarioLine]


@closed
class Applied(TypedDict):
    """The result of applying a scenario: whether the bank was reset, bank time, number of rules, settings."""

    scenario: str
    reset: bool
    clock: ClockTime
    rules: int
    settings: dict[str, Any]


class Preview(Applied):
    """The expected result of applying a scenario; `lost` describes the data of the bank that it would replace."""

    lost: list[str]


class PlayedStep(TypedDict):
    """The result of a step of a story."""

    step: int
    action: str
    outcome: Literal["passed", "failed", "skipped"]
    expected: NotRequired[Any]
    found: NotRequired[dict[str, Any]]
    differences: NotRequired[list[str]]


@closed
class Played(TypedDict):
    """The result of a story."""

    scenario: str
    summary: str
    passed: bool
    steps: list[PlayedStep]


def _list(call: ControlCall[Any]) -> Response:
    ready = [_line(loader.named(name)) for name in loader.library()]
    return json_response(200, {"scenarios": ready[: call.query["limit"]]})


def _line(scenario: Scenario) -> dict[str, Any]:
    start = scenario.start
    return {
        "name": scenario.name,
        "summary": scenario.summary,
        "play": "only" if scenario.play_only else None,
        "parameters": dict(scenario.source.get("parameters", {})),
        "reset": start.resets,
        "clock": None if start.clock is None else date_time(start.clock),
        "rules": len(scenario.rules),
        "steps": len(scenario.story),
    }


def _named(call: ControlCall[Any]) -> Scenario:
    try:
        return loader.named(call.params["name"])
    except ScenarioRefused as refused:
        raise BankError("RESOURCE_UNKNOWN", refused.problems[0].text) from None


def _show(call: ControlCall[Any]) -> Response:
    return json_response(200, dict(_named(call).source))


def _applied(call: ControlCall[Any]) -> Response:
    source = target.applied(call.bank)
    if source is None:
        raise BankError("RESOURCE_UNKNOWN", "No scenario has been applied.")
    return json_response(200, source)


def _given(call: ControlCall[Any]) -> Generator[object, None, Scenario]:
    """The scenario of the body: a ready one by its name, JSON or YAML; raises ScenarioRefused."""

    def read() -> Scenario:
        value, origin = (call.value, Origin("scenario")) if call.text is None else loader.parsed(call.text, "scenario")
        return scenario_in(value, origin)

    return (yield from in_thread(read)) if len(call.request.body) > LARGE else read()


def _apply(call: ControlCall[Any]) -> Steps:
    scenario = yield from _given(call)
    content = yield from target.prepare(scenario, call.scenario_target)
    return json_response(200, target.apply(scenario, call.scenario_target, content))


def _preview(call: ControlCall[Any]) -> Steps:
    scenario = yield from _given(call)
    content = yield from target.prepare(scenario, call.scenario_target, status="previewing")
    return json_response(200, target.preview(scenario, call.scenario_target, content))


def _withdraw(call: ControlCall[Any]) -> Response:
    target.withdraw(call.scenario_target)
    return Response(204)


def _play(call: ControlCall[Any]) -> Response:
    """Play on a new bank, which is deleted afterwards."""
    # Imported on use: most processes never play a story.
    from emulator.scenario.player import play

    return json_response(200, play(_named(call), call.banks.transport()).as_json())


_BODY = "emulator.control.forms:ScenarioBody"
_EXAMPLE = {"name": "insufficient-funds", "parameters": {}}

OPERATIONS = (
    ControlOperation(
        id="listScenarios",
        method="GET",
        path="/scenarios",
        summary="List the ready scenarios: what each does, its parameters, and what applying it replaces.",
        handler=_list,
        answers={200: AnswerSpec("The scenarios, by name.", Scenarios)},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="getScenario",
        method="GET",
        path="/scenarios/{name}",
        summary="Get a ready scenario, as JSON of the same structure as its YAML.",
        handler=_show,
        answers={200: AnswerSpec("The scenario.", AnyObject), 404: AnswerSpec("There is no such scenario.")},
    ),
    ControlOperation(
        id="playScenario",
        method="POST",
        path="/scenarios/{name}/play",
        summary="Play the story of a ready scenario on a new bank; this bank is not changed.",
        handler=_play,
        answers={
            200: AnswerSpec("The result of each step.", Played),
            404: AnswerSpec("There is no such scenario."),
        },
    ),
    ControlOperation(
        id="getAppliedScenario",
        method="GET",
        path="/scenario",
        summary="Get the scenario that was applied last, as JSON of the same structure as its YAML.",
        handler=_applied,
        answers={200: AnswerSpec("The scenario.", AnyObject), 404: AnswerSpec("None has been applied.")},
    ),
    ControlOperation(
        id="applyScenario",
        method="POST",
        path="/scenario",
        summary="Apply a scenario: its start, then its rules. One with problems changes nothing.",
        handler=_apply,
        answers={
            200: AnswerSpec("What was changed.", Applied),
            400: AnswerSpec("Every problem; in YAML with line and column."),
        },
        body=_BODY,
        required=True,
        example=_EXAMPLE,
        yaml=True,
        checks_body=True,
    ),
    ControlOperation(
        id="previewScenario",
        method="POST",
        path="/scenario/preview",
        summary="Preview what applying a scenario would change and replace; nothing is changed.",
        handler=_preview,
        answers={
            200: AnswerSpec("What would be changed.", Preview),
            400: AnswerSpec("Every problem; in YAML with line and column."),
        },
        body=_BODY,
        required=True,
        example=_EXAMPLE,
        yaml=True,
        checks_body=True,
    ),
    ControlOperation(
        id="withdrawScenario",
        method="DELETE",
        path="/scenario",
        summary="Remove the applied scenario and the rules of all applied scenarios; what they changed stays.",
        handler=_withdraw,
        answers={204: AnswerSpec("Done.")},
    ),
)
