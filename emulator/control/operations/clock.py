"""`clock`: bank time, live or frozen. What falls due happens in order (bank-time.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self, get_args

from pydantic import ConfigDict, model_validator

from emulator.bank.clock import Mode, date_time
from emulator.bank.errors import BankError
from emulator.bank.formats import END, YEARS
from emulator.bank.payment import progression
from emulator.bank.validation import Mismatch, Model, Moment, Omittable, Reads, one_of, refuse
from emulator.control.operation import ControlCall, Json, Work, operation
from emulator.control.operations import Closed
from emulator.scenario import durations
from emulator.scenario.durations import Duration

ClockMode = Annotated[Mode, one_of("mode of the clock", get_args(Mode))]


class SetClock(Model):
    """Bank time and mode; at least one of the two."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    now: Omittable[Moment] = None
    mode: Omittable[ClockMode] = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set:
            refuse(Mismatch(text="Expected now, mode or both."))
        return self


class ClockTime(Closed):
    """Bank time."""

    now: str
    mode: Mode


def _duration(value: Any) -> Duration:
    length = durations.parse(value)
    if length is None:
        raise Mismatch(durations.expected(value))
    return length


class AdvanceClock(Model):
    """How far to advance bank time."""

    by: Annotated[Any, Reads(_duration, {"type": "string", "minLength": 1, "description": durations.EXPECTED})]


def _shown(call: ControlCall[Any]) -> Json:
    clock = call.bank.clock
    return {"now": date_time(clock.now()), "mode": clock.mode}


@operation("GET", "/clock", {200: ("Bank time.", ClockTime)})
def get_clock(call: ControlCall[Any]) -> Json:
    """Get bank time, and whether it is live or frozen."""
    return _shown(call)


@operation(
    "PUT",
    "/clock",
    {200: ("Bank time.", ClockTime)},
    body=SetClock,
    example={"now": "2026-03-02T09:00:00+01:00", "mode": "frozen"},
)
def put_clock(call: ControlCall[SetClock]) -> Work:
    """Set bank time to a later time, and its mode: live or frozen."""
    now = call.body.now
    if now is not None and now < (standing := call.bank.clock.now()):
        if date_time(now) != date_time(standing):
            text = f"Bank time is already {date_time(standing)}; only a reset sets it back."
            raise BankError("FORMAT_ERROR", text, "now")
        now = None  # the second that the clock shows is no change, although it is a fraction earlier
    return (yield from _moved(call, now, call.body.mode))


@operation("POST", "/clock/advance", {200: ("Bank time.", ClockTime)}, body=AdvanceClock, example={"by": "PT1H"})
def advance_clock(call: ControlCall[AdvanceClock]) -> Work:
    """Advance bank time; what falls due happens in order."""
    to = call.body.by.after(call.bank.clock.now())
    if to >= END:
        raise BankError("FORMAT_ERROR", f"Bank time is {YEARS}.", "by")
    return (yield from _moved(call, to, None))


def _moved(call: ControlCall[Any], now: datetime | None, mode: Mode | None) -> Work:
    yield from progression.move_clock(call.bank, now=now, mode=mode)
    call.publish("clock", call.bank.clock.mode)
    return _shown(call)
