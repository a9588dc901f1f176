"""How much work something takes, counted in calls: that does not hang on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls(work: Callable[[], object]) -> int:
    """How many calls of Python functions `work` comes to."""
    made = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal made
        made += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return made
