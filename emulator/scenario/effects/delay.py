"""`delay: 2s` or `delay: {min: 100ms, max: 3s}`: the answer comes late, in real time; others are not held up."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

from emulator.api.messages import Response
from emulator.scenario.effect import Effect, EffectKind
from emulator.scenario.part import Part

LONGEST = timedelta(hours=1)


def _late(least: float, most: float) -> Effect:
    """Between `least` and `most` seconds."""

    def after(response: Response, dice: Random) -> None:
        seconds = least if least == most else dice.uniform(least, most)
        response.delivery = replace(response.delivery, delay=round(seconds, 3))

    return Effect(after=after)


def read(part: Part) -> Effect | None:
    """A duration, or the least and the most."""
    if not isinstance(part.value, dict):
        fixed = part.duration(longest=LONGEST)
        return None if fixed is None else _late(fixed.total_seconds(), fixed.total_seconds())
    bounds = part.members(("min", "max"), required=("min", "max"))
    least = bounds["min"].duration(longest=LONGEST) if "min" in bounds else None
    most = bounds["max"].duration(longest=LONGEST) if "max" in bounds else None
    if least is None or most is None:
        return None
    if most < least:
        part.wrong("max is shorter than min.")
    return _late(least.total_seconds(), most.total_seconds())


_DURATION = {"$ref": "#/$defs/duration"}

EFFECT = EffectKind(
    name="delay",
    summary="The answer comes this much later, in real time, at most an hour; other requests are not held up.",
    schema={
        "oneOf": [
            _DURATION,
            {
                "type": "object",
                "properties": {"min": _DURATION, "max": _DURATION},
                "required": ["min", "max"],
                "additionalProperties": False,
            },
        ]
    },
    read=read,
    example="2s",
)
