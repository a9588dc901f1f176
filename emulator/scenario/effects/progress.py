"""`progress: [ACTC, {PDNG: 30s}, {RJCT: 5s}]`: the statuses of a payment, and the wait before each.

Each step must be one of the product's table; payments of other products keep their own way. `{any: [...]}` has several
ways, of which a payment takes the first that its product has. A status may also be any four letters that no table
knows, such as ACCC: clients must handle new ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from emulator.api.operation import Call
from emulator.bank import products
from emulator.bank.payment import flows
from emulator.bank.problems import Path
from emulator.bank.products import Product
from emulator.bank.scheme.transitions import FINAL, STATUSES
from emulator.bank.validation import Mismatch, Model, Reads, refuse
from emulator.scenario.effects import Effect, EffectKind
from emulator.scenario.values import duration, either

OPERATIONS = ("createPayment",)
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
        except Mismatch as mismatch:
            raise Mismatch(mismatch.expected, mismatch.text, path=path, value=given) from None
    elif not isinstance(value, str):
        raise Mismatch("a status such as ACTC, or a status with its wait such as {PDNG: 30s}")
    if not _CODE.fullmatch(value):
        text = "A status has four capital letters; there is no"
        raise Mismatch(text=text, path=path, known=STATUSES, value=value)
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
            refuse(Mismatch(text=f"{status} is final; nothing follows it.", path=(index + 1,)))
    return steps


Steps = Annotated[
    list[Annotated[Any, Reads(_step, _SCHEMA)]],
    Field(min_length=1, max_length=MOST_STEPS),
    AfterValidator(_ends_once),
]


class Alternatives(Model):
    """Several ways; a payment takes the first that its product has."""

    any: Annotated[list[Steps], Field(min_length=1, max_length=10)]


def effect(value: list[tuple[str, timedelta]] | Alternatives) -> Effect:
    """The payment gets each status after its wait in bank time."""
    ways = [
        [(status, wait.total_seconds()) for status, wait in steps]
        for steps in (value.any if isinstance(value, Alternatives) else [value])
    ]

    def before(call: Call) -> None:
        if call.operation.id not in OPERATIONS:
            return
        flow = flows.of_product(products.find(call.params["payment-service"], call.params["payment-product"]))
        progress = next(way for way in ways if flow.missing_step(way) is None)
        call.script = replace(call.script, progress=progress)

    def unfit(product: Product) -> str | None:
        missing = [flows.of_product(product).missing_step(way) for way in ways]
        if missing[0] is None or None in missing:
            return None
        start, end = missing[0]
        address = f"{product.service}/{product.name}"
        return f"{address} has no step from {start} to {end}, so progress does not change its payments."

    return Effect(before, unfit=unfit)


EFFECT = EffectKind(
    name="progress",
    summary=(
        "After its approval the payment gets these statuses, each after its wait in bank time; with `progression`"
        " polls or manual, each by reads or by hand, without a wait. Of several ways ({any: [...]}) it takes the first"
        " that its product has."
    ),
    form=either(Steps, Alternatives),
    effect=effect,
    example=["ACTC", {"PDNG": "30s"}, {"RJCT": "5s"}],
    operations=OPERATIONS,
    inside=True,
)
