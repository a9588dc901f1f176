"""`sca: reject|expire|fail|abandon` or `sca: {slow: 5s}`: the outcome or the delay of the SCA that is opened."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from emulator.api.operation import Access
from emulator.api.operations import table
from emulator.bank.validation import Model, one_of
from emulator.scenario.effects import Effect, EffectKind, inside
from emulator.scenario.values import duration, either

OPERATIONS = (
    *("createPayment", "createConsent", "createBankOfferedConsent"),
    *(one.id for one in table() if one.access is not Access.OPEN and one.id != "createPayment"),
)
"""Those whose requests may open an SCA: that of what they create, or that of a customer who is not known yet."""


class Slow(Model):
    """The delay of each page of the SCA, in real time."""

    slow: Annotated[timedelta, duration(timedelta(hours=1))]


def effect(value: str | Slow) -> Effect:
    """The outcome, or the delay, is stored with the SCA."""
    if isinstance(value, Slow):
        return inside(lambda script: replace(script, sca_delay=value.slow.total_seconds()))
    return inside(lambda script: replace(script, sca=value))


EFFECT = EffectKind(
    name="sca",
    summary=(
        "The SCA that the request opens is declined, expires, fails with a server error, is abandoned, or is slow:"
        " each of its pages is delayed, in real time."
    ),
    form=either(Annotated[str, one_of("outcome of an SCA", ("reject", "expire", "fail", "abandon"))], Slow),
    effect=effect,
    example="reject",
    operations=OPERATIONS,
    inside=True,
)
