"""The lines of a journal: one sealed record for each change.

`{"crc":"<8 hex>","size":"<8 hex>","change":<payload>}` and a line end: size of and CRC-32 over the payload, which is
`{"sequence", "clear": [kind], "delete": [[kind, number, id]], "put": [[kind, number, document]]}` (see `change`). Every
byte of a line is either fixed by this form or covered by the checksum.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from zlib import crc32

_HEAD = re.compile(rb'\{"crc":"([0-9a-f]{8})","size":"([0-9a-f]{8})","change":')
_HEAD_SIZE = len(b'{"crc":"00000000","size":"00000000","change":')
_END = b"}\n"


def sealed(payload: bytes) -> bytes:
    """The line for a change."""
    return b'{"crc":"%08x","size":"%08x","change":%b}\n' % (crc32(payload), len(payload), payload)


def _unsealed(data: bytes, offset: int) -> tuple[bytes, int] | None:
    """The payload of the record at `offset` and the offset after it; None when there is no whole and sound one."""
    head = _HEAD.match(data, offset)
    if head is None:
        return None
    start = offset + _HEAD_SIZE
    end = start + int(head[2], 16)
    payload = data[start:end]
    if data[end : end + 2] != _END or crc32(payload) != int(head[1], 16):
        return None
    return payload, end + 2


class Scan(NamedTuple):
    """What a journal file holds: sound records as (offset, payload), and where they end.

    `sound_after`: the offset of a sound record that stands after something unsound; None when there is none.
    """

    records: list[tuple[int, bytes]]
    end: int
    size: int
    sound_after: int | None

    @property
    def torn(self) -> bool:
        return self.end < self.size


def scan(data: bytes) -> Scan:
    """Read the records of a journal file up to the first that is not whole and sound."""
    records: list[tuple[int, bytes]] = []
    offset = 0
    while offset < len(data):
        found = _unsealed(data, offset)
        if found is None:
            return Scan(records, offset, len(data), _sound_record_after(data, offset))
        records.append((offset, found[0]))
        offset = found[1]
    return Scan(records, offset, len(data), None)


def _sound_record_after(data: bytes, offset: int) -> int | None:
    """The offset of a sound record behind the bad one at `offset`, None when there is none.

    Only where a line begins, or where the bad record says that it ends (its line end may be what is bad): inside a
    line a document may hold something that looks like a record.
    """
    head = _HEAD.match(data, offset)
    if head is not None:
        end = offset + _HEAD_SIZE + int(head[2], 16) + len(_END)
        if _unsealed(data, end) is not None:
            return end
    while (offset := data.find(b"\n", offset) + 1) > 0:
        if _unsealed(data, offset) is not None:
            return offset
    return None
