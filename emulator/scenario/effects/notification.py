"""`notification: late|twice|reordered|dropped|forged`: what becomes of the notifications that the request asks for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from emulator.api.operation import Call
from emulator.api.operations import table
from emulator.bank.notifications import EFFECTS
from emulator.bank.validation import Model, one_of
from emulator.scenario.effects import Effect, EffectKind
from emulator.scenario.values import duration

DELAY = timedelta(minutes=10)  # of `late` without a length of time


class Late(Model):
    """How long after its change each notification is sent."""

    late: Annotated[timedelta, duration()]


Form = Annotated[
    Annotated[Annotated[str, one_of("effect on notifications", EFFECTS)], Tag("(word)")]
    | Annotated[Late, Tag("(late)")],
    Discriminator(lambda value: "(late)" if isinstance(value, dict | Late) else "(word)"),
]


def effect(value: Any) -> Effect:
    """The effect is stored with the address that is to be notified."""
    script = ("late", value.late.total_seconds()) if isinstance(value, Late) else (value, DELAY.total_seconds())

    def before(call: Call) -> None:
        call.script = replace(call.script, notification=script)

    return Effect(before)


EFFECT = EffectKind(
    name="notification",
    summary=(
        "The notifications that the request asks for come late (10 minutes of bank time, or {late: 1h}), twice, every"
        " second one before its predecessor, or not at all; forged: one more comes that says what is not true."
    ),
    form=Form,
    effect=effect,
    example="twice",
    operations=tuple(row.id for row in table() if row.notifies),
    inside=True,
)
