"""A TPP in a process of its own: a command that is started for each run, or a hook that is POSTed to."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from emulator.bank.threads import aside
from emulator.conformance import claims, program
from emulator.conformance.explore.judge import Claims, Ending
from emulator.conformance.explore.play import Run

LOOK = 0.05  # seconds between two looks while nothing happens
SILENCE = 0.5  # seconds without a request after which bank time moves to what is due
STARTING = 10.0  # the same for a command that was killed and has not sent anything since its new start
OVER = 2.0  # seconds without a request, while nothing is due, after which a run is over


@dataclass(frozen=True, slots=True)
class Process:
    """A TPP as a client of the search, by `command` or `hook`. `{run}` in `address`, that of its claims, stands for the
    name of the run (BANK_RUN)."""

    command: str | None = None
    hook: str | None = None
    address: str | None = None
    timeout: float = 30.0
    restarts: bool = False
    stopped: Event = field(default_factory=Event, compare=False)

    def play(self, run: Run) -> Ending:
        """Run the TPP, and act as the customer meanwhile, until it has ended or the run is over."""
        with tempfile.TemporaryDirectory(prefix="explore-") as folder:
            lasting = Path(folder, "lasting")
            lasting.mkdir()
            files = program.credentials(Path(folder), run.bank.certificate, run.bank.key)
            environment = {**run.environment, "BANK_FOLDER": str(lasting), **files}
            if self.command is not None:
                return self._command(self.command, run, environment)
            return self._hook(run, environment)

    def stop(self) -> None:
        """End all runs."""
        self.stopped.set()

    def _command(self, command: str, run: Run, environment: Mapping[str, str]) -> Ending:
        deadline = time.monotonic() + self.timeout
        with tempfile.TemporaryFile() as output:
            while True:
                with program.started(command, environment, output) as process:
                    over = self._drive(run, aside(process.wait), deadline)
                    status = process.poll()
                if run.killed:
                    run.bank.call(run.restarted)
                    continue
                printed = program.printed(output)
                crash = None
                if not over and run.endless is None:
                    crash = program.failure(status, self.timeout, program.reason(printed))
                return Ending(crash, printed)

    def _hook(self, run: Run, environment: Mapping[str, str]) -> Ending:
        deadline = time.monotonic() + self.timeout
        answer = aside(partial(program.post, self.hook or "", environment, self.timeout))
        if self._drive(run, answer, deadline) or run.endless is not None:
            return Ending()
        status, problem = answer.result()
        if 300 <= status < 500:
            raise program.RunFailed(str(problem))
        return Ending(problem)

    def _drive(self, run: Run, ended: Future[Any], deadline: float) -> bool:
        """Act as the customer, and move bank time while the TPP waits; returns whether the run is over before the TPP.

        It also returns when the TPP is to be killed, sends for ever, or has no time left. Raises RunFailed if stopped.
        """
        ended.add_done_callback(lambda _: run.news.set())
        silence, patience, requests, before = 0.0, STARTING, run.requests, time.monotonic()
        while not ended.done():
            run.news.wait(LOOK)
            run.news.clear()
            if self.stopped.is_set():
                raise program.RunFailed("the run was stopped")
            now = time.monotonic()
            silence += min(now - before, LOOK)  # what takes longer here is a slow machine, and no silence of the TPP
            before = now
            if run.killed or run.endless is not None or now > deadline:
                return False
            if requests != run.requests:
                silence, patience, requests = 0.0, SILENCE, run.requests
            silent = silence > patience
            if run.is_waited_for():
                for redirect in run.bank.call(partial(run.act, silent=silent)):
                    program.visit(redirect)
                    silence = 0.0
            elif silent and requests:
                patience = SILENCE
                if run.bank.call(run.wait):
                    silence = SILENCE / 2  # the TPP gets a moment to react
                elif silence > OVER and run.bank.call(partial(run.leave, requests=requests)):
                    return True
        for redirect in run.bank.call(run.act):
            program.visit(redirect)
        return False

    def claims(self, run: Run) -> Claims | None:
        """What the TPP claims at its address."""
        return None if self.address is None else partial(_asked, self.address.replace("{run}", run.name))


def _asked(address: str, kind: str, identity: str) -> Mapping[str, Any] | None:
    try:
        return claims.asked(address, kind, identity)
    except claims.ClaimUnreadable as problem:
        raise program.RunFailed(f"--claims: {problem}") from None
