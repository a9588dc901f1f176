"""The pytest plugin: fixtures `bank` and `bank_factory` (CONTRACT 12), found by the entry point `pytest11`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from emulator.testing.running import RunningBank

BankFactory = Callable[..., "RunningBank"]


@pytest.fixture
def bank_factory() -> Iterator[BankFactory]:
    """Makes banks: `bank_factory(fixtures="empty", seed=7, profile="lenient", now=datetime(...))`.

    Arguments are those of `serve` in Python's spelling, and `now`, the moment at which the bank's clock stands.
    Each bank is fresh, runs on a free port, and stops with the test.
    """
    # Imported here: a test run that asks for no bank does not pay for one.
    from emulator.testing.running import RunningBank, settings_for

    running: list[RunningBank] = []

    def make(**changes: Any) -> RunningBank:
        now = changes.pop("now", None)
        bank = RunningBank(settings_for(**changes), now=now)
        running.append(bank)
        return bank

    yield make
    for bank in running:
        bank.stop()


@pytest.fixture
def bank(bank_factory: BankFactory) -> RunningBank:
    """A fresh bank in its known state on a free port; its clock stands still until `bank.clock.advance(...)`."""
    return bank_factory()
