"""Named banks that nobody asks for leave memory, and are what they were when somebody does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from emulator.assemble import registry as module
from emulator.assemble.composition import registry_for
from emulator.assemble.registry import BankRegistry
from emulator.bank.clock import real_now
from emulator.bank.documents import Notification
from emulator.bank.kinds import NOTIFICATION, PERSON
from emulator.ca import CertificateAuthority
from emulator.settings import ServeSettings

HOUR = 3600.0


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(module, "monotonic", time)
    return time


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority(None, clock=real_now)


@pytest.fixture
def banks(tmp_path: Path, time: Time, authority: CertificateAuthority) -> Iterator[BankRegistry]:
    banks = registry_for(ServeSettings(state=tmp_path, seed=1, idle_hours=1), authority)
    yield banks
    banks.close()


def test_a_bank_that_nobody_asks_for_leaves_memory_and_comes_back(banks: BankRegistry, time: Time) -> None:
    bank = banks.make("a").bank
    bank.documents.put(PERSON, {"id": "21909220006", "name": "Siri Skisse"})
    before = bank.documents.dump()
    time.now += HOUR - 1
    banks.close_idle()
    assert banks.opened("a") is not None
    time.now += 2
    banks.close_idle()
    assert (banks.opened("a"), banks.documents("a"), banks.names()) == (None, None, ["default", "a"])
    again = banks.find("a")
    assert again is not None
    assert again.bank.documents.dump() == before
    again.bank.documents.delete(PERSON, "21909220006")


def test_a_bank_that_is_asked_for_stays(banks: BankRegistry, time: Time) -> None:
    banks.make("a")
    banks.make("b")
    time.now += HOUR / 2
    banks.find("a")
    time.now += HOUR / 2 + 1
    banks.close_idle()
    banks.close_idle()
    assert [name for name in ("a", "b") if banks.opened(name)] == ["a"]


def test_the_default_bank_and_a_busy_one_stay(banks: BankRegistry, time: Time) -> None:
    watched, moving, notifies = (banks.make(name).bank for name in ("watched", "moving", "notifies"))
    end = watched.watch(lambda event: None)
    moving.advances += 1
    notifies.change_settings({"notifications": True})
    notifies.documents.put(NOTIFICATION, cast(Notification, {"id": "n"}))
    for _ in range(5):
        time.now += HOUR + 1
        banks.close_idle()
    assert all(banks.opened(name) for name in ("default", "watched", "moving", "notifies"))
    end()
    for _ in range(4):
        time.now += HOUR + 1
        banks.close_idle()
    assert banks.opened("watched") is None


def test_a_bank_with_changes_that_are_not_written_stays(banks: BankRegistry, time: Time) -> None:
    bank = banks.make("a").bank
    banks.group.open = True
    bank.documents.put(PERSON, {"id": "21909220006", "name": "Sara Skisse"})
    banks.group.open = False
    time.now += HOUR + 1
    banks.close_idle()
    assert banks.opened("a") is not None


@pytest.mark.parametrize("hours", [0, 1])
def test_banks_in_memory_and_without_a_limit_stay(
    authority: CertificateAuthority, time: Time, tmp_path: Path, hours: int
) -> None:
    settings = ServeSettings(state=tmp_path, ephemeral=hours > 0, seed=1, idle_hours=hours)
    banks = registry_for(settings, authority)
    banks.make("a")
    time.now += 10 * HOUR
    banks.close_idle()
    assert banks.opened("a") is not None
    banks.close()
