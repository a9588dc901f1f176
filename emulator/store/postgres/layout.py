"""The tables in the database, their version, and the steps from one version to the next.

A process makes or migrates them at its start. All names are qualified with the schema, so that nothing depends on the
session. A new version is `VERSION`, `TABLES`, a row of `STEPS`, and a dump of the old tables beside
`tests/postgres/test_layouts.py`; `state copy` writes the row of a bank in `assemble/stored_service.py`.
Else it is read and written in `leases.py`, `log.py`, whose statements that delete or replace a bank name the columns to
clear, and `assemble/homes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from psycopg import errors
from psycopg.rows import TupleRow

from emulator.store.postgres.connection import StoreLayoutNewer, StoreSession, StoreUnusable

VERSION = 3
ATTEMPTS = 5  # processes that start together make the same tables

TABLES: Mapping[str, str] = {
    # news: grows with each secret that is stored
    "layout": "version integer PRIMARY KEY, news bigint NOT NULL DEFAULT 0",
    # home, address: the process that has it, and where that is reached; epoch: raised when a lease is taken; until: the
    # end of the lease; made: how often a bank of this name was deleted; sequence: its last change, 0 for a bank that
    # does not exist; checkpoint: the last change in `checkpoint`; written: microseconds from 1970 to the last commit;
    # memory: what the last home has left for the next one (handover.py)
    "bank": "name text PRIMARY KEY, home text, address text, epoch bigint NOT NULL DEFAULT 0,"
    " until timestamptz NOT NULL DEFAULT 'epoch', made bigint NOT NULL DEFAULT 0, sequence bigint NOT NULL DEFAULT 0,"
    " checkpoint bigint NOT NULL DEFAULT 0, written bigint NOT NULL DEFAULT 0, memory bytea",
    # body: a change as the journal has it
    "change": "bank text NOT NULL, sequence bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (bank, sequence)",
    # the parts of a snapshot file, as a state directory has it; negative: the name of one that is no checkpoint
    "checkpoint": "bank text NOT NULL, sequence bigint NOT NULL, part integer NOT NULL, body bytea NOT NULL,"
    " PRIMARY KEY (bank, sequence, part)",
    # version: the `news` by which the row came
    "secret": "kind text NOT NULL, name text NOT NULL, version bigint NOT NULL, body bytea NOT NULL,"
    " PRIMARY KEY (kind, name)",
}
"""By name: columns and key."""

VIEW = (
    "CREATE VIEW {schema}.document AS"
    " SELECT whole.bank, kind.key AS kind, document.value->>'id' AS id, document.value::jsonb AS body"
    " FROM (SELECT bank, convert_from(string_agg(body, ''::bytea ORDER BY part), 'UTF8')::json AS body"
    " FROM {schema}.checkpoint c JOIN {schema}.bank b ON b.name = c.bank AND b.checkpoint = c.sequence"
    " GROUP BY bank) whole,"
    " json_each(whole.body) kind, json_each(kind.value) document"
    " WHERE kind.key NOT IN ('_store', '_index', '_snapshot')"
)

# The server would compress them for longer than everything else in a commit takes, and they do not stay for long.
# Other engines may not know the setting.
UNCOMPRESSED = "ALTER TABLE {schema}.change ALTER COLUMN body SET STORAGE EXTERNAL"

_NUMBERED = (
    "(SELECT *, row_number() OVER (PARTITION BY bank ORDER BY created, name) AS number FROM {schema}.snapshot) s"
)

STEPS: Mapping[int, Sequence[str]] = {
    # Every process had every bank in memory, and the row with the empty name was that of the service as a whole.
    1: (
        "ALTER TABLE {schema}.layout ADD COLUMN news bigint NOT NULL DEFAULT 0",
        "UPDATE {schema}.layout SET news = 1 + (SELECT coalesce(max(version), 0) FROM {schema}.secret)",
        "ALTER TABLE {schema}.bank ADD COLUMN home text, ADD COLUMN address text,"
        " ADD COLUMN epoch bigint NOT NULL DEFAULT 0, ADD COLUMN until timestamptz NOT NULL DEFAULT 'epoch',"
        " ADD COLUMN made bigint NOT NULL DEFAULT 0, ADD COLUMN memory bytea",
        "INSERT INTO {schema}.secret (kind, name, version, body)"
        " SELECT 'service', '', 0, convert_to(json_build_object("
        "'flags', coalesce(about.of->'flags', '{}'), 'scenarios', coalesce(about.of->'scenarios', '[]'))::text, 'UTF8')"
        " FROM (SELECT convert_from(counts, 'UTF8')::json AS of FROM {schema}.bank WHERE name = '') about",
        "INSERT INTO {schema}.bank (name, incarnation, sequence, turn)"
        " SELECT made.key, 0, 0, '00000000-0000-0000-0000-000000000000' FROM {schema}.bank service,"
        " json_each_text(coalesce(convert_from(service.counts, 'UTF8')::json->'created', '{}')) made"
        " WHERE service.name = '' ON CONFLICT DO NOTHING",
        "UPDATE {schema}.bank b SET made = made.value::bigint - CASE WHEN b.sequence > 0 THEN 1 ELSE 0 END"
        " FROM {schema}.bank service,"
        " json_each_text(coalesce(convert_from(service.counts, 'UTF8')::json->'created', '{}')) made"
        " WHERE service.name = '' AND b.name = made.key",
        "DELETE FROM {schema}.bank WHERE name = ''",
        "DELETE FROM {schema}.change WHERE bank = ''",
        "DELETE FROM {schema}.change c USING {schema}.bank b WHERE c.bank = b.name AND c.sequence <= b.checkpoint",
        "DELETE FROM {schema}.snapshot WHERE name ~ '^[.]'",
        # a content became the checkpoint before the change that refers to it
        "INSERT INTO {schema}.checkpoint SELECT p.bank, named.content, p.part, p.body FROM {schema}.bank b"
        " JOIN {schema}.checkpoint p ON p.bank = b.name AND p.sequence = b.checkpoint JOIN (SELECT bank, sequence,"
        " (convert_from(body, 'UTF8')::json->>'content')::bigint AS content FROM {schema}.change WHERE bank > '') named"
        " ON named.bank = b.name AND named.sequence = b.checkpoint + 1 AND named.content IS NOT NULL"
        " ON CONFLICT DO NOTHING",
        "ALTER TABLE {schema}.bank DROP COLUMN incarnation, DROP COLUMN turn, DROP COLUMN size, DROP COLUMN counted,"
        " DROP COLUMN counts",
        "ALTER TABLE {schema}.bank ALTER COLUMN sequence SET DEFAULT 0",
        "ALTER TABLE {schema}.change DROP COLUMN turn, DROP COLUMN events",
        "DROP TABLE {schema}.exchange",
        "DROP SEQUENCE {schema}.exchange_number",
    ),
    # A snapshot was a row; it became a content, and one more change names those of a bank.
    2: (
        "DELETE FROM {schema}.snapshot WHERE bank NOT IN (SELECT name FROM {schema}.bank WHERE sequence > 0)",
        f"INSERT INTO {{schema}}.checkpoint SELECT bank, -number, 0, body FROM {_NUMBERED}",
        "UPDATE {schema}.bank SET sequence = sequence + 1 WHERE name IN (SELECT bank FROM {schema}.snapshot)",
        "INSERT INTO {schema}.change (bank, sequence, body)"
        " SELECT b.name, b.sequence, convert_to(json_build_object('sequence', b.sequence, 'put', json_agg("
        "json_build_array('_snapshot', s.number, json_build_object('id', s.name,"
        " 'created', to_char(s.created AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US+00:00'),"
        " 'content', 'content-' || s.number || '.json'))))::text, 'UTF8')"
        f" FROM {_NUMBERED} JOIN {{schema}}.bank b ON b.name = s.bank GROUP BY b.name, b.sequence",
        "DROP TABLE {schema}.snapshot",
        VIEW.replace("CREATE", "CREATE OR REPLACE"),  # views of users may depend on it, and roles have rights on it
    ),
}
"""By version: the statements that lead from it to the next one."""


_COLUMNS: Mapping[str, frozenset[str]] = {
    table: frozenset(column.split()[0] for column in columns.partition(", PRIMARY KEY ")[0].split(", "))
    for table, columns in TABLES.items()
}
"""By table: the columns that it has in this version."""

_PRESENT = (
    "SELECT c.relname, a.attname, has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')"
    " AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " WHERE n.nspname = %s AND c.relkind IN ('r', 'p', 'v')"
)


def prepare(session: StoreSession, *, version: int = VERSION, steps: Mapping[int, Sequence[str]] = STEPS) -> None:
    """Create the tables in the schema, or migrate them; StoreUnusable, StoreLayoutNewer, psycopg.Error."""
    for attempt in range(ATTEMPTS):
        try:
            if not _present(session):
                with session.connection.transaction():
                    _make(session, version)
                return
            if _version(session, version) < version:
                with session.connection.transaction():
                    # Of processes that start together one does it, once nobody else has a lock that it needs, too.
                    session.rows("LOCK TABLE {schema}.layout")
                    for older in range(_version(session, version), version):
                        for statement in steps[older]:
                            session.rows(statement)
                    session.rows("UPDATE {schema}.layout SET version = %s", version)
            _check(session)
            return
        except (errors.UndefinedTable, errors.UndefinedColumn):  # a layout of something else has a version, too
            raise _foreign(session) from None
        except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateSchema, errors.DuplicateObject):
            if attempt == ATTEMPTS - 1:
                raise


def verify(session: StoreSession) -> None:
    """Check that the schema has the tables of this version; StoreUnusable, StoreLayoutNewer, psycopg.Error."""
    if not _present(session):
        raise StoreUnusable(
            f"schema {session.schema} has no tables: name the one that `serve` uses with --store-schema"
        )
    older = _version(session, VERSION)
    if older < VERSION:
        raise StoreUnusable(
            f"the tables in schema {session.schema} have version {older}: a start of `serve` migrates them"
        )
    _check(session, writes=False)


def _present(session: StoreSession) -> list[TupleRow]:
    """Table, column, and whether the user may write there, of each column in the schema; StoreUnusable."""
    rows = session.rows(_PRESENT, session.schema)
    if rows and not {"layout", "bank", "change"} <= {table for table, _, _ in rows}:
        raise _foreign(session)
    return rows


def _make(session: StoreSession, version: int) -> None:
    if not session.rows("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", session.schema):
        session.rows("CREATE SCHEMA {schema}")  # only then: who may not make schemas can be given one
    for table, columns in TABLES.items():
        session.rows(f"CREATE TABLE {{schema}}.{table} ({columns})")
    session.rows(VIEW)
    session.rows("INSERT INTO {schema}.layout (version) VALUES (%s)", version)
    with suppress(errors.FeatureNotSupported, errors.SyntaxError), session.connection.transaction():
        session.rows(UNCOMPRESSED)


def _version(session: StoreSession, most: int) -> int:
    """The version of the tables; StoreLayoutNewer if it is above `most`."""
    rows = session.rows("SELECT version FROM {schema}.layout")
    version = rows[0][0] if rows else None
    if not isinstance(version, int) or version < 1:
        raise _foreign(session)
    if version > most:
        raise StoreLayoutNewer(
            f"the tables in schema {session.schema} have version {version}, and this program knows {most}:"
            " use the version that wrote them, or later"
        )
    return version


def _check(session: StoreSession, *, writes: bool = True) -> None:
    """Check that every table has its columns, and that the user may write to it; StoreUnusable."""
    rows = _present(session)
    for table, columns in _COLUMNS.items():
        if not columns <= {column for name, column, _ in rows if name == table}:
            raise _foreign(session)
    refused = [name for name, _, writable in rows if name in _COLUMNS and not writable]
    if writes and refused:
        raise StoreUnusable(
            f"the user may not write table {refused[0]}: give it all rights on schema {session.schema}, and its tables"
        )


def _foreign(session: StoreSession) -> StoreUnusable:
    return StoreUnusable(f"schema {session.schema} has tables of something else: name another one with --store-schema")
