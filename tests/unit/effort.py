"""How much work something takes, counted in calls: that does not hang on the machine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls(work: Callable[[], object]) -> int:
    """How many calls of Python functions `work` comes to."""
    calls_made = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls_made
        calls_made += event == "call"

    before = sys.getprofile()
    collects = gc.isenabled()
    gc.disable()  # hypothesis is called at each collection, which may come at any moment
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return calls_made
