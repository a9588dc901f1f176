"""`fee: "10.00"`: the payment costs this, in the currency of the account that pays."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from emulator.api.operation import Call
from emulator.scenario.effects import Effect, EffectKind
from emulator.scenario.values import amount


def effect(fee: str) -> Effect:
    """The payment has a fee, as decimal text."""

    def before(call: Call) -> None:
        call.script = replace(call.script, fee=fee)

    return Effect(before)


EFFECT = EffectKind(
    name="fee",
    summary="The payment costs this, in the currency of the account that pays.",
    form=Annotated[str, amount(r"(0|[1-9][0-9]{0,9})(\.[0-9]{1,5})?")],
    effect=effect,
    example="10.00",
    operations=("createPayment",),
    inside=True,
)
