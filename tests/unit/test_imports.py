"""What happens when modules of the program are imported."""

from __future__ import annotations

import subprocess
import sys

IN_ORDER = """
import pkgutil
import sys
from importlib import import_module

import emulator

for module in pkgutil.walk_packages(emulator.__path__, "emulator."):
    if not module.name.endswith(".__main__") and not module.name.startswith("emulator.agents."):
        import_module(module.name)
assert {"emulator.cli.main", "emulator.web.server"} <= sys.modules.keys()
"""


def test_every_module_can_be_imported_and_none_says_anything() -> None:
    """The library of `emulator.agents` takes longer than all others; tests/agents would fail if it said anything."""
    ran = subprocess.run([sys.executable, "-c", IN_ORDER], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
