"""Documents by kind in TinyDB, with indexes, a journal and a snapshot. Knows nothing of banking.

`documents.py` has the documents in memory, with transactions and undoing, and says what a log does; `table.py` has
those of one kind, `image.py` the content at one moment, `changes.py` what a log is given. `journal_log.py` is the log
in a directory, with `snapshot.py`, `recovery.py` and `disk.py`; `check.py` verifies and repairs a directory.
`postgres/` is the log that several processes share.

A change on its way: `Documents.put`, `DocumentTable.place`, and at the end of the transaction `changes.payload`,
`JournalLog.append`. And back: `recovery.recover`, `snapshot.load`, `Documents.apply`, `DocumentTable.place`.
"""

from emulator.store.changes import Change
from emulator.store.documents import DependentCache, Documents, Event, Log, WriteGroup, memory_store
from emulator.store.errors import (
    StoreDamaged,
    StoreError,
    StoreExhausted,
    StoreLocked,
    StoreLost,
    StoreShared,
    StoreTooNew,
    StoreUncertain,
    StoreUnwritable,
)
from emulator.store.image import Image
from emulator.store.journal_log import Durability, JournalLog, open_store
from emulator.store.kinds import Document, Kind, Ordered

Store = Documents  # the name that those who open and close them use

__all__ = [
    "Change",
    "DependentCache",
    "Document",
    "Documents",
    "Durability",
    "Event",
    "Image",
    "JournalLog",
    "Kind",
    "Log",
    "Ordered",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreExhausted",
    "StoreLocked",
    "StoreLost",
    "StoreShared",
    "StoreTooNew",
    "StoreUncertain",
    "StoreUnwritable",
    "WriteGroup",
    "memory_store",
    "open_store",
]
