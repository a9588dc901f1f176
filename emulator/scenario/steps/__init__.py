"""The kinds of step that a story may have: one file each, found by this folder (CONTRACT 10, 13)."""

from __future__ import annotations

from functools import cache

from emulator.scenario.folder import parts
from emulator.scenario.step import StepKind


@cache
def step_kinds() -> dict[str, StepKind]:
    """Every kind of step by name."""
    return parts(__path__, __name__, "STEP", StepKind)
