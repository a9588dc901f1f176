"""The log on stderr, as text or as one JSON object a line."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

from emulator.terminal import json_text, printable


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
    handler = logging.StreamHandler(sys.stderr)
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
