"""`permission: remove`: payments from the account are refused, but it can be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from emulator.bank.validation import one_of
from emulator.scenario.effects import EffectKind, inside

EFFECT = EffectKind(
    name="permission",
    summary="Payments from the account are refused, but it can still be read.",
    form=Annotated[str, one_of("change of permission", ("remove",))],
    effect=lambda _: inside(lambda script: replace(script, permission_removed=True)),
    example="remove",
    operations=("createPayment",),
    inside=True,
)
