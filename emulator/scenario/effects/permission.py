"""`permission: remove`: payments from the account are refused, but it can be read (SPEC 5.3.10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from emulator.api.operation import Call
from emulator.bank.validation import one_of
from emulator.scenario.effects import Effect, EffectKind


def _remove(call: Call) -> None:
    """The bank refuses the payment with FORBIDDEN."""
    call.script = replace(call.script, permission_removed=True)


EFFECT = EffectKind(
    name="permission",
    summary="Payments from the account are refused, but it can still be read.",
    form=Annotated[str, one_of("change of permission", ("remove",))],
    effect=lambda _: Effect(_remove),
    example="remove",
    operations=("createPayment",),
    inside=True,
)
