"""`fee: "10.00"`: the payment has this fee, in the currency of the debtor account."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from emulator.scenario.effects import EffectKind, inside
from emulator.scenario.values import amount

EFFECT = EffectKind(
    name="fee",
    summary="The payment has this fee, in the currency of the debtor account.",
    form=Annotated[str, amount(r"(0|[1-9][0-9]{0,9})(\.[0-9]{1,5})?")],
    effect=lambda fee: inside(lambda script: replace(script, fee=fee)),
    example="10.00",
    operations=("createPayment",),
    inside=True,
)
