"""`serve --workers N`: several processes that serve one port over a shared store.

The parent process binds the sockets and forks; its children accept connections. The second child starts when the first
one answers, so that a start that fails says why once. The parent prints READY when all children answer, replaces a
child that dies, forwards signals, and exits after its children. If it is killed, they stop: the port is free for the
next start.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import time
from collections.abc import Callable
from threading import Thread

from click.exceptions import Exit

from emulator.signals import ending_signals

logger = logging.getLogger(__name__)

EXIT_TIMEOUT = 12.0  # seconds from SIGTERM to SIGKILL
RESTART_DELAY = 1.0  # seconds, so that a child that dies at once is not started in a busy loop


def fork(number: int, ready: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
    """Start `number` children. Returns only in these, a function that a child calls with its addresses once it answers.

    The parent calls `ready` when all children answer, and exits after them.
    """
    report_in, report_out = os.pipe()
    wakeup_in, wakeup_out = os.pipe()
    alive_in, alive_out = os.pipe()  # only the parent can write to it: it ends with the parent
    os.set_blocking(wakeup_out, False)
    stops: list[int] = []
    ends = ending_signals()
    handlers = {number: signal.getsignal(number) for number in (*ends, signal.SIGCHLD)}
    for stop in ends:
        signal.signal(stop, lambda number, _: stops.append(number))
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wakeup_out, warn_on_full_buffer=False)
    running: set[int] = set()
    answering: set[int] = set()

    def start() -> bool:
        """Fork a child; True in the child."""
        process = os.fork()
        if process:
            running.add(process)
            return False
        signal.set_wakeup_fd(-1)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for unused in (report_in, wakeup_in, wakeup_out, alive_out):
            os.close(unused)
        Thread(target=_stop_with_parent, args=(alive_in,), name="parent", daemon=True).start()
        return True

    def report(urls: list[str]) -> None:
        os.write(report_out, json.dumps([os.getpid(), urls]).encode() + b"\n")

    if start():
        return report
    all_answer, partial_line = False, b""
    while not stops:
        readable, _, _ = select.select([report_in, wakeup_in], [], [])
        if wakeup_in in readable:
            os.read(wakeup_in, 4096)
        if report_in in readable:
            *lines, partial_line = (partial_line + os.read(report_in, 65536)).split(b"\n")
            urls: list[str] = []
            for line in lines:
                process, urls = json.loads(line)
                answering.add(process)
            while answering and not all_answer and len(running) < number:
                if start():
                    return report
            if not all_answer and len(answering) >= number:
                all_answer = True
                ready(urls)
        for process, code in _exited(running):
            if not all_answer:  # a start that fails; the child has printed why
                _stop(running)
                raise Exit(abs(code))
            logger.error("process %d has exited (status %d); a new one replaces it", process, code)
            time.sleep(RESTART_DELAY)
            if not stops and start():
                return report
    raise Exit(_stop(running))


def _stop_with_parent(alive_in: int) -> None:
    """Stop this process when its parent has exited without stopping it."""
    os.read(alive_in, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _exited(running: set[int]) -> list[tuple[int, int]]:
    """Remove the processes that have exited from `running`; returns them with their exit status."""
    exited = []
    for process in list(running):
        reaped, status = os.waitpid(process, os.WNOHANG)
        if reaped:
            running.discard(process)
            exited.append((process, os.waitstatus_to_exitcode(status)))
    return exited


def _stop(running: set[int]) -> int:
    """Stop all processes; returns the highest exit status (of a killed process: the number of its signal)."""
    for process in running:
        os.kill(process, signal.SIGTERM)
    status, deadline = 0, time.monotonic() + EXIT_TIMEOUT
    while running:
        if time.monotonic() > deadline:
            for process in running:
                os.kill(process, signal.SIGKILL)
        status = max([status, *(abs(code) for _, code in _exited(running))])
        time.sleep(0.02)
    return status
