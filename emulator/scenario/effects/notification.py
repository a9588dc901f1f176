"""`notification: late|twice|reordered|dropped|forged`: a fault of the notifications that the request orders."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from emulator.api.operations import table
from emulator.bank.notifications import EFFECTS
from emulator.bank.validation import Model, one_of
from emulator.scenario.effects import Effect, EffectKind, inside
from emulator.scenario.values import duration, either

DELAY = timedelta(minutes=10)  # of `late` without a duration


class Late(Model):
    """The delay of each notification after its change."""

    late: Annotated[timedelta, duration()]


def effect(value: Any) -> Effect:
    """The effect is stored with the address to notify."""
    ordered = ("late", value.late.total_seconds()) if isinstance(value, Late) else (value, DELAY.total_seconds())
    return inside(lambda script: replace(script, notification=ordered))


EFFECT = EffectKind(
    name="notification",
    summary=(
        "The notifications that the request orders are late (10 minutes of bank time, or {late: 1h}), sent twice,"
        " reordered in pairs, or dropped; forged: one more is sent, with a false status."
    ),
    form=either(Annotated[str, one_of("effect on notifications", EFFECTS)], Late),
    effect=effect,
    example="twice",
    operations=tuple(row.id for row in table() if row.notifies),
    inside=True,
)
