"""Changes of documents: steps, which note what was there before, and the change as JSON that a log is given.

Undoing is to place again what a step says, the last one first. A change is the difference between what was there before
the first step and what is there now: each document at most once, whatever happened to it in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from emulator.store.table import DocumentTable, StoredContent, TableContent


class Change(NamedTuple):
    """One change: its number, itself as JSON, and the whole content that it names.

    As JSON `{"sequence", "clear": [kind], "delete": [[kind, number, id]], "put": [[kind, number, document]]}`, with
    "clear" and "delete" only if something is deleted; for a cleared kind, "put" has every document. With a content
    it is `{"sequence", "content": file, "then": the differences since}`.
    """

    sequence: int
    payload: bytes
    content: StoredContent | None = None


_NAMED = re.compile(rb'\{"sequence":\d+,(?:"synced":\d+,)?"content":"([^"]*)"')


def content_named(change: bytes) -> str | None:
    """The content that a change names, or None; without decoding the change."""
    named = _NAMED.match(change)
    return None if named is None else named[1].decode()


@dataclass(slots=True, eq=False)
class Replaced:
    """The whole content that each table had before all of it was replaced, and what the log has of the new one."""

    stored: StoredContent | None
    before: dict[DocumentTable, TableContent] = field(default_factory=dict)


Step = tuple[DocumentTable, str, int | None, bytes | None] | Replaced
"""What was there before a change: table, id, number and text of a document (None: it did not exist), or everything."""


_document: Callable[[Any], Any] = itemgetter(0, 1)


def difference(sequence: int, steps: list[Any]) -> Change | None:
    """The change from what was before the first step to what is now; None if there is no difference."""
    parts, content = [b'{"sequence":%d,' % sequence], None
    cleared: dict[DocumentTable, None] = {}  # tables that are better written as a whole
    anew: set[Any] = set()
    if not {tuple}.issuperset(map(type, steps)):
        for place, step in enumerate(steps):
            if isinstance(step, Replaced) and step.stored is not None:  # what was before it does not matter
                content, since = step.stored, place + 1
        if content is not None:
            parts.append(b'"content":%b,"then":{' % orjson.dumps(content.file))
            steps = steps[since:]
        steps = list(_single_steps(steps, cleared, anew))
    touched: dict[Any, Any] = dict.fromkeys(map(_document, steps))
    last_first = steps[::-1]
    touched.update(zip(map(_document, last_first), last_first, strict=True))  # the first step of each
    removed: list[tuple[str, int, str]] = []
    puts: list[bytes] = []
    for table, identity, number, raw in touched.values():
        now = table.numbers.get(identity)
        if cleared and table in cleared:
            continue
        if now is None:
            if number is not None:
                removed.append((table.name, number, identity))
        elif now != number or table.rows[now] != raw or (anew and (table, identity) in anew):
            puts += (b"[%b,%d," % (table.json_name, now), table.rows[now], b"],")
    for table in cleared:
        for now, text in table.sorted_rows().items():
            puts += (b"[%b,%d," % (table.json_name, now), text, b"],")
    if cleared:
        parts.append(b'"clear":[%b],' % b",".join(table.json_name for table in cleared))
    if cleared or removed:
        parts.append(b'"delete":%b,' % orjson.dumps(removed))
    elif not puts and content is None:
        return None
    # the documents are copied once, into the whole text
    if puts:
        puts[-1] = b"]"
    return Change(sequence, b"".join((*parts, b'"put":[', *puts, b"]}" if content is None else b"]}}")), content)


def _single_steps(steps: list[Step], cleared: dict[DocumentTable, None], anew: set[Any]) -> Iterator[Any]:
    """The steps with the documents of a replaced table one by one, unless that is to be `cleared`.

    Documents that were put after that are written `anew` even if they are what they were: a reset is a change.
    """
    replaced = False
    for step in steps:
        if not isinstance(step, Replaced):
            if replaced:
                anew.add(step[:2])
            yield step
            continue
        replaced = True
        for table, before in step.before.items():
            if len(before.numbers) > 2 * len(table.numbers):
                cleared[table] = None
            else:
                for identity, number in before.numbers.items():
                    yield table, identity, number, before.rows[number]
                for identity in table.numbers:
                    yield table, identity, None, None
