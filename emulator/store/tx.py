"""The changes of a transaction: undoing them, writing them for the log, and applying them again.

The steps of a transaction are in the order of the changes, each with what was there before: one document, a whole
table, or the whole content. `undo` goes through them from the last to the first; `payload` compares what was before the
first with what is there now; `repeat` brings other tables to the same content, under the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import orjson

from emulator.store.table import DocumentTable, Step, TableContent, encoded


class ReplacedTable:
    """A step that replaces the whole content of a table."""

    __slots__ = ("_before", "table")

    def __init__(self, table: DocumentTable) -> None:
        self.table = table
        self._before = table.content

    def undo(self) -> None:
        """Restore the content that the table had before."""
        self.table.content = self._before

    @property
    def shrank(self) -> bool:
        """Whether more documents were deleted than exist, so that writing all existing ones is shorter."""
        return len(self._before.numbers) > 2 * len(self.table.numbers)

    def differences(self) -> Iterator[Step]:
        """The documents that differ from the present content."""
        table, before = self.table, self._before
        for identity, number in before.numbers.items():
            raw = before.rows[number]
            number_now = table.numbers.get(identity)
            raw_now = None if number_now is None else table.rows[number_now]
            if number_now != number or raw_now != raw:
                yield table, identity, number, raw, number_now, raw_now
        for identity, number in table.numbers.items():
            if identity not in before.numbers:
                yield table, identity, None, None, number, table.rows[number]


class StoredContent:
    """A step that replaces the whole content by one that the log has stored as `file` (None: in memory), `size` bytes.

    `sequence`: the change that refers to it. Earlier steps need not be written.
    """

    __slots__ = ("_remove", "file", "sequence", "size")

    def __init__(
        self, file: str | None = None, *, size: int = 0, remove: Callable[[], None] = lambda: None, sequence: int = 0
    ) -> None:
        self.file = file
        self.size = size
        self.sequence = sequence
        self._remove = remove

    def undo(self) -> None:
        """Remove the file, to which no change refers."""
        self._remove()


Undo = Step | ReplacedTable | StoredContent


def undo(steps: list[Undo], *, down_to: int = 0) -> None:
    """Undo and remove the steps after the first `down_to`, the last one first."""
    while len(steps) > down_to:
        step = steps.pop()
        if isinstance(step, (ReplacedTable, StoredContent)):
            step.undo()
        else:
            table, identity, number, raw, _, _ = step
            if number is None or raw is None:
                table.unset(identity)
            else:
                table.set(identity, number, orjson.loads(raw), raw)


_document = itemgetter(0, 1)
_raw_before: Callable[[Any], bytes | None] = itemgetter(3)


def _once(every: list[Any]) -> Iterable[Step]:
    """One step for each changed document: from before its first step to after its last."""
    if len(set(map(_document, every))) == len(every):
        return every
    whole: dict[Any, Step] = {}
    for step in every:
        first = whole.setdefault(_document(step), step)
        if first is not step:
            whole[_document(step)] = (*first[:4], *step[4:])
    return whole.values()


def _other_changes(cleared: Iterable[DocumentTable], steps: list[Undo]) -> Iterator[Step]:
    """The changes of the steps in other tables."""
    for step in steps:
        if isinstance(step, ReplacedTable):
            if step.table not in cleared:
                yield from step.differences()
        elif not isinstance(step, StoredContent) and step[0] not in cleared:
            yield step


def payload(sequence: int, steps: list[Undo]) -> bytes | None:
    """The differences between the content before the first step and now, as JSON; None if there are none.

    `{"sequence", "clear": [kind], "delete": [[kind, number, id]], "put": [[kind, number, document]]}`, with "clear" and
    "delete" only if something is deleted.
    For a cleared kind, "put" has every present document. If the whole content was replaced by a stored one:
    `{"sequence", "content": file, "then": the differences since}`.
    """
    head = b'{"sequence":%d,' % sequence
    if StoredContent not in map(type, steps):
        return _differences(head, steps)
    for place, step in enumerate(steps):
        if isinstance(step, StoredContent):
            step.sequence = sequence
            content, since = step, steps[place + 1 :]
    then = _differences(b"{", since) or b'{"put":[]}'
    return b'%b"content":%b,"then":%b}' % (head, orjson.dumps(content.file), then)


_NAMED = re.compile(rb'\{"sequence":\d+,(?:"synced":\d+,)?"content":"([^"]*)"')


def content_named(change: bytes) -> str | None:
    """The content that a `payload` names, or None; without decoding the change."""
    named = _NAMED.match(change)
    return None if named is None else named[1].decode()


def _differences(head: bytes, steps: list[Undo]) -> bytes | None:
    removed: list[tuple[str, int, str]] = []
    puts: list[bytes] = []
    cleared: dict[DocumentTable, None] | None = None
    touched: Iterable[Any] = steps
    if ReplacedTable in map(type, steps):
        cleared = dict.fromkeys(step.table for step in steps if isinstance(step, ReplacedTable) and step.shrank)
        touched = _once(list(_other_changes(cleared, steps)))
    elif any(map(_raw_before, steps)):
        touched = _once(steps)
    for table, identity, number, raw, number_now, raw_now in touched:
        if number_now is None or raw_now is None:
            if number is not None:
                removed.append((table.name, number, identity))
        elif raw_now != raw or number_now != number:
            puts += (b"[%b,%d," % (table.json_name, number_now), raw_now, b"],")
    if cleared:
        for table in cleared:
            for number, raw in table.rows.items():
                puts += (b"[%b,%d," % (table.json_name, number), raw, b"],")
        head += b'"clear":[%b],' % b",".join(table.json_name for table in cleared)
    if cleared or removed:
        head += b'"delete":%b,' % orjson.dumps(removed)
    elif not puts:
        return None
    # the documents are copied once, into the whole text
    if puts:
        puts[-1] = b"]"
    return b"".join((head, b'"put":[', *puts, b"]}"))


def repeat(change: Mapping[str, Any], table_of: Callable[[str], DocumentTable]) -> None:
    """Apply the differences of a decoded `payload` to tables by name, without undo steps.

    Removed and moved documents come first, since another document may have got their number. Raises ValueError,
    KeyError, TypeError or AttributeError for a change that does not fit these tables.
    """
    for kind in change.get("clear", ()):
        table = table_of(kind)
        table.content = TableContent.empty(table.kind)
    for kind, _, identity in change.get("delete", ()):
        table_of(kind).unset(identity)
    puts = [(table_of(kind), number, document) for kind, number, document in change["put"]]
    for table, number, document in puts:
        if table.numbers.get(document["id"]) != number:
            table.unset(document["id"])
    for table, number, document in puts:
        table.set(document["id"], number, document, encoded(document))
