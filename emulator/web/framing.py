"""Where requests begin and end in the bytes of a connection, as far as the limits on requests need it.

aiohttp's parser decides what a valid request is, but lacks three things. It does not report how much of an incomplete
head has arrived; it drops complete requests that arrive in one packet with a malformed one behind them; and when the
chunks of a body are malformed it does not wake up the reader of that body. `Framing` therefore reads the bytes before
the parser does, according to RFC 9112: 2.1 (a head ends with an empty line), 6 (Content-Length or chunks), 7.1
(chunks).

It is at least as strict as the parser. If it recognises a head that the parser refuses, the connection ends with that
refusal, and the following bytes do not matter.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from emulator.web.limits import MAX_HEAD_BYTES

END = b"\r\n\r\n"
HEAD_TOO_LARGE = "the head is too large"

_BLANK = b"\r\n"  # may precede a request line (RFC 9112, 2.2)
# the header that announces a body, or the end of a head that has none
_BODY = re.compile(
    rb"\n(?:content-length:[ \t]*(?P<length>[0-9]{1,20})[ \t]*\r|(?P<coding>transfer-encoding:)|\r\n)", re.IGNORECASE
)
_SIZE = re.compile(rb"([0-9A-Fa-f]+)(?:;.*)?", re.DOTALL)
_SIZE_DIGITS = 16


class BadFraming(Exception):
    """The framing of a chunked body is malformed; the text says how."""


class Framing:
    """The requests of one connection, as far as they have arrived.

    `heads`: complete heads of requests that the handler has not started yet; `partial_head`: bytes of an incomplete
    head; `count`: complete heads since the start of the connection; `announced`: bytes of a body that Content-Length
    announced and that have not arrived yet; `fault`: why nothing more may be read, or None.
    """

    __slots__ = ("_chunks", "announced", "count", "fault", "heads", "partial_head")

    def __init__(self) -> None:
        self.heads: deque[bytes] = deque()
        self.partial_head = bytearray()
        self.count = 0
        self.fault: str | None = None
        self.announced = 0
        self._chunks: _Chunks | None = None

    @property
    def in_body(self) -> bool:
        """Whether a body has started and not ended."""
        return self.announced > 0 or self._chunks is not None

    def cut(self, data: bytes) -> Sequence[bytes]:
        """Split `data` so that the parser never gets a complete request and a malformed one in one call.

        A part contains at most one end of a head; the head of a chunked body ends its part. Blank lines between
        requests and everything after a `fault` are left out.
        """
        if self.announced >= len(data):
            self.announced -= len(data)
            return (data,)
        if not self.partial_head and self._chunks is None and self.announced == 0:
            body = _BODY.search(data)
            if body is not None and data[0] not in _BLANK:  # one request, as nearly every time
                end, length = body.end(), 0
                if body.lastgroup == "length":
                    end = data.find(END, end - 1) + len(END)
                    length = int(body["length"])
                if end <= MAX_HEAD_BYTES and len(data) in (end, end + length) and data.endswith(END, 0, end):
                    self._add_head(data[:end], body)
                    self.announced = end + length - len(data)
                    return (data,)
        return self._parts(data)

    def _parts(self, data: bytes) -> list[bytes]:
        parts: list[bytes] = []
        start = at = 0
        size = len(data)
        has_head = False  # the part that begins at `start`
        while at < size:
            if self.announced:
                step = min(self.announced, size - at)
                self.announced -= step
                at += step
            elif self._chunks is not None:
                try:
                    at = self._chunks.scan(data, at)
                except BadFraming as error:
                    self.fault = str(error)
                    return parts
                if self._chunks.done:
                    self._chunks = None
            else:
                if has_head or (not self.partial_head and data[at] in _BLANK):
                    if at > start:
                        parts.append(data[start:at])
                    while at < size and not self.partial_head and data[at] in _BLANK:
                        at += 1
                    start, has_head = at, False
                    continue
                head = at
                at, has_head = self._head(data, at)
                if self.fault is not None:  # the bytes before that head may be the end of a body
                    return [*parts, data[start:head]] if head > start else parts
                if self._chunks is not None:
                    parts.append(data[start:at])
                    start, has_head = at, False
        if start < size:
            parts.append(data[start:])
        return parts

    def _head(self, data: bytes, at: int) -> tuple[int, bool]:
        """Read a head from `at` on; returns the index where it, or the data, ends, and whether it is complete."""
        partial_head = self.partial_head
        before = partial_head[-3:]  # may have cut the end of the head in two
        split = (before + data[at : at + 3]).find(END)
        end = data.find(END, at) + len(END) if split < 0 else at + split + len(END) - len(before)
        whole = end >= at + len(END) or split >= 0
        stop = end if whole else len(data)
        if len(partial_head) + stop - at > MAX_HEAD_BYTES:
            self.partial_head += data[at : at + MAX_HEAD_BYTES]
            self.fault = HEAD_TOO_LARGE
            return stop, False
        if not whole:
            partial_head += data[at:]
            return stop, False
        head = bytes(partial_head) + data[at:end]
        partial_head.clear()
        self._add_head(head, _BODY.search(head))
        return end, True

    def _add_head(self, head: bytes, body: re.Match[bytes] | None) -> None:
        self.heads.append(head)
        self.count += 1
        if body is None or body.lastgroup is None:
            return
        if body.lastgroup == "coding":
            self._chunks = _Chunks()
        else:
            self.announced = int(body["length"])


class _Chunks:
    """The framing of one chunked body (RFC 9112, 7.1)."""

    def __init__(self) -> None:
        self.done = False
        self._line = bytearray()  # an incomplete line of the framing
        self._data = 0  # bytes of a chunk that have not arrived
        self._behind_data = False
        self._trailers = False
        self._around = 0  # bytes of framing since the last byte of a body

    def scan(self, data: bytes, at: int) -> int:
        """Read `data` from `at` on; returns the index where the body or the data ends. Raises BadFraming."""
        while at < len(data) and not self.done:
            if self._data:
                step = min(self._data, len(data) - at)
                self._data -= step
                at += step
                self._around = 0
                continue
            end = data.find(b"\n", at) + 1
            stop = end or len(data)
            self._around += stop - at
            if self._around > MAX_HEAD_BYTES:
                raise BadFraming(f"its chunk sizes and trailers are longer than {MAX_HEAD_BYTES} bytes")
            self._line += data[at:stop]
            at = stop
            if end:
                line = bytes(self._line)
                self._line.clear()
                if not line.endswith(b"\r\n"):
                    raise BadFraming("expected CRLF at the end of a line between chunks")
                self._take_line(line[:-2])
        return at

    def _take_line(self, line: bytes) -> None:
        if self._trailers:
            self.done = not line
        elif self._behind_data:
            if line:
                raise BadFraming("expected CRLF after chunk data")
            self._behind_data = False
        else:
            size = _SIZE.fullmatch(line)
            if size is None:
                raise BadFraming("invalid character in chunk size")
            if len(size[1]) > _SIZE_DIGITS:
                raise BadFraming("chunk size overflow")
            self._data = int(size[1], 16)
            self._trailers = self._data == 0
            self._behind_data = not self._trailers
