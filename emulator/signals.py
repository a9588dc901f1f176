"""The signals that end a process in order: the bank, a proxy, and a command that has started others."""

from __future__ import annotations

import signal
from threading import current_thread, main_thread


def ending_signals() -> set[signal.Signals]:
    """SIGTERM, SIGINT, and SIGHUP, which the end of a terminal sends, unless it is ignored as under nohup."""
    ends = {signal.SIGTERM, signal.SIGINT}
    return ends if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else {*ends, signal.SIGHUP}


def end_as_interrupted() -> None:
    """Have every ending signal raise KeyboardInterrupt, as Ctrl+C does; outside of the main thread, do nothing."""
    if current_thread() is main_thread():
        for number in ending_signals():
            signal.signal(number, signal.default_int_handler)
