"""What a log stores: changes as JSON, the differences between what was and what is.

A change is `{"sequence", "clear": [kind], "delete": [[kind, number, id]], "put": [[kind, number, document]]}`, with
"clear" and "delete" only if something is deleted; for a cleared kind, "put" has every document. If the whole content
was replaced by a stored one, it is `{"sequence", "content": file, "then": the differences since}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from emulator.store.image import StoredContent
from emulator.store.table import DocumentTable, TableContent


class Change(NamedTuple):
    """One change: its number, itself as JSON, and the whole content that it names."""

    sequence: int
    payload: bytes
    content: StoredContent | None = None


_NAMED = re.compile(rb'\{"sequence":\d+,(?:"synced":\d+,)?"content":"([^"]*)"')


def content_named(change: bytes) -> str | None:
    """The content that a change names, or None; without decoding the change."""
    named = _NAMED.match(change)
    return None if named is None else named[1].decode()


class Replaced(NamedTuple):
    """The whole content that a table had before it was replaced."""

    table: DocumentTable
    before: TableContent


Step = tuple[DocumentTable, str, int | None, bytes | None] | Replaced | StoredContent
"""What was there before a change: table, id, number and text of a document (None: it did not exist), or more.

After a StoredContent, the steps before it need not be written.
"""


def difference(sequence: int, steps: list[Step]) -> Change | None:
    """The change from what was before the first step to what is now; None if there is no difference."""
    head = b'{"sequence":%d,' % sequence
    if StoredContent not in (types := set(map(type, steps))):
        single = types == {tuple} and len(set(map(_document, steps))) == len(steps)
        payload = _differences(head, steps, single=single)
        return None if payload is None else Change(sequence, payload)
    for place, step in enumerate(steps):
        if isinstance(step, StoredContent):
            content, since = step, steps[place + 1 :]
    then = _differences(b"{", since, single=False) or b'{"put":[]}'
    return Change(sequence, b'%b"content":%b,"then":%b}' % (head, orjson.dumps(content.file), then), content)


_document: Callable[[Any], Any] = itemgetter(0, 1)


def _differences(head: bytes, steps: list[Any], *, single: bool) -> bytes | None:
    """`single`: each step is about a document of its own."""
    touched: Iterable[Any] = steps
    cleared: dict[DocumentTable, None] = {}  # tables that are better written as a whole
    anew: set[Any] = set()
    if not single:
        first: dict[tuple[DocumentTable, str], Any] = {}
        replaced: set[DocumentTable] = set()
        for step in steps:
            if isinstance(step, Replaced):
                table, was = step
                replaced.add(table)
                if len(was.numbers) > 2 * len(table.numbers):
                    cleared[table] = None
                    continue
                for identity, number in was.numbers.items():
                    first.setdefault((table, identity), (table, identity, number, was.rows[number]))
                for identity in table.numbers:
                    first.setdefault((table, identity), (table, identity, None, None))
                continue
            if step[0] in replaced:  # written even if it is what it was: a reset is a change
                anew.add(step[:2])
            first.setdefault(step[:2], step)
        touched = first.values()
    removed: list[tuple[str, int, str]] = []
    puts: list[bytes] = []
    for table, identity, number, raw in touched:
        if table in cleared:
            continue
        now = table.numbers.get(identity)
        if now is None:
            if number is not None:
                removed.append((table.name, number, identity))
        elif now != number or table.rows[now] != raw or (table, identity) in anew:
            puts += (b"[%b,%d," % (table.json_name, now), table.rows[now], b"],")
    if cleared:
        for table in cleared:
            for place, text in table.sorted_rows().items():
                puts += (b"[%b,%d," % (table.json_name, place), text, b"],")
        head += b'"clear":[%b],' % b",".join(table.json_name for table in cleared)
    if cleared or removed:
        head += b'"delete":%b,' % orjson.dumps(removed)
    elif not puts:
        return None
    # the documents are copied once, into the whole text
    if puts:
        puts[-1] = b"]"
    return b"".join((head, b'"put":[', *puts, b"]}"))
