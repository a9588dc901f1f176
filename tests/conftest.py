"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# The same examples every time, however slow the machine.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
