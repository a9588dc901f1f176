"""Plays a story step by step and compares each answer with the expected one (scenario-language.md#playing)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from emulator import junit
from emulator.scenario.actors import Actors
from emulator.scenario.loader import Scenario
from emulator.scenario.steps import Scene, differences
from emulator.scenario.transport import ReceivedAnswer, Transport, TransportFailed
from emulator.scenario.variables import Unknown, Variables, member_at, with_defaults

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
REFUSED = 400


@dataclass(slots=True)
class StepResult:
    """The result of one step; `differences` are sentences; `answer` is None for a step that was not played.

    `title` has the names in it filled in, and `written` is the title as in the file.
    """

    number: int
    title: str
    outcome: str
    expected: Any = None
    answer: ReceivedAnswer | None = None
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0
    written: str = ""

    def received(self) -> dict[str, Any] | None:
        if self.answer is None:
            return None
        if self.answer.lost:
            return {"lost": True}
        value = self.answer.json()
        shown = {"json": value} if value is not None else {"body": self.answer.body.decode("utf-8", "replace")}
        return {"status": self.answer.status, **(shown if self.answer.body else {})}

    def as_json(self) -> dict[str, Any]:
        """The result as JSON of the control interface and the command line."""
        shown = {
            "step": self.number,
            "action": self.title,
            "outcome": self.outcome,
            "expected": self.expected,
            "found": self.received(),
            "differences": self.differences,
        }
        return {name: value for name, value in shown.items() if value not in (None, [])}


@dataclass(slots=True)
class Played:
    """The result of a story."""

    scenario: str
    summary: str
    steps: list[StepResult]

    @property
    def refused(self) -> bool:
        """Whether it was not played, as the bank refused its start because of a problem of the scenario."""
        return any(step.number == 0 and step.answer and step.answer.status == REFUSED for step in self.steps)

    @property
    def passed(self) -> bool:
        return all(step.outcome == PASSED for step in self.steps)

    def as_json(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario,
            "summary": self.summary,
            "passed": self.passed,
            "steps": [step.as_json() for step in self.steps],
        }


def play(scenario: Scenario, transport: Transport, *, on_step: Callable[[StepResult], None] | None = None) -> Played:
    """Apply the scenario to the bank of the transport and play its story; steps after a failed one are skipped.

    `on_step` is called with the result of each step.
    """
    played = Played(scenario.name, scenario.summary, [])
    for step in _steps(scenario, transport):
        played.steps.append(step)
        if on_step is not None:
            on_step(step)
    return played


def _steps(scenario: Scenario, transport: Transport) -> Iterator[StepResult]:
    start = _applied(scenario, transport)
    if start is not None:
        yield start
    actors = Actors(transport)
    variables = Variables(actors.today, scenario.story_values)
    failed = start is not None
    for number, scene in enumerate(scenario.story, 1):
        if failed:
            yield StepResult(number, scene.title, SKIPPED)
        else:
            result = _play_scene(number, scene, actors, variables)
            failed = result.outcome == FAILED
            yield result


def _applied(scenario: Scenario, transport: Transport) -> StepResult | None:
    """Apply `story_start`, if there is one, then the scenario with its values; the result of a failure, else None."""
    source = with_defaults(scenario.source, scenario.source.get("with") or {})
    source.pop("play", None)
    starts = [("start", source)]
    if "story_start" in source:
        starts.insert(0, ("story_start", {"scenario": scenario.name, "start": source.pop("story_start")}))
    for start, applied in starts:
        result = StepResult(0, f"start {scenario.name}", FAILED)
        try:
            result.answer = transport.control("POST", "/scenario", applied)
            result.differences = differences(None, result.answer)
            if result.answer.status == REFUSED:
                result.differences = scenario.origin.refused_by(result.answer.messages(), start=start).lines()
        except TransportFailed as failed:
            result.differences = [str(failed)]
        if result.differences:
            return result
    return None


def _play_scene(number: int, scene: Scene, actors: Actors, variables: Variables) -> StepResult:
    result = StepResult(number, scene.title, FAILED, scene.expect, written=scene.title)
    began = time.perf_counter()
    try:
        result.title = f"{scene.step.word} {variables.fill(scene.title.partition(' ')[2])}"
        result.expected = variables.fill(scene.expect)
        result.answer = scene.step.play(actors, scene.persona, variables.fill)
        result.differences = differences(result.expected, result.answer)
        if not result.differences:
            for name, path in scene.step.save.items():
                variables.save(name, member_at(result.answer.json(), path))
    except (Unknown, TransportFailed) as failed:
        result.differences = [str(failed)]
    result.seconds = time.perf_counter() - began
    if not result.differences:
        result.outcome = PASSED
    return result


def junit_report(stories: Sequence[Played]) -> str:
    """JUnit XML: a test suite for each story, a test case for each step, with the same names in every run."""
    root = ElementTree.Element("testsuites", name="scenarios")
    root.extend(junit.suite(story.scenario, (_case(story, step) for step in story.steps)) for story in stories)
    return junit.document(root)


def _case(story: Played, step: StepResult) -> junit.Case:
    details = json.dumps(step.as_json(), ensure_ascii=False, indent=2)
    return junit.Case(
        story.scenario,
        f"{step.number} {step.written or step.title}",
        failure=("; ".join(step.differences), details) if step.outcome == FAILED else None,
        skipped="" if step.outcome == SKIPPED else None,
        seconds=step.seconds,
    )
