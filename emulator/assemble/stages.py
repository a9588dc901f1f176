"""Banks in this process for stories to play on, without a socket or a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from emulator.assemble import house_for
from emulator.authority import Authority
from emulator.bank.clock import real_now
from emulator.control import Control
from emulator.scenario.stage import Stage
from emulator.settings import ServeSettings


def new_stages() -> Callable[[], Stage]:
    """A function that gives a new bank in its known state each time it is called."""
    authority = Authority(None, clock=real_now)
    return Control(house_for(ServeSettings(ephemeral=True, state=Path()), authority), authority).stage
