"""`disconnect: before|after`: the connection closes without an answer; with `after`, once the bank has committed."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Annotated, Literal

from emulator.api.messages import Response
from emulator.api.operation import Call, Reply
from emulator.bank.validation import one_of
from emulator.scenario.effects import Effect, EffectKind

NO_ANSWER = 0  # the status that the request log shows for a request that was not answered


def _no_answer(_call: Call) -> Reply[None]:
    return Reply(NO_ANSWER, None)


def effect(when: Literal["before", "after"]) -> Effect:
    """The connection closes before the bank acts, or after."""

    def after(response: Response, _dice: Random) -> None:
        response.delivery = replace(response.delivery, disconnect=when)

    return Effect(_no_answer if when == "before" else None, after, instead=when == "before")


EFFECT = EffectKind(
    name="disconnect",
    summary="The connection closes without an answer: before the bank acts, or after it has committed.",
    form=Annotated[str, one_of("disconnect", ("before", "after"))],
    effect=effect,
    example="after",
)
