"""The service over a store that processes share: one bank's part in it, the banks, the sandbox CA, and the turns."""

from emulator.assemble.shared.authority import SharedAuthority
from emulator.assemble.shared.registry import SharedRegistry
from emulator.assemble.shared.turns import SharedTurns

__all__ = ["SharedAuthority", "SharedRegistry", "SharedTurns"]
