"""`banks`: independent banks in one process, for tests that run in parallel."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated, Any, NotRequired

from pydantic import Field

from emulator.api.log import RequestLog
from emulator.api.render import json_response
from emulator.api.service import BankService
from emulator.bank.bank import reports_preparing
from emulator.bank.clock import stamp
from emulator.bank.documents import Restored
from emulator.bank.validation import Model, Moment, Omittable, Text
from emulator.control.operation import LIMIT, BankSpec, ControlCall, Json, Work, operation
from emulator.control.operations import Closed, ScenarioChoice, chosen_fixture, scenario_of_body
from emulator.control.operations.clock import ClockMode
from emulator.control.operations.tpps import IssuedTpp, IssueTpp, issued
from emulator.scenario import target
from emulator.scenario.values import Settings

SEEDS = 10**18


class NewBank(Model):
    """The contents of a new bank."""

    fixtures: Omittable[Text] = None
    scenario: ScenarioChoice = None
    seed: Omittable[Annotated[int, Field(ge=-SEEDS, le=SEEDS)]] = None
    settings: Settings = Field(default_factory=dict)
    now: Omittable[Moment] = Field(None, description="Bank time; dates in the fixture are relative to it.")
    clock: Omittable[ClockMode] = None
    tpp: Omittable[IssueTpp] = Field(None, description="A TPP to issue a new certificate to.")


class Bank(Closed):
    """A bank of the process and its base address."""

    name: str
    baseUrl: str


class ListedBank(Bank):
    """A bank; `home`: where the process that has it is reached by the others, if several share banks."""

    home: NotRequired[str]


class CreatedBank(Bank):
    """A new bank, and its TPP if one was requested."""

    tpp: NotRequired[IssuedTpp]


def _shown(call: ControlCall[Any], name: str) -> dict[str, Any]:
    return {"name": name, "baseUrl": f"{call.request.base}/banks/{name}"}


def _listed(call: ControlCall[Any], name: str) -> dict[str, Any]:
    home = call.banks.home(name)
    return _shown(call, name) if home is None else {**_shown(call, name), "home": home}


@operation("GET", "/banks", {200: ("Name and base address of each.", {"banks": list[ListedBank]})}, query=(LIMIT,))
def list_banks(call: ControlCall[Any]) -> Json:
    """List the banks of this process: the default one, then the others by name."""
    return {"banks": [_listed(call, name) for name in call.banks.names()[: call.query["limit"]]]}


@operation(
    "PUT",
    "/banks/{name}",
    {
        200: ("A bank was replaced.", CreatedBank),
        201: ("A bank was created.", CreatedBank),
        409: "The bank changed meanwhile, or it is the default one, which keeps its seed.",
    },
    body=NewBank,
    example={
        "fixtures": "known-state",
        "seed": 7,
        "now": "2026-03-02T09:00:00+01:00",
        "clock": "frozen",
        "settings": {"progression": "manual"},
        "tpp": {"name": "shop", "roles": ["PISP"]},
    },
)
def put_bank(call: ControlCall[NewBank]) -> Work:
    """Create or replace the bank of this name, with its own documents, clock, rules, log and seed."""
    name, wanted = call.params["name"], call.body
    fixture = chosen_fixture(wanted.fixtures)
    is_new = not call.banks.exists(name)
    shown: dict[str, Any] = _shown(call, name)

    def prepare(service: BankService, undo: ExitStack) -> None:
        # until the new bank replaces the old one the log belongs to that one
        scenario_target = replace(call.target_of(service), log=RequestLog())
        scenario_target.snapshots.clear()
        with scenario_of_body():
            target.furnish(scenario_target, () if wanted.scenario is None else (wanted.scenario,), wanted.settings)
        if wanted.tpp is not None:
            tpp = wanted.tpp.model_copy(update={"replace": True})
            shown["tpp"] = issued(call.authority, tpp, path="tpp.", within=undo)

    created = yield from call.banks.making(
        name,
        BankSpec(
            fixture=fixture,
            seed=wanted.seed,
            restored=_restored(wanted),
            prepare=prepare,
            report=reports_preparing(call.bank, "banks", name=name),
        ),
    )
    yield from call.authority.lasting(after_changes=True)
    replace(call, service=created).publish("reset", "reset")
    call.banks.publish_to_all("banks", name, "created")
    return json_response(201 if is_new else 200, shown)


def _restored(wanted: NewBank) -> Restored:
    restored: Restored = {}
    if wanted.now is not None:
        restored["now"] = stamp(wanted.now)
    if wanted.clock is not None:
        restored["clock"] = wanted.clock
    if wanted.settings:
        restored["settings"] = wanted.settings
    if wanted.scenario is not None:
        restored["scenarios"] = [dict(wanted.scenario.source)]
    return restored


@operation(
    "DELETE",
    "/banks/{name}",
    {
        204: "The bank was deleted.",
        404: "There is no such bank.",
        409: "The default bank cannot be deleted.",
    },
)
def delete_bank(call: ControlCall[Any]) -> Work:
    """Delete the bank and its documents."""
    yield from call.banks.deleting(call.params["name"])
    call.banks.publish_to_all("banks", call.params["name"], "deleted")
    return None
