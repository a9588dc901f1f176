"""The effects of a rule (`then`), and what they have in common: one file each in this folder (CONTRACT 10)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from emulator.api.messages import Response
from emulator.api.operation import Call, Reply
from emulator.discovery import discover


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of one rule.

    `before` the bank acts it sets effects of the domain (`call.script`), or replies in the bank's place;
    `after` it changes the answer or its delivery, with dice that repeat with the bank's seed. `instead`: the bank
    does not act at all, so that an effect inside the bank has no use beside this one, but for those that it `leaves`.
    """

    before: Callable[[Call], Reply | None] | None = None
    after: Callable[[Response, Random], None] | None = None
    instead: bool = False
    leaves: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class EffectKind:
    """An effect as its file declares it.

    `name`: the word under `then`; `summary`: one sentence for the documents; `form`: the type of its value, from
    which it is checked and its JSON Schema made; `effect`: what a checked value does; `operations`: the operationIds
    on which it can do anything, empty for all; `example`: a value for the documents; `inside`: it acts inside the bank.
    """

    name: str
    summary: str
    form: Any
    effect: Callable[[Any], Effect]
    example: Any
    operations: Collection[str] = ()
    inside: bool = False


def _problem(effect: object) -> str | None:
    return (
        None if isinstance(effect, EffectKind) and effect.name else "has no EFFECT of the class EffectKind with a name"
    )


def _name(effect: EffectKind) -> str:
    return effect.name


def load(folder: Iterable[str], package: str) -> dict[str, EffectKind]:
    """The effects of the modules in `folder`, by name; raises MalformedModule."""
    return discover(folder, package, "EFFECT", name=_name, problem=_problem)


@cache
def effects() -> dict[str, EffectKind]:
    """Every effect by name."""
    return load(__path__, __name__)
