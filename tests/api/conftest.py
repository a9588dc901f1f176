"""Fixtures of the tests that drive the pipeline without a socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from emulator.api.branch import Branch
from emulator.assemble.house import House
from emulator.assemble.stages import on
from emulator.authority import Authority
from emulator.bank.clock import real_now
from emulator.cli import main
from emulator.control import Control
from emulator.scenario import stage as stages
from emulator.scenario.stage import Stage, StageFailed
from tests.api.control_desk import ControlDesk
from tests.api.desk import DeskClient, monday, seeded_house

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def authority() -> Authority:
    authority = Authority(None, clock=real_now)
    authority.demo()
    return authority


@pytest.fixture
def house(authority: Authority) -> House:
    return seeded_house(authority)


@pytest.fixture
def branch(house: House) -> Branch:
    return monday(house)


@pytest.fixture
def tpp(branch: Branch, authority: Authority) -> DeskClient:
    return DeskClient(branch, authority)


@pytest.fixture
def desk(house: House, branch: Branch, authority: Authority) -> ControlDesk:
    return ControlDesk(Control(house, authority), branch)


@pytest.fixture
def run(
    house: House,
    branch: Branch,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command against the bank of the test: exit status, stdout, stderr."""
    stage = on(house, authority)

    def running(base: str, **_: Any) -> Stage:
        if base != "http://127.0.0.1:8080":
            raise StageFailed(f"{base} does not answer.")
        return stage

    monkeypatch.setattr(stages, "Running", running)
    monkeypatch.delenv("BANK_EMULATOR_URL", raising=False)

    def command(*arguments: str) -> tuple[int, str, str]:
        status = main.run(list(arguments))
        told = capsys.readouterr()
        return status, told.out, told.err

    return command
