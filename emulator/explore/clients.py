"""A TPP in a process of its own: a command that is started for each run, or a hook that is POSTed to."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from emulator.conformance.program import ClaimUnreadable, Ending, Program, RunFailed, claim_of, credentials, visit
from emulator.explore.judge import Claims
from emulator.explore.play import Run

LOOK = 0.05  # seconds between two looks while nothing happens
SILENCE = 0.5  # seconds without a request after which bank time moves to what is due
STARTING = 10.0  # the same for a command that was killed and has not sent anything since its new start
OVER = 2.0  # seconds without a request, while nothing is due, after which a run is over


@dataclass(frozen=True, slots=True)
class Process:
    """A program as the TPP of a search; `{run}` in the address of its claims stands for the name of the run (BANK_RUN).

    `restarts`: its command can be killed and started again.
    """

    program: Program
    restarts: bool = False

    def play(self, run: Run) -> Ending:
        """Run the TPP, and act as the customer meanwhile, until it has ended or the run is over."""
        with tempfile.TemporaryDirectory(prefix="explore-") as folder:
            lasting = Path(folder, "lasting")
            lasting.mkdir()
            files = credentials(Path(folder), run.tpp.certificate_pem, run.tpp.key_pem.decode())
            environment = {**run.environment, "BANK_FOLDER": str(lasting), **files}
            accompany = partial(self._drive, run, time.monotonic() + self.program.timeout)
            ending = self.program.run(environment, accompany)
            while run.killed and self.restarts:
                run.call(run.restarted)
                ending = self.program.run(environment, accompany)
        if ending.refused:
            raise RunFailed(str(ending.problem))
        return ending

    def stop(self) -> None:
        """End all runs."""
        self.program.stopped.set()

    def _drive(self, run: Run, deadline: float, ended: Future[Any]) -> bool:
        """Act as the customer, and move bank time while the TPP waits, until it has ended or has no time left.

        Returns True if how it ends does not count: the run is over before, or the TPP is to be killed, or sends for
        ever. Raises RunFailed if stopped.
        """
        ended.add_done_callback(lambda _: run.news.set())
        silence, patience, requests, before = 0.0, STARTING, run.requests, time.monotonic()
        while not ended.done():
            run.news.wait(LOOK)
            run.news.clear()
            if self.program.stopped.is_set():
                raise RunFailed("the run was stopped")
            now = time.monotonic()
            silence += min(now - before, LOOK)  # what takes longer here is a slow machine, and no silence of the TPP
            before = now
            if run.endless is not None or (run.killed and self.restarts):
                return True
            if now > deadline:
                return False
            if requests != run.requests:
                silence, patience, requests = 0.0, SILENCE, run.requests
            silent = silence > patience
            if run.is_waited_for():
                for redirect in run.call(partial(run.act, silent=silent)):
                    visit(redirect)
                    silence = 0.0
            elif silent and requests:
                patience = SILENCE
                if run.call(run.wait):
                    silence = SILENCE / 2  # the TPP gets a moment to react
                elif silence > OVER and run.call(partial(run.leave, requests=requests)):
                    return True
        for redirect in run.call(run.act):
            visit(redirect)
        return run.endless is not None

    def claims(self, run: Run) -> Claims | None:
        """What the TPP claims at its address."""
        address = self.program.claims
        return None if address is None else partial(_asked, address.replace("{run}", run.name))


def _asked(address: str, kind: str, identity: str) -> Mapping[str, Any] | None:
    try:
        return claim_of(address, kind, identity)
    except ClaimUnreadable as problem:
        raise RunFailed(f"--claims: {problem}") from None
