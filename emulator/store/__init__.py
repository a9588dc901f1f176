"""Documents by kind in TinyDB, with indexes, a journal and a snapshot. Knows nothing of banking.

`documents.py` has the documents in memory, with transactions and undoing, `loaded.py` what can be asked of them;
`table.py` has those of one kind, images of all, and the difference between two moments; `kinds.py` what is declared of
a kind, with its indexes and orders. `log.py` says what a log is. `journal_log.py` is the log in a directory, with its
files in `journal.py` and `snapshot.py`, and `disk.py`; `check.py` verifies and repairs a directory. `postgres/` is the
log that several processes share.

A change on its way: `Documents.put`, `DocumentTable.place`, and at the end of the transaction `table.difference`,
`JournalLog.append`. And back: `Recovered`, `snapshot.load`, `Documents.apply`, `DocumentTable.place`.
"""

from emulator.store.documents import Documents, Event, WriteGroup, memory_store
from emulator.store.errors import (
    StoreDamaged,
    StoreDeleted,
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
from emulator.store.kinds import SNAPSHOTS, Document, Kind, NamedContent, Ordered
from emulator.store.loaded import LoadedDocuments
from emulator.store.log import Log
from emulator.store.table import Change, Image

__all__ = [
    "SNAPSHOTS",
    "Change",
    "Document",
    "Documents",
    "Durability",
    "Event",
    "Image",
    "JournalLog",
    "Kind",
    "LoadedDocuments",
    "Log",
    "NamedContent",
    "Ordered",
    "StoreDamaged",
    "StoreDeleted",
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
