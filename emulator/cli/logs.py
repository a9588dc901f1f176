"""The log on stderr, as text or as one JSON object a line: bounded, and never waited for."""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
import warnings
from contextlib import suppress
from typing import Any

from emulator.terminal import json_text, printable

ALIKE = 20  # times that a message is written in a period
PERIOD = 60.0  # seconds
WAITING = 1000  # lines not written yet
LONGEST = 16_000  # characters of a line, with its traceback
_KIND = 100  # characters by which messages are distinguished
_KINDS = 1000
_LAST_SECONDS = 0.5  # for what waits at the end


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json_text(entry)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def configure(form: str) -> None:
    """Write warnings of every library, and what this program has to say, to stderr as `form` ("text" or "json").

    Python's own warnings too, such as of a client's odd certificate: one line each, without the source that it met.
    """
    handler = LineWriter(sys.stderr.fileno()) if sys.stderr is not None else logging.NullHandler()
    text = _Text("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S%z")
    handler.setFormatter(_Json() if form == "json" else text)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("emulator").setLevel(logging.INFO)
    warnings.formatwarning = _without_place
    logging.captureWarnings(True)


def _without_place(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    del filename, lineno, line
    return f"{category.__name__}: {message}"


class _NotTooOften(logging.Filter):
    """Passes the same message `ALIKE` times in `PERIOD` seconds at most: clients decide how often one is logged.

    The first one of the next period says how many were left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.name, str(record.msg)[:_KIND]
        since, count = self._seen.get(kind, (record.created, 0))
        left_out = 0
        if not since <= record.created < since + PERIOD:
            since, count, left_out = record.created, 0, max(0, count - ALIKE)
        if len(self._seen) >= _KINDS and kind not in self._seen:
            self._seen.clear()
        self._seen[kind] = since, count + 1
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} more like this were left out)", ()
        return count < ALIKE


class LineWriter(logging.Handler):
    """Writes lines to the file `descriptor` from a thread, so that no request waits for the reader.

    Of what nobody reads `WAITING` lines are kept; the rest is counted, and the number written in their place.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.Queue[str | None] = queue.Queue(WAITING)
        self._dropped = 0
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()
        super().__init__()  # only now is it closed at exit: where no thread can start there is nothing to close
        self.addFilter(_NotTooOften())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:
            line = f"a message of {record.name} cannot be formatted"
        try:
            self._lines.put_nowait(line if len(line) <= LONGEST else f"{line[:LONGEST]}...")
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Write what waits, if anybody reads it within a moment."""
        with suppress(queue.Full):
            self._lines.put(None, timeout=_LAST_SECONDS)
            self._thread.join(_LAST_SECONDS)
        super().close()

    def _write_all(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are the main thread's to take
        line: str | None = ""
        while line is not None:
            line = self._lines.get()
            dropped, self._dropped = self._dropped, 0
            if dropped:
                note = "%d lines of the log were dropped, since nobody read them"
                record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, note, (dropped,), None)
                self._write(self.format(record))
            if line is not None:
                self._write(line)

    def _write(self, line: str) -> None:
        data = f"{line}\n".encode(errors="backslashreplace")
        with suppress(OSError):  # a log that cannot be written must not fail a request
            while data:
                data = data[os.write(self._descriptor, data) :]
