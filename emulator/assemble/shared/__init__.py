"""Serves banks from a store that processes share: the banks, their turns, the sandbox CA, and copies of a store."""

from emulator.assemble.shared.authority import SharedAuthority
from emulator.assemble.shared.registry import SharedRegistry
from emulator.assemble.shared.turns import SharedTurns

__all__ = ["SharedAuthority", "SharedRegistry", "SharedTurns"]
