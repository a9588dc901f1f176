"""The signals that end a process in order: the bank, a proxy, and a command that has started others."""

from __future__ import annotations

import signal


def ending_signals() -> set[signal.Signals]:
    """SIGTERM, SIGINT, and SIGHUP, which the end of a terminal sends, unless it is ignored as under nohup."""
    ends = {signal.SIGTERM, signal.SIGINT}
    return ends if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else {*ends, signal.SIGHUP}
