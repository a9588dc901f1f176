"""For tests in Python: a bank in this process, its TPPs, its customers and its clock.

The modules are imported on use, as pytest loads the plugin in every project where the emulator is installed.
"""

from __future__ import annotations

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from emulator.testing import handles, running

    return getattr(handles if hasattr(handles, name) else running, name)
