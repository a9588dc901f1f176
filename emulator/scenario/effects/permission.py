"""`permission: remove`: payments from the account are not allowed, though it can still be read (SPEC 5.3.10)."""

from __future__ import annotations

from dataclasses import replace

from emulator.api.operation import Call
from emulator.scenario.effect import Effect, EffectKind
from emulator.scenario.part import Part


def _remove(call: Call) -> None:
    """The bank refuses the payment with FORBIDDEN."""
    call.script = replace(call.script, permission_removed=True)


def read(part: Part) -> Effect | None:
    """The one word there is."""
    return Effect(_remove) if part.one_of(("remove",), "change of permission") else None


EFFECT = EffectKind(
    name="permission",
    summary="Payments from the account are refused although it can still be read (SPEC 5.3.10).",
    schema={"const": "remove"},
    read=read,
    example="remove",
    operations=("createPayment",),
    inside=True,
)
