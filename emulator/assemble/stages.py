"""Banks in this process for stories to play on, without a socket or a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from emulator.assemble import house_for
from emulator.authority import Authority
from emulator.bank.clock import real_now
from emulator.control import Control
from emulator.scenario.stage import InProcess, Stage
from emulator.settings import ServeSettings

NAME = "story"


def new_stages() -> Callable[[], Stage]:
    """A function that gives a new bank in its known state each time it is called."""
    authority = Authority(None, clock=real_now)
    house = house_for(ServeSettings(ephemeral=True, state=Path()), authority)
    control = Control(house, authority)

    def stage() -> Stage:
        branch = house.make(NAME)
        control.theatre(branch).refresh()
        return InProcess(lambda request: control.enter(branch, request))

    return stage
