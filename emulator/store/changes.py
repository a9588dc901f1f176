"""What a log stores: changes as JSON, the differences between what was and what is.

A change is `{"sequence", "clear": [kind], "delete": [[kind, number, id]], "put": [[kind, number, document]]}`, with
"clear" and "delete" only if something is deleted; for a cleared kind, "put" has every document. If the whole content
was replaced by a stored one, it is `{"sequence", "content": file, "then": the differences since}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from emulator.store.errors import StoreUnwritable
from emulator.store.image import Image, StoredContent
from emulator.store.table import DocumentTable, TableContent

if TYPE_CHECKING:
    from emulator.store.documents import Documents


class Change(NamedTuple):
    """One change: its number, and its content as JSON."""

    sequence: int
    payload: bytes


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


def payload(sequence: int, steps: list[Step]) -> bytes | None:
    """The change from what was before the first step to what is now; None if there is no difference."""
    head = b'{"sequence":%d,' % sequence
    if StoredContent not in (types := set(map(type, steps))):
        return _differences(head, steps, single=types == {tuple} and len(set(map(_document, steps))) == len(steps))
    for place, step in enumerate(steps):
        if isinstance(step, StoredContent):
            step.sequence = sequence
            content, since = step, steps[place + 1 :]
    then = _differences(b"{", since, single=False) or b'{"put":[]}'
    return b'%b"content":%b,"then":%b}' % (head, orjson.dumps(content.file), then)


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


class Log:
    """Makes the changes of one bank last. Used by one thread, that of its documents. This one stores nothing.

    - `JournalLog` (journal_log.py) appends each change to a file in the bank's own directory.
    - `PostgresLog` (postgres/log.py) commits it to a database, while this process is the bank's home.

    With a log that `confirms`, `append` is not the end: an answer that shows the change waits for `durable`, and until
    then the log may take it back with `Documents.revert`. That is an fsync (`--durability power`) or a commit.

    `written`: the real time of the last change that was loaded, in seconds since 1970, 0 for none; `size`: bytes that
    the next start would read besides the snapshot; `compacting`: a new snapshot is being written.
    """

    confirms = False
    compacting = False
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

    def load(self, documents: Documents) -> None:
        """Load all changes into the empty `documents`, with its `replace` and `apply`."""

    def load_anew(self, documents: Documents) -> None:  # noqa: ARG002
        """Load all changes once more, as `documents` that were lost; StoreUnwritable if that is not possible."""
        raise StoreUnwritable("the documents were in memory only, and are lost")

    def append(self, change: Change) -> None:
        """Append a change; if it raises StoreUnwritable, the change was not stored."""

    async def durable(self, sequence: int) -> None:
        """Wait until the changes up to this one last; StoreUnwritable if they were undone instead.

        StoreLost: somebody else has the bank. StoreUncertain: they may be stored or not.
        """

    def sync(self) -> None:
        """Make every change last before it returns, as far as that needs no waiting for others; StoreUnwritable."""

    def compaction(self, pause: Callable[[], None]) -> Coroutine[Any, Any, None]:
        """Begin a new snapshot of the present content; the coroutine writes it. StoreUnwritable if it cannot begin.

        `pause` is called in a thread, between pieces of the work.
        """
        raise NotImplementedError

    def store_content(self, image: Image) -> StoredContent:  # noqa: ARG002
        """Store a whole content that a change can refer to; may run in any thread. Raises StoreUnwritable."""
        return StoredContent()

    def close(self, pause: Callable[[], None] | None = None) -> None:
        """Store remaining changes, compact unless `pause` cancels it, release resources; later changes are refused."""

    def discard(self) -> None:
        """Release resources without storing anything: the bank is deleted."""
