"""`python -m tests.bench.waiting serve ...`: a bank over a shared store that waits for each answer as long as DELAY.

It stands for a bank with a core of its own on a machine that has none to spare: it answers at most so many
requests a second, and leaves the processor to others meanwhile.
"""

from __future__ import annotations

import sys
from time import sleep

from emulator.api.messages import Answered, Request
from emulator.assemble.turns import Turns
from emulator.cli.main import run

DELAY = 0.002  # seconds


def slowed() -> None:
    """Let every answer of this process take longer."""
    whole = Turns.handle

    def handle(self: Turns, request: Request) -> Answered:
        sleep(DELAY)
        return whole(self, request)

    Turns.handle = handle  # type: ignore[method-assign]


if __name__ == "__main__":
    slowed()
    sys.exit(run(sys.argv[1:]))
