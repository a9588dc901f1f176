"""`disconnect: before|after`: the connection closes without an answer; `after` the bank has acted and committed."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Literal

from emulator.api.messages import Response
from emulator.api.operation import Call, Reply
from emulator.scenario.effect import Effect, EffectKind
from emulator.scenario.part import Part

WORDS = ("before", "after")
NO_ANSWER = 0  # the status that the request log shows for a request that was not answered


def _no_answer(_call: Call) -> Reply:
    return Reply(NO_ANSWER)


def _closed(when: Literal["before", "after"]) -> Effect:
    def after(response: Response, _dice: Random) -> None:
        response.delivery = replace(response.delivery, disconnect=when)

    return Effect(_no_answer if when == "before" else None, after, instead=when == "before")


def read(part: Part) -> Effect | None:
    """Before or after."""
    word = part.one_of(WORDS, "disconnect")
    if word == "before":
        return _closed("before")
    return _closed("after") if word == "after" else None


EFFECT = EffectKind(
    name="disconnect",
    summary="The connection closes without an answer: before the bank acts, or after it has committed.",
    schema={"enum": list(WORDS)},
    read=read,
    example="after",
)
