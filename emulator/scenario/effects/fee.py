"""`fee: "10.00"`: the payment has this fee, in the currency of the debtor account."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from emulator.api.operation import Call
from emulator.scenario.effects import Effect, EffectKind
from emulator.scenario.values import amount


def effect(fee: str) -> Effect:
    """The payment has this fee."""

    def before(call: Call) -> None:
        call.script = replace(call.script, fee=fee)

    return Effect(before)


EFFECT = EffectKind(
    name="fee",
    summary="The payment has this fee, in the currency of the debtor account.",
    form=Annotated[str, amount(r"(0|[1-9][0-9]{0,9})(\.[0-9]{1,5})?")],
    effect=effect,
    example="10.00",
    operations=("createPayment",),
    inside=True,
)
