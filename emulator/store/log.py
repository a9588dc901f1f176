"""What a log is: it makes the changes of one bank last, and gives them back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from secrets import randbelow
from time import time_ns
from typing import Any

from emulator.store.errors import StoreUnwritable
from emulator.store.loaded import LoadedDocuments
from emulator.store.table import Change, Image, StoredContent


def content_name() -> str:
    """A name of its own for a content, which begins with the time."""
    return f"content-{time_ns() // 1000 * 1024 + randbelow(1024)}.json"


class Log:
    """Makes the changes of one bank last. Used by one thread, that of its documents. This one stores nothing.

    - `JournalLog` (journal_log.py) appends each change to a file in the bank's own directory.
    - `PostgresLog` (postgres/log.py) commits it to a database, while this process is the bank's home.

    It also stores whole contents by name, to which a change may refer, so that it stays small, and snapshots do.

    With a log that `confirms`, `append` is not the end: an answer that shows the change waits for `durable`, and until
    then the log may take it back with `Documents.revert`. That is an fsync (`--durability power`) or a commit.

    `written`: the real time of the last change that was loaded, in seconds since 1970, 0 for none; `size`: bytes that
    the next start would read besides the snapshot; `compacting`: a new snapshot is being written.
    """

    _loaded = confirms = False
    compacting: object = None
    written = 0.0
    size = 0

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}

    @property
    def owned(self) -> bool:
        """Whether nobody else can have changed the bank by now. An answer that was computed before is then true."""
        return True

    @property
    def deleting(self) -> bool:
        """Whether the bank is being deleted, or was, so that nobody knows from here what is stored."""
        return False

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

    def store_content(self, image: Image) -> StoredContent:
        """Store a whole content that a change or a snapshot can refer to; for any thread. Raises StoreUnwritable."""
        stored = self.stored(content_name())
        self._images[stored.file] = image
        return stored

    def stored(self, file: str, size: int = 0) -> StoredContent:
        """A content that is stored; it is removed when nobody has this any more, unless something refers to it."""
        return StoredContent(file, size, partial(self.remove_content, file))

    def content(self, file: str) -> Image:
        """A stored content; for any thread. LookupError if there is none, StoreError, OSError."""
        return self._images[file]

    def remove_content(self, file: str) -> None:
        """Remove a stored content that nothing refers to; never raises."""
        self._images.pop(file, None)

    def close(self, pause: Callable[[], None] = lambda: None) -> None:
        """Store remaining changes, compact unless `pause` cancels it, release resources; later changes are refused."""

    def discard(self) -> None:
        """Release resources without storing anything: the bank is deleted."""
