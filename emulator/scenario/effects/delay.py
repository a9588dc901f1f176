"""`delay: 2s` or `delay: {min: 100ms, max: 3s}`: the answer is delayed, in real time; others are not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Annotated, Any, Self

from pydantic import model_validator

from emulator.api.messages import Response
from emulator.bank.validation import Mismatch, Model, refuse
from emulator.scenario.effects import Effect, EffectKind
from emulator.scenario.values import duration, either

Delay = Annotated[timedelta, duration(timedelta(hours=1))]


class Between(Model):
    """A random delay between two durations."""

    min: Delay
    max: Delay

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max < self.min:
            refuse(Mismatch(text="max is shorter than min.", value=self))
        return self


def effect(value: Any) -> Effect:
    """The answer is delayed by a duration, or by a random one between two."""
    low, high = (value.min, value.max) if isinstance(value, Between) else (value, value)

    def after(response: Response, dice: Random) -> None:
        least, most = low.total_seconds(), high.total_seconds()
        seconds = least if least == most else dice.uniform(least, most)
        response.delivery = replace(response.delivery, delay=round(seconds, 3))

    return Effect(after=after)


EFFECT = EffectKind(
    name="delay",
    summary="The answer is delayed, in real time, by at most an hour; other requests are not.",
    form=either(Delay, Between),
    effect=effect,
    example="2s",
)
