"""`fee: "10.00"`: the payment costs this, in the currency of the account that pays."""

from __future__ import annotations

import re
from dataclasses import replace

from emulator.api.operation import Call
from emulator.scenario.effect import Effect, EffectKind
from emulator.scenario.part import Part

_AMOUNT = re.compile(r"(0|[1-9]\d{0,9})(\.\d{1,5})?", re.ASCII)


def _costs(amount: str) -> Effect:
    """A fee as decimal text."""

    def before(call: Call) -> None:
        call.script = replace(call.script, fee=amount)

    return Effect(before)


def read(part: Part) -> Effect | None:
    """An amount in quotes."""
    if not isinstance(part.value, str) or not _AMOUNT.fullmatch(part.value):
        part.expected('an amount in quotes, such as "10.00"')
        return None
    return _costs(part.value)


EFFECT = EffectKind(
    name="fee",
    summary="The payment costs this, in the currency of the account that pays.",
    schema={"type": "string", "pattern": f"^{_AMOUNT.pattern}$"},
    read=read,
    example="10.00",
    operations=("createPayment",),
    inside=True,
)
