"""The pytest plugin: fixtures `bank` and `bank_factory` (CONTRACT 12), found by the entry point `pytest11`.

pytest imports this file in every project where the emulator is installed, so it imports nothing else at first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from emulator.testing import BankFactory, RunningBank


@pytest.fixture
def bank_factory() -> Iterator[BankFactory]:
    """Makes banks: `bank_factory(fixtures="empty", seed=7, settings={"progression": "manual"}, now=datetime(...))`.

    The arguments are those of `emulator.testing.BankOptions`. Each bank is fresh, runs on a free port, and stops with
    the test.
    """
    from emulator.testing import banks

    with banks() as make:
        yield make


@pytest.fixture
def bank(bank_factory: BankFactory) -> RunningBank:
    """A fresh bank in its known state on a free port; its clock stands still until `bank.clock.advance(...)`."""
    return bank_factory()
