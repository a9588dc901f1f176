"""Where the files are that come with the program: fixtures and scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def folder(name: Literal["fixtures", "scenarios"]) -> Path:
    """The folder of ready files: inside the package when installed, at the top of a checkout otherwise."""
    package = Path(__file__).parent
    installed = package / "data" / name
    return installed if installed.is_dir() else package.parent / name
