"""Documents by kind in TinyDB, with indexes, a journal and a snapshot. Knows nothing of banking.

`documents.py` is the interface for the other packages; `db.py` implements it, with `tx.py` (the changes of a
transaction), `table.py` (the documents of one kind) and `index.py`, and defines the interface of a log;
`journal_log.py` is the log in a directory, with `journal.py`, `snapshot.py`, `image.py`, `recovery.py` and
`disk.py`. `check.py` verifies and repairs a directory. `postgres/` is the log that several processes share.

A change on its way: `db.Store.put`, `table.DocumentTable.put`, and at the end of the transaction `tx.payload`,
`journal_log.JournalLog.append`, `journal.Journal.append`. And back: `recovery.recover`, `db.Store.apply`, `tx.repeat`,
`table.DocumentTable.set`.
"""

from emulator.store.db import Change, Log, MemoryLog, Store, WriteGroup, memory_store
from emulator.store.documents import DependentCache, Documents, Event
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
from emulator.store.image import Image, PreparedImage, discarded_on_failure
from emulator.store.journal_log import Durability, JournalLog, open_store
from emulator.store.kinds import Document, Kind, Ordered

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
    "MemoryLog",
    "Ordered",
    "PreparedImage",
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
    "discarded_on_failure",
    "memory_store",
    "open_store",
]
