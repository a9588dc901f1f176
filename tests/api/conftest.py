"""Fixtures of the tests that drive the pipeline without a socket."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from emulator.api.branch import Branch
from emulator.assemble.answers import response_signer
from emulator.assemble.house import House, HouseRules
from emulator.authority import Authority
from emulator.bank import fixtures
from emulator.bank.clock import real_now
from emulator.bank.settings import Settings
from emulator.cli import main
from emulator.control import Control
from emulator.scenario import stage as stages
from emulator.scenario.stage import InProcess, StageFailed
from tests.api.desk import DeskClient

Run = Callable[..., tuple[int, str, str]]
NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)  # a Monday, 09:00 in Oslo


@pytest.fixture(scope="session")
def authority() -> Authority:
    authority = Authority(None, clock=real_now)
    authority.demo()
    return authority


@pytest.fixture
def house(authority: Authority) -> House:
    from emulator.scenario.rules import RuleSet

    return House(
        HouseRules(
            directory=None,
            fixtures="known-state",
            settings=Settings(),
            seed=1,
            ids_form="uuid",
            durability="process",
            rules_for=RuleSet,
            trusted_ca=lambda: authority.certificate,
            sign_response=response_signer(authority.answering),
        )
    )


@pytest.fixture
def branch(house: House) -> Branch:
    """A bank in its known state, its clock standing on a Monday morning."""
    fixtures.reset(house.default.bank, "known-state", now=NOW, mode="frozen")
    return house.default


@pytest.fixture
def tpp(branch: Branch, authority: Authority) -> DeskClient:
    return DeskClient(branch, authority)


@pytest.fixture
def run(
    house: House,
    branch: Branch,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command against the bank of the test: exit status, stdout, stderr."""
    control = Control(house, authority)

    def running(base: str, **_: Any) -> InProcess:
        if base != "http://127.0.0.1:8080":
            raise StageFailed(f"{base} does not answer.")
        return InProcess(lambda request: control.enter(branch, request))

    monkeypatch.setattr(stages, "Running", running)
    monkeypatch.delenv("BANK_EMULATOR_URL", raising=False)

    def command(*arguments: str) -> tuple[int, str, str]:
        status = main.run(list(arguments))
        told = capsys.readouterr()
        return status, told.out, told.err

    return command
