"""Effects on the delivery of an answer: it is delayed, or its connection closes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Annotated, Any, Literal, Self

from pydantic import model_validator

from emulator.api.messages import Response
from emulator.api.operation import Reply
from emulator.bank.validation import Mismatch, Model, one_of, refuse
from emulator.scenario.effects import Effect, EffectKind
from emulator.scenario.values import duration, either

NO_ANSWER = 0  # the status that the request log shows for a request that was not answered
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


def _delayed(value: Any) -> Effect:
    """The answer is delayed by a duration, or by a random one between two."""
    low, high = (value.min, value.max) if isinstance(value, Between) else (value, value)

    def after(response: Response, dice: Random) -> None:
        least, most = low.total_seconds(), high.total_seconds()
        seconds = least if least == most else dice.uniform(least, most)
        response.delivery = replace(response.delivery, delay=round(seconds, 3))

    return Effect(after=after)


DELAY = EffectKind(
    name="delay",
    summary="The answer is delayed, in real time, by at most an hour; other requests are not.",
    form=either(Delay, Between),
    effect=_delayed,
    example="2s",
)


def _disconnected(when: Literal["before", "after"]) -> Effect:
    """The connection closes before the bank acts, or after."""

    def after(response: Response, _dice: Random) -> None:
        response.delivery = replace(response.delivery, disconnect=when)

    if when == "before":
        return Effect(lambda _: Reply(NO_ANSWER, None), after, instead=True)
    return Effect(after=after)


DISCONNECT = EffectKind(
    name="disconnect",
    summary="The connection closes without an answer: before the bank acts, or after it has committed.",
    form=Annotated[str, one_of("disconnect", ("before", "after"))],
    effect=_disconnected,
    example="after",
)
