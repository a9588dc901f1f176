"""`quota: exhausted`: the reads of the account are used up, as the unattended ones are after 4 (SPEC 8)."""

from __future__ import annotations

from dataclasses import replace

from emulator.api.operation import Call
from emulator.api.operations import table
from emulator.scenario.effect import Effect, EffectKind
from emulator.scenario.part import Part

COUNTED = tuple(row.id for row in table() if row.quota)


def _exhaust(call: Call) -> None:
    """The bank answers 429 ACCESS_EXCEEDED."""
    call.script = replace(call.script, quota_exhausted=True)


def read(part: Part) -> Effect | None:
    """The one word there is."""
    return Effect(_exhaust) if part.one_of(("exhausted",), "state of a quota") else None


EFFECT = EffectKind(
    name="quota",
    summary="The reads are used up, with the customer present too: 429 ACCESS_EXCEEDED.",
    schema={"const": "exhausted"},
    read=read,
    example="exhausted",
    operations=COUNTED,
    inside=True,
)
