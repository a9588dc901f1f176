"""`quota: exhausted`: the reads of the account are exhausted, as unattended ones are after 4 (SPEC 8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from emulator.api.operation import Call
from emulator.api.operations import table
from emulator.bank.validation import one_of
from emulator.scenario.effects import Effect, EffectKind

COUNTED = tuple(row.id for row in table() if row.quota)


def _exhaust(call: Call) -> None:
    """The bank answers 429 ACCESS_EXCEEDED."""
    call.script = replace(call.script, quota_exhausted=True)


EFFECT = EffectKind(
    name="quota",
    summary="The reads are exhausted, with the customer present too: 429 ACCESS_EXCEEDED.",
    form=Annotated[str, one_of("state of a quota", ("exhausted",))],
    effect=lambda _: Effect(_exhaust),
    example="exhausted",
    operations=COUNTED,
    inside=True,
)
