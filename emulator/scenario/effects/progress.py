"""`progress: [ACTC, {PDNG: 30s}, {RJCT: 5s}]`: the statuses of a payment, and the wait before each.

Each step must be one of the product's table; payments of other products keep their own way. A status may also be any
four letters that no table knows, such as ACCC: clients must handle new ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from emulator.bank.payment import flows
from emulator.bank.problems import Path
from emulator.bank.products import Product
from emulator.bank.scheme.transitions import FINAL, STATUSES
from emulator.bank.validation import Reads, Unfit, refuse
from emulator.scenario.effects import Effect, EffectKind, inside
from emulator.scenario.values import duration

MOST_STEPS = 50
_WAIT = duration()
_CODE = re.compile(r"[A-Z]{4}")
_CODE_SCHEMA = {"type": "string", "pattern": f"^{_CODE.pattern}$"}


def _step(value: Any) -> tuple[str, timedelta]:
    """A status with the wait before it."""
    wait = timedelta()
    path: Path = ()
    if isinstance(value, dict) and len(value) == 1:
        ((value, given),) = value.items()
        path = (value,)
        try:
            wait = _WAIT.read(given)
        except Unfit as unfit:
            raise Unfit(unfit.expected, unfit.text, path=path, value=given) from None
    elif not isinstance(value, str):
        raise Unfit("a status such as ACTC, or a status with its wait such as {PDNG: 30s}")
    if not _CODE.fullmatch(value):
        text = "A status has four capital letters; there is no"
        raise Unfit(text=text, path=path, known=STATUSES, value=value)
    return value, wait


_SCHEMA: Mapping[str, Any] = {
    "oneOf": [
        _CODE_SCHEMA,
        {
            "type": "object",
            "propertyNames": _CODE_SCHEMA,
            "additionalProperties": _WAIT.schema,
            "minProperties": 1,
            "maxProperties": 1,
        },
    ]
}


def _ends_once(steps: list[tuple[str, timedelta]]) -> list[tuple[str, timedelta]]:
    for index, (status, _) in enumerate(steps[:-1]):
        if status in FINAL:
            refuse(Unfit(text=f"{status} is final; nothing follows it.", path=(index + 1,)))
    return steps


def effect(steps: list[tuple[str, timedelta]]) -> Effect:
    """The payment gets each status after its wait in bank time."""
    progress = [(status, wait.total_seconds()) for status, wait in steps]

    def unfit(product: Product) -> str | None:
        step = flows.of_product(product).missing_step(progress)
        if step is None:
            return None
        address = f"{product.service}/{product.name}"
        return f"{address} has no step from {step[0]} to {step[1]}, so progress does not change its payments."

    return replace(inside(lambda script: replace(script, progress=progress)), unfit=unfit)


EFFECT = EffectKind(
    name="progress",
    summary=(
        "After its approval the payment gets these statuses, each after its wait in bank time; with `progression`"
        " polls or manual, each by reads or by hand, without a wait."
    ),
    form=Annotated[
        list[Annotated[Any, Reads(_step, _SCHEMA)]],
        Field(min_length=1, max_length=MOST_STEPS),
        AfterValidator(_ends_once),
    ],
    effect=effect,
    example=["ACTC", {"PDNG": "30s"}, {"RJCT": "5s"}],
    operations=("createPayment",),
    inside=True,
)
