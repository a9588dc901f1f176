"""`progress: [ACTC, {PDNG: 30s}, {RJCT: 5s}]`: the statuses that a payment takes, and how long it waits for each."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from emulator.api.operation import Call
from emulator.bank.scheme.transitions import FINAL, STATUSES
from emulator.scenario.effect import Effect, EffectKind
from emulator.scenario.part import Part

MOST_STEPS = 50


def _way(steps: list[tuple[str, float]]) -> Effect:
    """Status after status, each with the seconds of bank time before it."""

    def before(call: Call) -> None:
        call.script = replace(call.script, progress=steps)

    return Effect(before)


def _step(part: Part) -> tuple[str, float] | None:
    wait = timedelta()
    named = part
    if isinstance(part.value, dict) and len(part.value) == 1:
        (name, member), *_ = part.mapping().items()
        waited = member.duration()
        if waited is None:
            return None
        named, wait = Part(name, member.path, part.report), waited
    elif not isinstance(part.value, str):
        part.expected("a status such as ACTC, or a status with its wait such as {PDNG: 30s}")
        return None
    status = named.one_of(STATUSES, "status")
    return None if status is None else (status, wait.total_seconds())


def read(part: Part) -> Effect | None:
    """A list of statuses; a final one only at its end."""
    steps: list[tuple[str, float]] = []
    for item in part.items(least=1):
        if steps and steps[-1][0] in FINAL:
            item.wrong(f"{steps[-1][0]} is final; nothing follows it.")
        step = _step(item)
        if step is not None:
            steps.append(step)
    if len(steps) > MOST_STEPS:
        part.wrong(f"At most {MOST_STEPS} statuses were expected.")
    return _way(steps)


EFFECT = EffectKind(
    name="progress",
    summary=(
        "The payment goes through these statuses once it is approved, each after its wait in bank time; with"
        " `progression` polls or manual a read or a hand brings each, whatever its wait."
    ),
    schema={
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_STEPS,
        "items": {
            "oneOf": [
                {"enum": list(STATUSES)},
                {
                    "type": "object",
                    "propertyNames": {"enum": list(STATUSES)},
                    "additionalProperties": {"$ref": "#/$defs/duration"},
                    "minProperties": 1,
                    "maxProperties": 1,
                },
            ]
        },
    },
    read=read,
    example=["ACTC", {"PDNG": "30s"}, {"RJCT": "5s"}],
    operations=("createPayment",),
    inside=True,
)
