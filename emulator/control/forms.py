"""What the forms of several bodies and answers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from emulator.bank import fixtures
from emulator.bank.errors import BankError
from emulator.bank.problems import Path, Problem, described, unknown
from emulator.bank.validation import Mismatch, Model, Omittable, Reads, Text, Text200, refuse, validate
from emulator.control.operation import refusal
from emulator.scenario import loader
from emulator.scenario.loader import Origin, Scenario, ScenarioRefused
from emulator.scenario.model import ScenarioFile
from emulator.scenario.values import Context

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
