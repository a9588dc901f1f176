"""The TPP under test, as a search sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from emulator.conformance.explore.play import Run


class SearchFailed(Exception):
    """The search cannot go on: the TPP cannot be run, or its claims cannot be read. The argument is a sentence."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How the TPP ended: `crash` says how it failed, None if it did not; `output`: the last that it printed."""

    crash: str | None = None
    output: str = ""


Claims = Callable[[str, str], Mapping[str, Any] | None]
"""What the TPP claims, of `payments` or `accounts` and an id; None: it knows no such thing."""


class TestedTpp(Protocol):
    """The TPP under test."""

    restarts: bool  # whether it can be killed and started again

    def play(self, run: Run) -> Ending:
        """Let the TPP do the tasks of the run until it has ended or the run is over."""
        ...

    def claims(self, run: Run) -> Claims | None:
        """What the TPP claims; None if it has no address for that."""
        ...
