"""The control interface `/_emulator`: unsigned JSON for tests and tools.

The functions of `operations/` are the table for routing and the OpenAPI document.
"""

from emulator.control.interface import Control

__all__ = ["Control"]
