"""The tables in the database, their version, and the steps from one version to the next.

A process makes or migrates them at its start. All names are qualified with the schema, so that nothing depends on the
session. The row of `bank` with the empty name is the service's own: its `sequence` grows when a bank is made or deleted
or a TPP is issued, its `counts` hold what the service as a whole remembers, as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg import AsyncConnection, errors
from psycopg.rows import TupleRow

VERSION = 1
ATTEMPTS = 5  # processes that start together make the same tables

TABLES: tuple[str, ...] = (
    "CREATE TABLE {schema}.layout (version integer PRIMARY KEY)",
    # sequence, turn: of the last change; checkpoint: the last one in `checkpoint`; size: bytes of changes since then;
    # written: real time of the last commit in microseconds; counted: grows with `counts`, the counters of rules as JSON
    "CREATE TABLE {schema}.bank (name text PRIMARY KEY, incarnation bigint NOT NULL, sequence bigint NOT NULL,"
    " turn uuid NOT NULL, checkpoint bigint NOT NULL DEFAULT 0, size bigint NOT NULL DEFAULT 0,"
    " written bigint NOT NULL DEFAULT 0, counted bigint NOT NULL DEFAULT 0, counts bytea NOT NULL DEFAULT '{}')",
    # body: a change as the journal has it; events: a JSON array of what was published with it
    "CREATE TABLE {schema}.change (bank text NOT NULL, sequence bigint NOT NULL, turn uuid NOT NULL,"
    " body bytea NOT NULL, events bytea, PRIMARY KEY (bank, sequence))",
    # the parts of a snapshot file, as a state directory has it
    "CREATE TABLE {schema}.checkpoint (bank text NOT NULL, sequence bigint NOT NULL, part integer NOT NULL,"
    " body bytea NOT NULL, PRIMARY KEY (bank, sequence, part))",
    "CREATE TABLE {schema}.exchange (bank text NOT NULL, id bigint NOT NULL, body bytea NOT NULL,"
    " PRIMARY KEY (bank, id))",
    "CREATE TABLE {schema}.snapshot (bank text NOT NULL, name text NOT NULL, created timestamptz NOT NULL,"
    " body bytea NOT NULL, PRIMARY KEY (bank, name))",
    # version: the service's sequence by which the row came
    "CREATE TABLE {schema}.secret (kind text NOT NULL, name text NOT NULL, version bigint NOT NULL,"
    " body bytea NOT NULL, PRIMARY KEY (kind, name))",
    "CREATE SEQUENCE {schema}.exchange_number",
    "CREATE VIEW {schema}.document AS"
    " SELECT whole.bank, kind.key AS kind, document.value->>'id' AS id, document.value::jsonb AS body"
    " FROM (SELECT bank, convert_from(string_agg(body, ''::bytea ORDER BY part), 'UTF8')::json AS body"
    " FROM {schema}.checkpoint GROUP BY bank, sequence) whole,"
    " json_each(whole.body) kind, json_each(kind.value) document WHERE kind.key NOT IN ('_store', '_index')",
    "INSERT INTO {schema}.bank (name, incarnation, sequence, turn)"
    " VALUES ('', 0, 0, '00000000-0000-0000-0000-000000000000')",
    "INSERT INTO {schema}.layout (version) VALUES ({version})",
)

STEPS: Mapping[int, Sequence[str]] = {}
"""By version: the statements that lead from it to the next one."""


class LayoutNewer(Exception):
    """The tables are of a later version of this program; the argument is their version."""


class LayoutForeign(Exception):
    """The schema has tables that are none of these."""


async def prepare(
    connection: AsyncConnection[TupleRow],
    schema: str,
    *,
    version: int = VERSION,
    steps: Mapping[int, Sequence[str]] = STEPS,
) -> None:
    """Make the tables in `schema`, or migrate them; LayoutNewer, LayoutForeign, psycopg.Error."""
    for attempt in range(ATTEMPTS):
        try:
            async with connection.transaction():
                await _prepare(connection, schema, version, steps)
            return
        except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateSchema, errors.DuplicateObject):
            if attempt == ATTEMPTS - 1:
                raise


async def _prepare(
    connection: AsyncConnection[TupleRow], schema: str, version: int, steps: Mapping[int, Sequence[str]]
) -> None:
    names = await connection.execute(
        "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relkind IN ('r', 'p', 'v')",
        [schema],
    )
    present = {row[0] for row in await names.fetchall()}
    if not present:
        exists = await connection.execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", [schema])
        if await exists.fetchone() is None:  # who may not make schemas can be given one
            await connection.execute(_in_schema("CREATE SCHEMA {schema}", schema, version))
        for statement in TABLES:
            await connection.execute(_in_schema(statement, schema, version))
        return
    if not {"layout", "bank", "change"} <= present:
        raise LayoutForeign
    rows = await connection.execute(_in_schema("SELECT version FROM {schema}.layout FOR UPDATE", schema, version))
    row = await rows.fetchone()
    if row is None or not isinstance(row[0], int):
        raise LayoutForeign
    if row[0] > version:
        raise LayoutNewer(row[0])
    for older in range(row[0], version):
        for statement in steps[older]:
            await connection.execute(_in_schema(statement, schema, version))
    if row[0] < version:
        await connection.execute(_in_schema("UPDATE {schema}.layout SET version = {version}", schema, version))


def _in_schema(statement: str, schema: str, version: int) -> str:
    return statement.replace("{schema}", f'"{schema}"').replace("{version}", str(version))
