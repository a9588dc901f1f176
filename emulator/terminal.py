"""Text for a terminal. That of clients is made safe: a control character in it could move the cursor or set the title.

C0 and C1 control characters (U+0000 to U+001F, U+007F to U+009F), lone surrogates and the marks that reorder text are
replaced by escapes such as `\\x9b`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_REORDERING = "\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff{_REORDERING}]")
_UNSAFE_IN_TEXT = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff{_REORDERING}]")


def one_line(text: str) -> str:
    """`text` on one line, its control characters escaped."""
    return text if text.isprintable() else _UNSAFE.sub(_escape, text)


def printable(text: str) -> str:
    """`text` with its line ends and tabs, every other control character escaped."""
    return text if text.isprintable() else _UNSAFE_IN_TEXT.sub(_escape, text)


def json_text(value: Any, *, indent: int | None = None) -> str:
    """`value` as JSON, with control characters escaped in the way of JSON."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text if text.isprintable() else _UNSAFE_IN_TEXT.sub(lambda unsafe: f"\\u{ord(unsafe[0]):04x}", text)


def request_line(entry: Mapping[str, Any]) -> str:
    """An entry of the request log: number, time, status, request, errors, and the rules that acted or did not."""
    status = entry["status"] or "no answer"
    errors = "".join(f"  {one['code']} {one.get('path', '')}".rstrip() for one in entry.get("messages", ()))
    rules = f"  [{', '.join(entry['rules'])}]" if entry.get("rules") else ""
    notes = f"  ({' '.join(entry['notes'])})" if entry.get("notes") else ""
    return one_line(f"{entry['id']} {entry['at']} {status} {entry['method']} {entry['target']}{errors}{rules}{notes}")


def message_lines(entry: Mapping[str, Any]) -> list[str]:
    """The errors of an entry of the request log, one line each: code, member or header, and text."""
    places = ((one, f" {one['path']}" if one.get("path") else "") for one in entry.get("messages", ()))
    return [one_line(f"    {one['code']}{place}: {one.get('text', '')}") for one, place in places]


def _escape(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]


class _Wrapped:
    """A text stream; what its class does not define is that of `stream`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class LossyStream(_Wrapped):
    """A text stream that drops what cannot be written, as on a full disk."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class PrintableStream(_Wrapped):
    """A text stream that escapes the control characters of what is written to it."""

    def write(self, text: str) -> int:
        self._stream.write(printable(text))
        return len(text)
