"""`sca: reject|expire|fail|abandon` or `sca: {slow: 5s}`: what becomes of the customer's authentication.

It is that which the request opens.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from pydantic import Discriminator, Tag

from emulator.api.operation import Call
from emulator.bank.validation import Model, one_of
from emulator.scenario.effects import Effect, EffectKind
from emulator.scenario.values import duration


class Slow(Model):
    """Each page of the SCA comes this much later, in real time."""

    slow: Annotated[timedelta, duration(timedelta(hours=1))]


Form = Annotated[
    Annotated[str, one_of("outcome of an SCA", ("reject", "expire", "fail", "abandon")), Tag("(outcome)")]
    | Annotated[Slow, Tag("(slow)")],
    Discriminator(lambda value: "(slow)" if isinstance(value, dict | Slow) else "(outcome)"),
]


def effect(value: str | Slow) -> Effect:
    """The outcome, or the delay of its pages, is stored with the SCA."""

    def before(call: Call) -> None:
        if isinstance(value, Slow):
            call.script = replace(call.script, sca_delay=value.slow.total_seconds())
        else:
            call.script = replace(call.script, sca=value)

    return Effect(before)


EFFECT = EffectKind(
    name="sca",
    summary=(
        "The SCA that the request opens is declined, expires, ends in a server error, is left in the middle, or is"
        " slow: each of its pages comes later, in real time."
    ),
    form=Form,
    effect=effect,
    example="reject",
    inside=True,
)
