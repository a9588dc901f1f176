"""The effects a rule may have under `then`: one file each, found by this folder (CONTRACT 10)."""

from __future__ import annotations

from functools import cache

from emulator.scenario.effect import EffectKind
from emulator.scenario.folder import parts


@cache
def effects() -> dict[str, EffectKind]:
    """Every effect by name."""
    return parts(__path__, __name__, "EFFECT", EffectKind)
