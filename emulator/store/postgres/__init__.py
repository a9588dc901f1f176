"""A log in PostgreSQL that processes share: each has the documents in memory, the database has their changes in order.

`layout.py` has the tables and their versions; `database.py` all other SQL; `pool.py` the connections of a process;
`errors.py` why a server cannot be used; `log.py` the log of one bank, as its store sees it. Nothing here is imported
without `--store`.

Who writes holds a lock on the row of each bank concerned, has applied what others appended since, appends what it
changed and commits; answers leave after that. It uses primary keys and row locks only, and nothing that outlives
a transaction, so that pgbouncer in transaction mode works.
"""

from emulator.store.postgres.database import (
    NOWHERE,
    SERVICE,
    Appended,
    Content,
    Database,
    Head,
    Outcome,
    Position,
    StoredExchange,
    Tail,
    Transaction,
    Work,
)
from emulator.store.postgres.errors import StoreLayoutNewer, StoreUnreachable, StoreUnusable
from emulator.store.postgres.log import PostgresLog
from emulator.store.postgres.parts import Parts
from emulator.store.postgres.pool import Pool

__all__ = [
    "NOWHERE",
    "SERVICE",
    "Appended",
    "Content",
    "Database",
    "Head",
    "Outcome",
    "Parts",
    "Pool",
    "Position",
    "PostgresLog",
    "StoreLayoutNewer",
    "StoreUnreachable",
    "StoreUnusable",
    "StoredExchange",
    "Tail",
    "Transaction",
    "Work",
]
