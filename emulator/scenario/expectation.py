"""`expect` of a story's step: what the answer must be like, and in plain words where it is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from emulator.scenario import stated
from emulator.scenario.conditions import ABSENT
from emulator.scenario.mistakes import shown
from emulator.scenario.part import Part
from emulator.scenario.transport import Answer

MEMBERS = ("status", "json", "headers", "body", "lost", "seconds")
LEAST_FAILURE = 400
LONGEST_SHOWN = 600


def read(part: Part) -> None:
    """Note the mistakes of an expectation."""
    for name, member in part.members(MEMBERS).items():
        if name == "lost":
            member.boolean()
        elif name == "headers":
            for header in member.mapping().values():
                stated.read(header, nested=False)
        elif "${" not in str(member.value):
            # With names in it, it can only be judged when they are known.
            stated.read(member, nested=name == "json", strict=True)


def differences(expected: Mapping[str, Any] | None, answer: Answer) -> list[str]:
    """What about the answer is not as expected, one sentence each; without an expectation it must not be an error."""
    part = Part(dict(expected or {}))
    read(part)
    if part.report:
        return [f"expect.{mistake.where()}: {mistake.text}" for mistake in part.report.mistakes]
    wanted = part.mapping()
    may_be_lost = bool(wanted["lost"].value) if "lost" in wanted else False
    if answer.lost != may_be_lost:
        return ["expected an answer, the connection was closed" if answer.lost else "expected no answer, one came"]
    if answer.lost:
        return []
    if expected is None and answer.status >= LEAST_FAILURE:
        return [f"expected no error, found status {answer.status}: {brief(answer)}"]
    return [text for name, member in wanted.items() for text in _differing(name, member, answer)]


def _differing(name: str, part: Part, answer: Answer) -> list[str]:
    if name == "headers":
        values = {sent.lower(): value for sent, value in answer.headers}
        return [
            text
            for header, member in part.mapping().items()
            for text in _told(member, values.get(header.lower(), ABSENT), f"header {header}")
        ]
    if name == "json":
        return _told(part, answer.json() if answer.body else ABSENT, "")
    found = {"status": answer.status, "body": answer.body.decode("utf-8", "replace"), "seconds": answer.seconds}
    return _told(part, found[name], name) if name in found else []


def _told(part: Part, value: Any, name: str) -> list[str]:
    condition = stated.read(part, strict=not name.startswith("header"))
    told = condition.differences(value) if condition is not None else ()
    return [f"{shown((name, *path)) if name else shown(path) or 'the body'}: {text}" for path, text in told]


def brief(answer: Answer) -> str:
    """The body of an answer, cut to what fits on a screen."""
    value = answer.json()
    text = json.dumps(value, ensure_ascii=False) if value is not None else answer.body.decode("utf-8", "replace")
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} ..."
