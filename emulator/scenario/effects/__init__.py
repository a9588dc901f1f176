"""The effects of a rule (`then`): their common form; the files of this folder have the effects.

Each is drawn by a fault of `explore/faults.py`. One that acts inside the bank (`inside.py`) also needs a
member of `Script` (`bank/payment/initiation.py`), which is read there, in `api/gates.py` (`sca`, `quota`) or in
`api/notification_headers.py` (`notification`). X-Request-ID, Signature and Date are added to an answer after its
effects (`api/service.py`, `web/wire.py`). One that changes how an answer is delivered (`delivery.py`) needs a member of
`api/messages.Delivery`, which `web/connection.py` carries out, `scenario/transport.py` in a story without sockets, and
`assemble/forwarding.py` passes on by name.

`python -m tests.docs.sections` writes its rows in scenario-language.md, ready-scenarios.md and find-the-fault.md.
Tests: `tests/api/test_control_effects.py`, which lists the names, and a scenario of its own in `scenarios/`, whose
promise is a row of `PROMISES` in `tests/api/test_control_ready_scenarios.py`. The steps to add one: add-effect.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from random import Random
from typing import Any

from emulator.api.messages import Response
from emulator.api.operation import Call, Reply
from emulator.bank.products import Product
from emulator.discovery import discover


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of one rule.

    `before` is called before the bank acts: it sets `call.script`, or replies instead of the bank. `after` is called
    after that: it changes the answer or its delivery, with seeded dice. `instead`: the bank does not act, so effects
    inside the bank cannot be combined with this one, except those in `leaves`. `unfit`: why it cannot act on payments
    of a product, as a sentence; None if it can. `warnings`: what its author may have meant otherwise.
    """

    before: Callable[[Call], Reply[Any] | None] | None = None
    after: Callable[[Response, Random], None] | None = None
    instead: bool = False
    leaves: Collection[str] = ()
    unfit: Callable[[Product], str | None] | None = None
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class EffectKind:
    """A kind of effect.

    `name`: the member of `then`; `summary` and `example`: for the documentation; `form`: the type of its value, for
    validation and JSON Schema; `effect`: the effect of a validated value; `operations`: the operationIds that it can
    act on, empty for all; `inside`: it acts inside the bank.
    """

    name: str
    summary: str
    form: Any
    effect: Callable[[Any], Effect]
    example: Any
    operations: Collection[str] = ()
    inside: bool = False


@cache
def effects() -> dict[str, EffectKind]:
    """Every effect by name."""
    every = discover(__path__, __name__, EffectKind, names=lambda effect: (effect.name,))
    return {effect.name: effect for effect in sorted(every, key=attrgetter("name"))}
