"""`snapshots`: going back to how the bank was (CONTRACT 9.8)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.payment import progression
from emulator.control.operation import LIMIT, ControlCall, ControlOperation


def _list(call: ControlCall) -> Response:
    return json_response(200, {"snapshots": call.scenario_target.snapshots.listing()[: call.query["limit"]]})


def _save(call: ControlCall) -> Response:
    snapshots, name = call.scenario_target.snapshots, call.params["name"]
    known = {snapshot["name"] for snapshot in snapshots.listing()}
    snapshots.save(call.bank, name)
    call.tell("snapshots", "saved")
    kept = next(snapshot for snapshot in snapshots.listing() if snapshot["name"] == name)
    return json_response(200 if name in known else 201, kept)


def _restore(call: ControlCall) -> Response:
    with call.scenario_target.all_or_nothing():
        call.scenario_target.snapshots.restore(call.bank, call.params["name"])
        call.scenario_target.refresh()
        progression.run_due(call.bank)
    call.tell("reset", "restored")
    return json_response(200, {"name": call.params["name"]})


def _delete(call: ControlCall) -> Response:
    call.scenario_target.snapshots.delete(call.params["name"])
    call.tell("snapshots", "deleted")
    return Response(204)


OPERATIONS = (
    ControlOperation(
        id="listSnapshots",
        method="GET",
        path="/snapshots",
        summary="The snapshots of the bank, newest first.",
        handler=_list,
        answers={200: "Name and time of each."},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="saveSnapshot",
        method="PUT",
        path="/snapshots/{name}",
        summary="Keep the bank as it stands: documents, clock, rules and settings.",
        handler=_save,
        answers={200: "It took the place of an earlier one.", 201: "It is new."},
    ),
    ControlOperation(
        id="restoreSnapshot",
        method="POST",
        path="/snapshots/{name}/restore",
        summary="Make the bank what it was; the request log stays.",
        handler=_restore,
        answers={200: "Done.", 404: "There is no such snapshot."},
    ),
    ControlOperation(
        id="deleteSnapshot",
        method="DELETE",
        path="/snapshots/{name}",
        summary="Let go of a snapshot.",
        handler=_delete,
        answers={204: "Done.", 404: "There is no such snapshot."},
    ),
)
