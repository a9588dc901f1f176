"""Reading what a body chooses: a fixture, a scenario, a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulator.bank import fixtures
from emulator.control.operation import TEXT
from emulator.scenario import loader
from emulator.scenario.mistakes import Origin
from emulator.scenario.model import Scenario
from emulator.scenario.part import Part
from emulator.scenario.vocabulary import CONTEXTS

WHO = ("nationalId", "context", "agreement", "accounts")

WHO_SCHEMA: Mapping[str, Any] = {
    "nationalId": TEXT,
    "context": {"enum": list(CONTEXTS)},
    "agreement": {**TEXT, "description": "psuCorporateId."},
    "accounts": {"type": "array", "items": TEXT, "description": "iban, bban or resourceId of each."},
}


def chosen_fixture(part: Part | None, own: str | None = None) -> str | None:
    """The name of a fixture that comes with the emulator; None when none is named, or `own`.

    Files are for the command line: what comes over the network names no path of this machine.
    """
    if part is None:
        return None
    text = part.text(longest=1000)
    known = fixtures.names()
    if text is None or text == own or text in known:
        return None if text == own else text
    part.unknown(text, known, "There is no fixture")
    return None


def scenario_in(part: Part, origin: Origin) -> Scenario:
    """The ready scenario that {name} names, or the one that stands there; raises ScenarioRefused."""
    if not isinstance(part.value, dict) or "name" not in part.value or "scenario" in part.value:
        return loader.read(part, origin)
    return _ready(part.members(("name",))["name"], origin)


def _ready(part: Part, origin: Origin) -> Scenario:
    name, known = part.text(), loader.library()
    if name is not None and name not in known:
        part.unknown(name, known, "There is no scenario")
    if part.report or name is None:
        raise origin.refused(part.report.mistakes)
    return loader.named(name)


def chosen_scenario(part: Part | None) -> Scenario | None:
    """A ready scenario, its name bare or as {name}, or one that stands there as JSON; raises ScenarioRefused."""
    if part is None:
        return None
    origin = Origin("scenario")
    return scenario_in(part, origin) if isinstance(part.value, dict) else _ready(part, origin)


@dataclass(frozen=True, slots=True)
class Choice:
    """Who authenticates, in which context and under which agreement, and which accounts it shares."""

    national_id: str | None
    context: str | None
    agreement: str | None
    accounts: list[str] | None


def chosen_person(members: Mapping[str, Part]) -> Choice:
    """The members WHO of a body, each None where it is left out."""
    texts = {name: members[name].text(longest=200) for name in ("nationalId", "agreement") if name in members}
    context = members["context"].one_of(CONTEXTS, "context") if "context" in members else None
    accounts = None
    if "accounts" in members:
        accounts = [text for item in members["accounts"].items() if (text := item.text(longest=200)) is not None]
    return Choice(texts.get("nationalId"), context, texts.get("agreement"), accounts)
