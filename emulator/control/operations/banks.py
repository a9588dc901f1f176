"""`banks`: many independent banks in one process, for tests that run side by side (CONTRACT 9.6)."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from emulator.api.log import RequestLog
from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.api.service import BankService
from emulator.bank.snapshots import Snapshots
from emulator.control.choices import chosen_fixture, chosen_scenario
from emulator.control.operation import LIMIT, TEXT, ControlCall, ControlOperation, object_of
from emulator.scenario import target

SEEDS = 10**18


def _shown(call: ControlCall, name: str) -> dict[str, Any]:
    return {"name": name, "baseUrl": f"{call.request.base}/banks/{name}"}


def _list(call: ControlCall) -> Response:
    return json_response(200, {"banks": [_shown(call, name) for name in call.banks.names()[: call.query["limit"]]]})


def _put(call: ControlCall) -> Response:
    name = call.params["name"]
    members = call.body.members(("fixtures", "scenario", "seed"))
    fixture = chosen_fixture(members.get("fixtures"))
    scenario = chosen_scenario(members.get("scenario"))
    seed = members["seed"].whole(-SEEDS, SEEDS) if "seed" in members else None
    call.refuse_mistakes()
    is_new = name not in call.banks.names()

    def prepare(service: BankService) -> None:
        scenario_target = call.target_of(service)
        scenario_target.refresh()
        if scenario is not None:
            # a new bank has no snapshots, and until it is there the log is that of the one before
            target.apply(scenario, replace(scenario_target, snapshots=Snapshots(None), log=RequestLog()))

    with call.banks.without_damage(name):
        known = call.banks.find(name)
        with nullcontext() if known is None else call.target_of(known).back_on_failure():
            made = call.banks.make(name, fixture=fixture, seed=seed, prepare=prepare)
    call.target_of(made).snapshots.clear()
    replace(call, service=made).tell("reset", "made anew")
    call.tell_all("banks", name, "made")
    return json_response(201 if is_new else 200, _shown(call, name))


def _delete(call: ControlCall) -> Response:
    call.banks.close_bank(call.params["name"])
    call.tell_all("banks", call.params["name"], "deleted")
    return Response(204)


OPERATIONS = (
    ControlOperation(
        id="listBanks",
        method="GET",
        path="/banks",
        summary="The banks of this process, the default one first, the others by name.",
        handler=_list,
        answers={200: "Name and base address of each."},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="putBank",
        method="PUT",
        path="/banks/{name}",
        summary="A bank of this name, new whatever stood there: own documents, clock, rules, log, snapshots and seed.",
        handler=_put,
        answers={200: "It was made anew.", 201: "It is new."},
        body=object_of(fixtures=TEXT, scenario={"description": "A name, or a scenario."}, seed={"type": "integer"}),
        example={"fixtures": "known-state", "seed": 7},
    ),
    ControlOperation(
        id="deleteBank",
        method="DELETE",
        path="/banks/{name}",
        summary="The bank is no more, its documents with it.",
        handler=_delete,
        answers={204: "Done.", 404: "There is no such bank.", 409: "The default bank stays."},
    ),
)
