"""`serve --workers N`: processes that serve one port, over a store that they share.

The first process binds the sockets and forks; the others accept from them. It serves nothing itself: it says READY when
all do, starts one again that has died, passes the signals on, and ends when all have ended.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

ENDING = 12.0  # seconds that the processes have to end
SOON = 1.0  # seconds between two starts of one that dies at once
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def fork(number: int, ready: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
    """Start `number` processes; returns in each of them, with what it calls once it answers, given its addresses.

    The process that calls it does not come back: it calls `ready` when all of them answer, and exits when they have.
    """
    reading, writing = os.pipe()
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    asked: list[int] = []
    before = {number: signal.getsignal(number) for number in (*_ENDS, signal.SIGCHLD)}
    for ending in _ENDS[:2] if ignored else _ENDS:
        signal.signal(ending, lambda number, _: asked.append(number))
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    running: set[int] = set()
    answering: set[int] = set()

    def start() -> bool:
        """Whether this is the new process."""
        process = os.fork()
        if process:
            running.add(process)
            return False
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
        for unused in (reading, woken, waking):
            os.close(unused)
        return True

    def report(urls: list[str]) -> None:
        os.write(writing, json.dumps([os.getpid(), urls]).encode() + b"\n")

    for _ in range(number):
        if start():
            return report
    told, left = False, b""
    while not asked:
        found, _, _ = select.select([reading, woken], [], [])
        if woken in found:
            os.read(woken, 4096)
        if reading in found:
            *lines, left = (left + os.read(reading, 65536)).split(b"\n")
            urls: list[str] = []
            for line in lines:
                process, urls = json.loads(line)
                answering.add(process)
            if not told and len(answering) >= number:
                told = True
                ready(urls)
        for process, code in _ended(running):
            if not told:  # it has said why
                _end(running)
                sys.exit(code)
            logger.error("process %d has ended (status %d); another one takes its place", process, code)
            time.sleep(SOON)
            if not asked and start():
                return report
    sys.exit(_end(running))


def _ended(running: set[int]) -> list[tuple[int, int]]:
    """The processes that have ended, with their exit status."""
    ended = []
    for process in list(running):
        gone, status = os.waitpid(process, os.WNOHANG)
        if gone:
            running.discard(process)
            ended.append((process, os.waitstatus_to_exitcode(status)))
    return ended


def _end(running: set[int]) -> int:
    """Let all processes end; the exit status, that of one that failed if any did."""
    for process in running:
        os.kill(process, signal.SIGTERM)
    status, until = 0, time.monotonic() + ENDING
    while running:
        if time.monotonic() > until:
            for process in running:
                os.kill(process, signal.SIGKILL)
        status = max([status, *(abs(code) for _, code in _ended(running))])
        time.sleep(0.02)
    return status
