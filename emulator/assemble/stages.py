"""Banks in this process for stories to play on, without a socket or a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from emulator.assemble import house_for, openapi_answer
from emulator.assemble.house import House
from emulator.assemble.site import Site
from emulator.authority import Authority
from emulator.bank.clock import real_now
from emulator.control import Control
from emulator.scenario.stage import InProcess, Stage
from emulator.settings import ServeSettings


def new_stages() -> Callable[[], Stage]:
    """A function that gives a new bank in its known state each time it is called."""
    authority = Authority(None, clock=real_now)
    return house_for(ServeSettings(ephemeral=True, state=Path()), authority).stage


def beside(house: House) -> Stage:
    """A bank of the same kind as those of `house`, with a CA of its own."""
    authority = Authority(None, clock=real_now)
    return on(house.apart(authority), authority)


def on(house: House, authority: Authority) -> Stage:
    """What a story needs of these banks: the TPP interface and the control interface, at their addresses."""
    control = Control(house, authority)
    site = Site(
        house,
        rooms={"_emulator": control},
        openapi=openapi_answer,
        tls=lambda: authority.server_context(()),
        theatre=control.theatre,
    )
    return InProcess(site.handle)
