"""A log in PostgreSQL that processes share: each has the documents in memory, the database has their changes in order.

`layout.py` has the tables and their versions, `statements.py` all other SQL. `connection.py` is a connection on which
every wait is limited, `pool.py` those of a process; `database.py` is what a turn asks over one, `records.py` what it
gets and writes. `errors.py` says why a server cannot be used; `log.py` is the log of one bank, as its store sees it.
Nothing here is imported without `--store`.

A writer holds a lock on the row of each bank concerned, has applied what others appended since, appends its changes
and commits; answers are sent after that. It uses primary keys and row locks only, and nothing that outlives
a transaction, so that pgbouncer in transaction mode works.
"""

from emulator.store.postgres.database import Database
from emulator.store.postgres.errors import StoredDataDamaged, StoreLayoutNewer, StoreUnreachable, StoreUnusable
from emulator.store.postgres.log import PostgresLog
from emulator.store.postgres.pool import Pool
from emulator.store.postgres.records import (
    NOWHERE,
    SERVICE,
    Appended,
    Committed,
    Content,
    Head,
    Outcome,
    Parts,
    PlacedContent,
    Position,
    StoredExchange,
    Tail,
    TurnStart,
    Work,
)

__all__ = [
    "NOWHERE",
    "SERVICE",
    "Appended",
    "Committed",
    "Content",
    "Database",
    "Head",
    "Outcome",
    "Parts",
    "PlacedContent",
    "Pool",
    "Position",
    "PostgresLog",
    "StoreLayoutNewer",
    "StoreUnreachable",
    "StoreUnusable",
    "StoredDataDamaged",
    "StoredExchange",
    "Tail",
    "TurnStart",
    "Work",
]
