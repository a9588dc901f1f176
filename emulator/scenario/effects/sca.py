"""`sca: reject|expire|fail|abandon`: what becomes of the customer's authentication that this request opens."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from emulator.api.operation import Call
from emulator.bank.validation import one_of
from emulator.scenario.effect import Effect, EffectKind


def effect(outcome: str) -> Effect:
    """The outcome is stored with the SCA."""

    def before(call: Call) -> None:
        call.script = replace(call.script, sca=outcome)

    return Effect(before)


EFFECT = EffectKind(
    name="sca",
    summary="The SCA that the request opens is declined, expires, ends in a server error, or is left in the middle.",
    form=Annotated[str, one_of("outcome of an SCA", ("reject", "expire", "fail", "abandon"))],
    effect=effect,
    example="reject",
    inside=True,
)
