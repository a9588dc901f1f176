"""`quota: exhausted`: the reads of the account are exhausted, as unattended ones are after 4."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from emulator.api.operations import table
from emulator.bank.validation import one_of
from emulator.scenario.effects import EffectKind, inside

EFFECT = EffectKind(
    name="quota",
    summary="The reads are exhausted, with the customer present too: 429 ACCESS_EXCEEDED.",
    form=Annotated[str, one_of("state of a quota", ("exhausted",))],
    effect=lambda _: inside(lambda script: replace(script, quota_exhausted=True)),
    example="exhausted",
    operations=tuple(row.id for row in table() if row.quota),
    inside=True,
)
