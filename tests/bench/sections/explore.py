"""How many schedules a second `conformance explore` plays, two at a time, with a TPP that needs 20 ms a request."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from tests.bench.harness import Row

SCHEDULES = 60
JOBS = 2
GOAL = 5.0
MOST_WORK = 200.0  # ms of the processor for a schedule, so that two cores play more than GOAL
PAUSE = 0.02  # seconds of work of the TPP for each request


def measure(rounds: int, requests: int) -> Iterator[Row]:
    del rounds, requests
    from emulator.assemble.local_banks import LocalBanks
    from emulator.conformance.program import Program
    from emulator.explore.judge import Process
    from emulator.explore.search import Search

    serve = [sys.executable, "-m", "tests.explore.hooked", str(PAUSE)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as tpp:
        try:
            assert tpp.stdout is not None
            base = tpp.stdout.readline().strip()
            client = Process(Program(hook=f"{base}/run", claims=f"{base}/claims/{{run}}"))
            sandbox = LocalBanks.in_memory()
            search = Search(sandbox, client, ("pay",), base=1, jobs=JOBS)
            search.trial()
            began, worked = time.perf_counter(), time.process_time()
            done = search.run(SCHEDULES)
            rate = done.runs / (time.perf_counter() - began)
            cost = (time.process_time() - worked) / done.runs * 1000
            sandbox.close()
            assert not done.found, done.found
        finally:
            tpp.kill()
    yield Row("explore", f"schedules with a TPP of {PAUSE * 1000:g} ms a request", rate, "1/s", at_least=GOAL)
    yield Row("explore", "search and bank for one schedule, processor time", cost, "ms", at_most=MOST_WORK)
