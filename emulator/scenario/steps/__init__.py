"""The kinds of step that a story may have: one file each, found by this folder (CONTRACT 10, 13)."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from emulator.scenario.folder import MalformedFolder
from emulator.scenario.step import Step


@cache
def step_kinds() -> dict[str, type[Step]]:
    """Every kind of step by its word."""
    kinds: dict[str, type[Step]] = {}
    for module in pkgutil.iter_modules(__path__):
        name = f"{__name__}.{module.name}"
        kind = getattr(importlib.import_module(name), "STEP", None)
        if not (isinstance(kind, type) and issubclass(kind, Step)):
            raise MalformedFolder(f"{name} has no STEP that is a Step")
        if kind.word in kinds:
            raise MalformedFolder(f"{name} is a second {kind.word}")
        kinds[kind.word] = kind
    return kinds
