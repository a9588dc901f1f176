"""The log on stderr, as text or one JSON object per line: bounded, and written without blocking the server."""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
import warnings
from contextlib import suppress
from time import sleep
from typing import Any

from emulator.terminal import json_text, printable

REPEATS = 20  # how often the same message is written per period
PERIOD = 60.0  # seconds
QUEUED_LINES = 1000
LINE_LENGTH = 16_000  # characters of a line, with its traceback
REQUESTS = "emulator.requests"  # the logger of the lines about requests, one each
_PREFIX = 100  # characters by which messages are distinguished
_MESSAGES = 1000  # distinct messages that are counted at the same time
_CLOSE_TIMEOUT = 0.5  # seconds
_GATHERING = 0.01  # seconds in which the writer leaves the processor to requests, and lines gather


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),  # about a request
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json_text(entry)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def configure(form: str) -> None:
    """Write the log of this program and the warnings of every library to stderr as `form` ("text" or "json").

    Warnings of the `warnings` module, such as that of an unusual certificate, are one line each, without source text.
    """
    handler = LineWriter(sys.stderr.fileno())
    text = _Text("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S%z")
    handler.setFormatter(_Json() if form == "json" else text)
    handler.addFilter(RateLimit())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("emulator").setLevel(logging.INFO)
    warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}"
    logging.captureWarnings(True)


class RateLimit(logging.Filter):
    """Passes the same message at most `REPEATS` times in `PERIOD` seconds, as clients can cause any number of them.

    The first one of the next period names how many were left out. The lines about requests all pass: each is asked for.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == REQUESTS:
            return True
        kind = record.name, str(record.msg)[:_PREFIX]
        since, count = self._seen.get(kind, (record.created, 0))
        left_out = 0
        if not since <= record.created < since + PERIOD:
            since, count, left_out = record.created, 0, max(0, count - REPEATS)
        if len(self._seen) >= _MESSAGES and kind not in self._seen:
            self._seen.clear()
        self._seen[kind] = since, count + 1
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} more of these were left out)", ()
        return count < REPEATS


class LineWriter(logging.Handler):
    """Writes lines to the file of `descriptor` from a thread, so that no request waits for whoever reads them.

    A line is written at once, and those of the next moment together: to wake the thread for each would cost more than
    to write it.

    If nobody reads, `QUEUED_LINES` lines are kept and the others only counted; the count is written in their place.
    """

    def __init__(self, descriptor: int) -> None:
        # its own: whoever closes the given one may get the number again, for a file that is not the log
        self._descriptor = os.dup(descriptor)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._dropped = 0
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()
        super().__init__()  # last, so that a handler without a thread is not closed at exit

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:
            line = f"a message of {record.name} cannot be formatted"
        if self._lines.qsize() >= QUEUED_LINES:
            self._dropped += 1
        else:
            self._lines.put(line if len(line) <= LINE_LENGTH else f"{line[:LINE_LENGTH]}...")

    def close(self) -> None:
        """Write the queued lines, unless nobody reads them within half a second."""
        self._lines.put(None)
        self._thread.join(_CLOSE_TIMEOUT)
        super().close()

    def _write_all(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # only the main thread handles signals
        ended = False
        while not ended:
            taken = [self._lines.get(), *(self._lines.get() for _ in range(self._lines.qsize()))]
            dropped, self._dropped = self._dropped, 0
            lines = [line for line in taken if line is not None]
            if dropped:
                note = "%d lines of the log were dropped because nobody read them"
                record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, note, (dropped,), None)
                lines.insert(0, self.format(record))
            self._write("".join(f"{line}\n" for line in lines))
            ended = len(lines) - bool(dropped) < len(taken)
            if not ended:
                sleep(_GATHERING)
        os.close(self._descriptor)

    def _write(self, lines: str) -> None:
        data = lines.encode(errors="backslashreplace")
        with suppress(OSError):  # a log that cannot be written must not fail a request
            while data:
                data = data[os.write(self._descriptor, data) :]
