"""For tests in Python: a bank in this process, its TPPs, its customers and its clock.

Nothing is imported until it is asked for: pytest loads the plugin in every project where the emulator is installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.testing.options import BankFactory, BankOptions
    from emulator.testing.receiver import Received, Receiver
    from emulator.testing.running import BankClock, BankCustomer, RunningBank, TestTpp, TppFiles, banks

__all__ = [
    "BankClock",
    "BankCustomer",
    "BankFactory",
    "BankOptions",
    "Received",
    "Receiver",
    "RunningBank",
    "TestTpp",
    "TppFiles",
    "banks",
]

_PLACES = {
    "BankClock": "emulator.testing.running",
    "BankCustomer": "emulator.testing.running",
    "BankFactory": "emulator.testing.options",
    "BankOptions": "emulator.testing.options",
    "Received": "emulator.testing.receiver",
    "Receiver": "emulator.testing.receiver",
    "RunningBank": "emulator.testing.running",
    "TestTpp": "emulator.testing.running",
    "TppFiles": "emulator.testing.running",
    "banks": "emulator.testing.running",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
