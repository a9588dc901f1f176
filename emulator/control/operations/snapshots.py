"""`snapshots`: save and restore the bank (CONTRACT 9.8)."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from emulator.api.messages import Response, Steps
from emulator.api.render import json_response
from emulator.bank.bank import reports_preparing
from emulator.bank.payment import progression
from emulator.control.answers import closed
from emulator.control.operation import LIMIT, AnswerSpec, ControlCall, ControlOperation
from emulator.store import discarded_on_failure


@closed
class Snapshot(TypedDict):
    """A snapshot; `created` is real time."""

    name: str
    created: str


@closed
class Snapshots(TypedDict):
    """Snapshots, newest first."""

    snapshots: list[Snapshot]


@closed
class SnapshotName(TypedDict):
    """The snapshot that was restored."""

    name: str


def _list(call: ControlCall[Any]) -> Response:
    return json_response(200, {"snapshots": call.scenario_target.snapshots.listing()[: call.query["limit"]]})


def _save(call: ControlCall[Any]) -> Steps:
    snapshots, name = call.scenario_target.snapshots, call.params["name"]
    known = {snapshot["name"] for snapshot in snapshots.listing()}
    yield from snapshots.saving(call.bank, name)
    call.publish("snapshots", "saved")
    saved = next(snapshot for snapshot in snapshots.listing() if snapshot["name"] == name)
    return json_response(200 if name in known else 201, saved)


def _restore(call: ControlCall[Any]) -> Steps:
    bank, snapshots, name = call.bank, call.scenario_target.snapshots, call.params["name"]
    content = yield from snapshots.prepare(bank, name, reports_preparing(bank))
    with discarded_on_failure(content), bank.documents.transaction():
        snapshots.restore(bank, name, content)
        progression.run_due(bank)
    call.scenario_target.rules.restart()
    call.publish("reset", "restored")
    return json_response(200, {"name": call.params["name"]})


def _delete(call: ControlCall[Any]) -> Response:
    call.scenario_target.snapshots.delete(call.params["name"])
    call.publish("snapshots", "deleted")
    return Response(204)


OPERATIONS = (
    ControlOperation(
        id="listSnapshots",
        method="GET",
        path="/snapshots",
        summary="List the snapshots of the bank, newest first.",
        handler=_list,
        answers={200: AnswerSpec("Name and time of each.", Snapshots)},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="saveSnapshot",
        method="PUT",
        path="/snapshots/{name}",
        summary="Save documents, clock, rules and settings of the bank.",
        handler=_save,
        answers={
            200: AnswerSpec("A snapshot was replaced.", Snapshot),
            201: AnswerSpec("A snapshot was created.", Snapshot),
        },
    ),
    ControlOperation(
        id="restoreSnapshot",
        method="POST",
        path="/snapshots/{name}/restore",
        summary="Restore a snapshot; the request log stays.",
        handler=_restore,
        answers={200: AnswerSpec("Done.", SnapshotName), 404: AnswerSpec("There is no such snapshot.")},
    ),
    ControlOperation(
        id="deleteSnapshot",
        method="DELETE",
        path="/snapshots/{name}",
        summary="Delete a snapshot.",
        handler=_delete,
        answers={204: AnswerSpec("Done."), 404: AnswerSpec("There is no such snapshot.")},
    ),
)
