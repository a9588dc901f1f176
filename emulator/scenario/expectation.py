"""`expect` of a story's step: what the answer must be like, and in plain words where it is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import ConfigDict, Field

from emulator.bank.conditions import ABSENT, compiled
from emulator.bank.operators import Nested, Single
from emulator.bank.problems import written
from emulator.bank.validation import Maybe, Model, validate
from emulator.scenario.transport import Answer

LEAST_FAILURE = 400
LONGEST_SHOWN = 600


class Expect(Model):
    """What the answer to a step must be like."""

    model_config = ConfigDict(title="expect")

    status: Maybe[Single] = None
    json_body: Maybe[Nested] = Field(
        None, alias="json", description="Members that the answer must have; others may be there too."
    )
    headers: dict[str, Single] = Field(default_factory=dict)
    body: Maybe[Single] = None
    lost: bool = Field(False, description="The connection was closed without an answer.")
    seconds: Maybe[Single] = None


def differences(expected: Mapping[str, Any] | None, answer: Answer) -> list[str]:
    """What about the answer is not as expected, one sentence each; without an expectation it must not be an error."""
    wanted, problems = validate(Expect, dict(expected or {}))
    if wanted is None:
        return [f"expect.{problem.where()}: {problem.text}" for problem in problems]
    if answer.lost != wanted.lost:
        return ["expected an answer, the connection was closed" if answer.lost else "expected no answer, one came"]
    if answer.lost:
        return []
    if expected is None and answer.status >= LEAST_FAILURE:
        return [f"expected no error, found status {answer.status}: {brief(answer)}"]
    return list(_differences(wanted, answer))


def _differences(wanted: Expect, answer: Answer) -> Iterator[str]:
    """In the order of the form."""
    received: Mapping[str, Callable[[], Any]] = {
        "status": lambda: answer.status,
        "json_body": lambda: answer.json() if answer.body else ABSENT,
        "body": lambda: answer.body.decode("utf-8", "replace"),
        "seconds": lambda: answer.seconds,
    }
    for name, field in Expect.model_fields.items():
        if name == "headers":
            values = {sent.lower(): value for sent, value in answer.headers}
            for header, stated in wanted.headers.items():
                value = values.get(header.lower(), ABSENT)
                yield from _compared(stated, value, f"header {header}", strict=False)
        elif name in received and name in wanted.model_fields_set:
            shown = "" if name == "json_body" else (field.alias or name)
            yield from _compared(getattr(wanted, name), received[name](), shown, strict=True)


def _compared(stated: Any, value: Any, name: str, *, strict: bool) -> Iterator[str]:
    for path, text in compiled(stated, strict=strict).differences(value):
        place = written((name, *path)) if name else written(path) or "the body"
        yield f"{place}: {text}"


def brief(answer: Answer) -> str:
    """The body of an answer, cut to what fits on a screen."""
    value = answer.json()
    text = json.dumps(value, ensure_ascii=False) if value is not None else answer.body.decode("utf-8", "replace")
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} ..."
