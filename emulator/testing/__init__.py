"""For tests in Python: a bank in this process, its TPPs, its customers and its clock (CONTRACT 12)."""

from emulator.testing.running import BankClock, RunningBank, TestTpp

__all__ = ["BankClock", "RunningBank", "TestTpp"]
