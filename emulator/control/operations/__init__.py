"""The operations of the control interface: their table, their OpenAPI document, and the forms that several share.

The files of this folder have the operations. A duplicate is an error.

One that changes something is in `CHANGES` or `ELSEWHERE` of `tests/api/test_full_disk.py`; its command is a row of
`NOUNS` (`cli/control.py`), but for those of `sca`, `scenario` and `requests`, which have modules of their own in `cli`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from emulator.api.description import JSON_TYPE, Writer, content, path_parameter, query_parameter, resolved
from emulator.bank import fixtures
from emulator.bank.errors import BankError
from emulator.bank.problems import Path, Problem, described, unknown
from emulator.bank.validation import Mismatch, Model, Omittable, Reads, Text, Text200, refuse, validate, validate_as
from emulator.control.operation import AnswerSpec, ControlOperation, refusal
from emulator.discovery import discover
from emulator.scenario import loader
from emulator.scenario.loader import Origin, Scenario, ScenarioRefused
from emulator.scenario.model import ScenarioFile
from emulator.scenario.values import Context

# The table and its document

_PARAMETER = re.compile(r"\{(\w+)\}")
# The groups of operations by the first part of their path, where that is not the name of the group itself.
_TAGS = {
    "scenario": "scenarios",
    "certificate": "tpps",
    "events": "requests",
    "openapi.json": "documents",
    "scenario-schema.json": "documents",
}


@cache
def table() -> tuple[ControlOperation, ...]:
    """All operations, in the order of the file names."""
    return discover(__path__, __name__, ControlOperation, names=lambda row: (row.id, f"{row.method} {row.path}"))


def document(base: str) -> dict[str, Any]:
    """The OpenAPI document, with `base` as the address of the server; the rest is cached: do not change it."""
    return {**_document(tuple(fixtures.names())), "servers": [{"url": base}]}


@lru_cache(maxsize=1)
def _document(_fixtures: tuple[str, ...]) -> dict[str, Any]:
    """The document with these fixtures, which takes a fifth of a second in which the bank answers nobody."""
    writer = Writer()
    refused = content(writer.schema(Error))
    for row in table():
        writer.add(row.method, f"/_emulator{row.path}", _operation(row, writer))
    return writer.document(
        title="Bank emulator, control interface",
        description="Unsigned JSON for tests and tools: reset, clock, SCA, scenarios, rules, banks and more.",
        servers=[],
        security=[{}, {"token": []}],
        tags=[{"name": tag} for tag in sorted(set(map(_tag, table())))],
        components={
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "--control-token"}},
            "responses": {
                "refused": {
                    "description": "Refused: every problem is listed, and nothing was changed.",
                    "content": refused,
                }
            },
        },
    )


def _tag(row: ControlOperation) -> str:
    name = row.path.split("/")[1]
    return _TAGS.get(name, name)


def _operation(row: ControlOperation, writer: Writer) -> dict[str, Any]:
    responses = {str(status): _answer(row, status, answer, writer) for status, answer in row.answers.items()}
    return {
        "operationId": row.id,
        "tags": [_tag(row)],
        "summary": row.summary,
        "description": row.description,
        "parameters": [*map(path_parameter, _PARAMETER.findall(row.path)), *map(query_parameter, row.query)],
        "requestBody": _body(row, writer),
        "responses": {**responses, "default": {"$ref": "#/components/responses/refused"}},
    }


def _name(row: ControlOperation, form: Any, ending: str) -> str | None:
    """The name of the schema of a form that has none itself, such as a list."""
    return None if isinstance(form, str | type) else f"{row.id[0].upper()}{row.id[1:]}{ending}"


def _body(row: ControlOperation, writer: Writer) -> dict[str, Any] | None:
    if row.body is None:
        return None
    schema = writer.schema(row.body, _name(row, row.body, "Body"))
    shown: dict[str, Any] = {JSON_TYPE: {"schema": schema, "example": row.example}}
    if row.yaml:
        shown["application/yaml"] = {"schema": {"type": "object"}, "example": row.example}
    _, problems_of_empty = validate_as(resolved(row.body), {})
    return {"required": bool(problems_of_empty), "content": shown}


def _answer(row: ControlOperation, status: int, answer: AnswerSpec, writer: Writer) -> dict[str, Any]:
    if status >= 400:
        return {"description": answer.text, "content": content(writer.schema(Error))}
    if answer.form is None:
        return {"description": answer.text}
    return {
        "description": answer.text,
        "content": content(writer.schema(answer.form, _name(row, answer.form, "Answer")), media=answer.media),
    }


# Forms

closed = with_config(ConfigDict(extra="forbid"))


@closed
class Closed(TypedDict):
    """A form that refuses unknown members."""


class Message(Closed):
    """A problem, and the member, header or parameter that has it (`path`)."""

    category: Literal["ERROR", "WARNING"]
    code: str
    path: NotRequired[str]
    text: NotRequired[str]


class Error(Closed):
    """A refused request: every problem is listed, and nothing was changed."""

    tppMessages: list[Message]
    _links: NotRequired[dict[str, Any]]


# The documents of the bank by kind, settings by name, a scenario, or a document about the interface.
AnyObject = dict[str, Any]


class Who(Model):
    """The context and agreement in which a person authenticates, and the accounts that it shares."""

    context: Omittable[Context] = None
    agreement: Omittable[Text200] = Field(None, description="psuCorporateId.")
    accounts: Omittable[list[Text200]] = Field(None, description="iban, bban or resourceId of each.")


class ReadyScenario(Model):
    """The name of a ready scenario, with values of its parameters."""

    name: Text
    parameters: dict[str, Any] = Field({}, description="Values of the scenario's parameters, by name.")


def scenario_in(value: Any, origin: Origin) -> Scenario:
    """The ready scenario of {name, parameters?}, or the scenario that the value itself is; raises ScenarioRefused."""
    if isinstance(value, str):
        return _ready(value, {}, (), origin)
    if not isinstance(value, dict) or "name" not in value or "scenario" in value:
        return loader.read(value, origin)
    ready, problems = validate(ReadyScenario, value)
    if ready is None:
        raise origin.refused(problems)
    return _ready(ready.name, ready.parameters, ("name",), origin)


def _ready(name: str, values: Mapping[str, Any], path: Path, origin: Origin) -> Scenario:
    known = loader.library()
    if name not in known:
        raise origin.refused([Problem(path, unknown(name, known, "There is no scenario"))])
    return loader.named(name, values)


def _scenario(value: Any) -> Scenario:
    if not isinstance(value, str | dict):
        hint = "; write it in quotes" if isinstance(value, bool | int | float) else ""
        raise Mismatch(text=f"Expected text, found {described(value)}{hint}.")
    try:
        return scenario_in(value, Origin("scenario"))
    except ScenarioRefused as refused:
        refuse(*(Mismatch(text=problem.text, path=problem.path) for problem in refused.problems))


@contextmanager
def scenario_of_body() -> Iterator[None]:
    """A context for applying a ScenarioChoice: what does not fit the bank is named as what is wrong in its form."""
    try:
        yield
    except ScenarioRefused as error:
        raise refusal([replace(one, path=("scenario", *one.path)) for one in error.problems]) from None


_CHOICE = {
    "description": "The name of a ready scenario, {name, parameters}, or a scenario, as in applyScenario.",
    "type": ["string", "object"],
}
ScenarioChoice = Annotated[Any, Reads(_scenario, _CHOICE)]


def chosen_fixture(name: str | None, own: str | None = None) -> str | None:
    """The name of a fixture of the emulator; None for None or `own`. Raises FORMAT_ERROR for any other name.

    Files are for the command line only: a request cannot name a path of this machine.
    """
    if name is None or name == own:
        return None
    known = fixtures.names()
    if name not in known:
        raise BankError("FORMAT_ERROR", unknown(name, known, "There is no fixture"), "fixtures")
    return name


# The body of applyScenario: the name of a ready scenario, or a scenario.
ScenarioBody = ReadyScenario | ScenarioFile
