"""For tests in Python: a bank in this process, its TPPs, its customers and its clock.

The modules are imported on use, as pytest loads the plugin in every project where the emulator is installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.testing.clock import BankClock
    from emulator.testing.customer import BankCustomer
    from emulator.testing.options import BankOptions
    from emulator.testing.receiver import Received, Receiver
    from emulator.testing.running import BankFactory, RunningBank, TestTpp, banks
    from emulator.testing.tpp import TppFiles

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

_MODULES = {
    "BankClock": "emulator.testing.clock",
    "BankCustomer": "emulator.testing.customer",
    "BankFactory": "emulator.testing.running",
    "BankOptions": "emulator.testing.options",
    "Received": "emulator.testing.receiver",
    "Receiver": "emulator.testing.receiver",
    "RunningBank": "emulator.testing.running",
    "TestTpp": "emulator.testing.running",
    "TppFiles": "emulator.testing.tpp",
    "banks": "emulator.testing.running",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
