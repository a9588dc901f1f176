"""Documents by kind in TinyDB, with indexes, a journal and a snapshot. Knows nothing of banking.

`documents.py` has the documents in memory, with transactions and undoing, and says what a log is and is given;
`table.py` has those of one kind, and images of all. `journal_log.py` is the log in a directory, with `snapshot.py` and
`disk.py`; `check.py` verifies and repairs a directory. `postgres/` is the log that several processes share.

A change on its way: `Documents.put`, `DocumentTable.place`, and at the end of the transaction `documents.difference`,
`JournalLog.append`. And back: `Recovered`, `snapshot.load`, `Documents.apply`, `DocumentTable.place`.
"""

from emulator.store.change import Change
from emulator.store.documents import Documents, Event, WriteGroup, memory_store
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
    StoreVoid,
)
from emulator.store.journal_log import Durability, JournalLog, open_store
from emulator.store.kinds import Document, Kind, Ordered
from emulator.store.log import Log
from emulator.store.reading import DependentCache
from emulator.store.table import Image

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
    "StoreDamaged",
    "StoreError",
    "StoreExhausted",
    "StoreLocked",
    "StoreLost",
    "StoreShared",
    "StoreTooNew",
    "StoreUncertain",
    "StoreUnwritable",
    "StoreVoid",
    "WriteGroup",
    "memory_store",
    "open_store",
]
