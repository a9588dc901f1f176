"""The control interface `/_emulator`: unsigned JSON for tests and tools (CONTRACT 9).

One file for each noun in `operations/`, whose rows make the table that routing and the OpenAPI document are read
from.
"""

from emulator.control.room import Control

__all__ = ["Control"]
