"""`clock`: bank time, live or frozen; what falls due happens in order (CONTRACT 9.2)."""

from __future__ import annotations

from datetime import datetime

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.clock import Mode, date_time
from emulator.bank.payment import progression
from emulator.control.operation import TEXT, ControlCall, ControlOperation, object_of
from emulator.scenario import durations
from emulator.scenario.part import LATEST_YEAR

MODES = ("live", "frozen")


def _shown(call: ControlCall) -> Response:
    clock = call.bank.clock
    return json_response(200, {"now": date_time(clock.now()), "mode": clock.mode})


def _set(call: ControlCall) -> Response:
    members = call.body.members(("now", "mode"))
    now = members["now"].moment() if "now" in members else None
    mode: Mode | None = None
    if "mode" in members:
        mode = "live" if members["mode"].one_of(MODES, "mode of the clock") == "live" else "frozen"
    if not members:
        call.body.wrong("Expected now, mode or both.")
    if now is not None and now < (standing := call.bank.clock.now()):
        if date_time(now) != date_time(standing):
            members["now"].wrong(f"Bank time is {date_time(standing)} already; it goes back only by a reset.")
        now = None  # what the clock shows is no change, although it stands between two seconds
    call.refuse_mistakes()
    return _moved(call, now, mode)


def _advance(call: ControlCall) -> Response:
    members = call.body.members(("by",), required=("by",))
    to: datetime | None = None
    if "by" in members:
        by = durations.parse(members["by"].value)
        if by is None:
            members["by"].expected(durations.expected(members["by"].value))
        else:
            to = by.after(call.bank.clock.now())
            if to.year > LATEST_YEAR:
                members["by"].wrong(f"Bank time ends with the year {LATEST_YEAR}.")
    call.refuse_mistakes()
    return _moved(call, to, None)


def _moved(call: ControlCall, now: datetime | None, mode: Mode | None) -> Response:
    bank = call.bank
    with call.scenario_target.all_or_nothing():
        bank.clock.set(now=now, mode=mode)
        progression.run_due(bank)
    call.tell("clock", bank.clock.mode)
    return _shown(call)


OPERATIONS = (
    ControlOperation(
        id="getClock",
        method="GET",
        path="/clock",
        summary="Bank time, and whether it is live or frozen.",
        handler=_shown,
        answers={200: "now and mode."},
    ),
    ControlOperation(
        id="putClock",
        method="PUT",
        path="/clock",
        summary="Set bank time to a later moment, or let it run or stand still.",
        handler=_set,
        answers={200: "now and mode."},
        body={
            **object_of(now={"type": "string", "format": "date-time"}, mode={"enum": list(MODES)}),
            "minProperties": 1,
        },
        example={"now": "2026-03-02T09:00:00+01:00", "mode": "frozen"},
    ),
    ControlOperation(
        id="advanceClock",
        method="POST",
        path="/clock/advance",
        summary="Move bank time forward; all that falls due happens in order.",
        handler=_advance,
        answers={200: "now and mode."},
        body=object_of(("by",), by={**TEXT, "description": durations.EXPECTED}),
        example={"by": "PT1H"},
    ),
)
