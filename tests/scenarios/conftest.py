"""A house with its control room, in which stories play."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from emulator.assemble.house import House, HouseRules
from emulator.authority import Authority
from emulator.bank.clock import real_now
from emulator.bank.settings import Settings
from emulator.control import Control
from emulator.scenario import loader
from emulator.scenario.player import Played, play
from emulator.scenario.rules import RuleSet
from emulator.scenario.stage import InProcess

Play = Callable[[Mapping[str, Any]], Played]


@pytest.fixture(scope="session")
def stage_play() -> Play:
    """Plays a scenario, given as JSON, on a bank that is new each time."""
    authority = Authority(None, clock=real_now)
    house = House(
        HouseRules(
            directory=None,
            fixtures="known-state",
            settings=Settings(),
            seed=None,
            ids_form="uuid",
            durability="process",
            rules_for=RuleSet,
            trusted_ca=lambda: authority.certificate,
            sign_response=lambda response: None,
        )
    )
    control = Control(house, authority)

    def run(source: Mapping[str, Any]) -> Played:
        branch = house.make("stage")
        control.theatre(branch).refresh()
        return play(loader.from_value(dict(source)), InProcess(lambda request: control.enter(branch, request)))

    return run
