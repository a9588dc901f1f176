"""For tests in Python: a bank in this process, its TPPs, its customers and its clock.

The modules are imported on use, as pytest loads the plugin in every project where the emulator is installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.testing.handles import BankClock, BankCustomer, BankOptions, Received, Receiver, TppFiles
    from emulator.testing.running import BankFactory, RunningBank, TestTpp, banks

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
    "handles": {"BankClock", "BankCustomer", "BankOptions", "Received", "Receiver", "TppFiles"},
    "running": {"BankFactory", "RunningBank", "TestTpp", "banks"},
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
