"""Changes of documents: steps, which note what was there before, the change as JSON, and the log that is given it.

Undoing is to place again what a step says, the last one first. A change is the difference between what was there before
the first step and what is there now: each document at most once, whatever happened to it in between.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from emulator.store.errors import StoreUnwritable
from emulator.store.loaded import LoadedDocuments
from emulator.store.table import DocumentTable, Image, StoredContent, TableContent


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


class Log:
    """Makes the changes of one bank last. Used by one thread, that of its documents. This one stores nothing.

    - `JournalLog` (journal_log.py) appends each change to a file in the bank's own directory.
    - `PostgresLog` (postgres/log.py) commits it to a database, while this process is the bank's home.

    With a log that `confirms`, `append` is not the end: an answer that shows the change waits for `durable`, and until
    then the log may take it back with `Documents.revert`. That is an fsync (`--durability power`) or a commit.

    `written`: the real time of the last change that was loaded, in seconds since 1970, 0 for none; `size`: bytes that
    the next start would read besides the snapshot; `compacting`: a new snapshot is being written.
    """

    _loaded = confirms = False
    compacting: object = None
    written = 0.0
    size = 0

    @property
    def owned(self) -> bool:
        """Whether nobody else can have changed the bank by now. An answer that was computed before is then true."""
        return True

    @property
    def sync_needed(self) -> bool:
        """Whether appended changes wait for `durable`."""
        return False

    @property
    def compaction_due(self) -> bool:
        """Whether a new snapshot would make the next start much faster, and none is being written."""
        return False

    def load(self, _documents: LoadedDocuments) -> None:
        """Load all changes into the empty documents, with its `replace` and `apply`.

        The first time they are the bank's; once more, and others, if those were lost. StoreUnwritable if that is not
        possible.
        """
        if self._loaded:
            raise StoreUnwritable("the documents were in memory only, and are lost")
        self._loaded = True

    def append(self, change: Change) -> None:
        """Append a change; if it raises, the change was not stored. From then on its content belongs to the log."""

    def durable(self, sequence: int) -> Awaitable[None]:
        """Wait, from this call on, until the changes up to this one last; StoreUnwritable if they are undone instead.

        StoreLost: somebody else has the bank. StoreUncertain: they may be stored or not.
        """
        raise NotImplementedError

    def sync(self) -> None:
        """Make every change last before it returns, as far as that needs no waiting for others; StoreUnwritable."""

    def compaction(self, pause: Callable[[], None]) -> Coroutine[Any, Any, None]:
        """Begin a new snapshot of the present content; the coroutine writes it. StoreUnwritable if it cannot begin.

        `pause` is called in a thread, between pieces of the work.
        """
        raise NotImplementedError

    def store_content(self, _image: Image) -> StoredContent:
        """Store a whole content that a change can refer to; may run in any thread. Raises StoreUnwritable."""
        return StoredContent()

    def close(self, pause: Callable[[], None] = lambda: None) -> None:
        """Store remaining changes, compact unless `pause` cancels it, release resources; later changes are refused."""

    def discard(self) -> None:
        """Release resources without storing anything: the bank is deleted."""
