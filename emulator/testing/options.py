"""What a bank for a test may be told: the types of `bank_factory` and its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

if TYPE_CHECKING:
    from emulator.testing.running import RunningBank


class BankOptions(TypedDict, total=False):
    """The flags of `serve` that mean something to a bank in a test, in Python's spelling, and two of its own.

    `now`: the moment at which the bank's clock stands (default: that of the start); `settings`: settings of the bank
    (CONTRACT 9.1), such as `{"progression": "manual"}`. `ephemeral` is True unless told otherwise; with False the
    documents are kept in `state`.
    """

    fixtures: str
    scenario: tuple[str, ...]
    profile: str
    links: str
    ids: str
    seed: int
    control_token: str
    public_url: str
    allow_host: tuple[str, ...]
    ephemeral: bool
    state: Path
    durability: str
    now: datetime
    settings: Mapping[str, Any]


class BankFactory(Protocol):
    """Makes banks that stop with the test."""

    def __call__(self, **options: Unpack[BankOptions]) -> RunningBank:
        """A fresh bank on a free port; raises TypeError for an option that BankOptions does not name."""
        ...
