"""`sca: reject|expire|fail|abandon`: what becomes of the customer's authentication that this request opens."""

from __future__ import annotations

from dataclasses import replace

from emulator.api.operation import Call
from emulator.scenario.effect import Effect, EffectKind
from emulator.scenario.part import Part

OUTCOMES = ("reject", "expire", "fail", "abandon")


def _outcome(outcome: str) -> Effect:
    """The outcome is kept with the SCA."""

    def before(call: Call) -> None:
        call.script = replace(call.script, sca=outcome)

    return Effect(before)


def read(part: Part) -> Effect | None:
    """One of the outcomes."""
    outcome = part.one_of(OUTCOMES, "outcome of an SCA")
    return None if outcome is None else _outcome(outcome)


EFFECT = EffectKind(
    name="sca",
    summary="The SCA that the request opens is declined, expires, ends in a server error, or is left in the middle.",
    schema={"enum": list(OUTCOMES)},
    read=read,
    example="reject",
    inside=True,
)
