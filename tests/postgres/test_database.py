"""The tables and their versions, and what becomes of a commit that nobody has answered."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from emulator.store.postgres.records import LARGE

from emulator import assemble
from emulator.cli.main import run
from emulator.settings import ServeSettings
from emulator.store.postgres import (
    NOWHERE,
    SERVICE,
    Appended,
    Database,
    Outcome,
    StoreLayoutNewer,
    StoreUnreachable,
    StoreUnusable,
    Work,
    layout,
)
from tests.postgres.server import ROLE, PostgreSQL

SCHEMA = "bank_emulator"
BANK = "red"


@pytest.fixture
async def database(store_url: str) -> AsyncIterator[Database]:
    database = Database(store_url, SCHEMA)
    await database.prepare()
    yield database
    await database.close()


def change(first: int, *, new: bool = False) -> Work:
    work = Work(uuid4(), new_banks=[(BANK, 1)] if new else [])
    work.appended.append(Appended(BANK, first, [(b"{}", None)], 1000 + first, None))
    return work


async def begin(database: Database, *names: str) -> None:
    await database.begin(dict.fromkeys((SERVICE, *names), NOWHERE), lock=[SERVICE, *names])


async def test_an_older_layout_is_migrated_once_and_a_newer_one_refused(store_url: str, database: Database) -> None:
    steps = {1: ["ALTER TABLE {schema}.bank ADD COLUMN colour text", "UPDATE {schema}.bank SET colour = 'red'"]}
    async with await database.connect() as connection:
        for _ in range(2):
            await layout.prepare(connection, SCHEMA, version=2, steps=steps)
        colours = await (await connection.execute(f"SELECT colour FROM {SCHEMA}.bank")).fetchall()
        assert colours == [("red",)]
    with pytest.raises(StoreLayoutNewer, match="version 2"):
        await Database(store_url, SCHEMA).prepare()


async def test_tables_of_something_else_are_left_alone(store_url: str, database: Database) -> None:
    async with await database.connect() as connection:
        await connection.execute("CREATE SCHEMA other")
        await connection.execute("CREATE TABLE other.thing (id int)")
    with pytest.raises(StoreUnusable, match="--store-schema"):
        await Database(store_url, "other").prepare()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_may_have_any_encoding(tmp_path: Path, postgresql: PostgreSQL, encoding: str) -> None:
    url = postgresql.url(encoding.lower())
    with postgresql.admin() as admin:
        admin.execute(
            f"CREATE DATABASE {encoding.lower()} OWNER {ROLE} ENCODING '{encoding}' TEMPLATE template0".encode()
        )
    try:
        for _ in range(2):
            assemble.assemble(ServeSettings(store=url, state=tmp_path / "state")).close()
        assert run(["state", "check", "--store", url]) == 0
    finally:
        postgresql.drop(url)


async def test_a_second_process_waits_for_the_head_and_gets_the_tail(store_url: str, database: Database) -> None:
    await begin(database)
    work = change(1, new=True)
    assert await database.commit(work) == ([], [])
    other = Database(store_url, SCHEMA)
    transaction = await other.begin({BANK: NOWHERE})
    position = transaction.heads[BANK].position
    assert (position.sequence, position.turn) == (1, work.turn)
    await begin(database, BANK)
    await database.commit(change(2))
    head = (await other.begin({BANK: position}, lock=[BANK])).heads[BANK]
    assert (head.follows, [tail.sequence for tail in head.tail], head.written) == (True, [2], 1002)
    await other.close()


async def test_a_lost_connection_at_the_commit_is_told_apart_from_a_refused_one(
    store_url: str, database: Database
) -> None:
    await begin(database)
    first = change(1, new=True)
    await database.commit(first)
    await begin(database, BANK)
    with pytest.raises(StoreUnreachable):
        await database.commit(change(1))  # there is one of this number
    lost = change(2)
    await begin(database, BANK)
    async with await psycopg.AsyncConnection.connect(store_url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'bank-emulator bank_emulator' AND pid <> pg_backend_pid()"
        )
    with pytest.raises(ConnectionError):
        await database.commit(lost)
    assert [await database.outcome(work) for work in (first, lost)] == [Outcome.WRITTEN, Outcome.LOST]


@pytest.mark.parametrize(("size", "limit"), [(100, "5500ms"), (LARGE + 1, "2min")])
async def test_a_large_commit_may_take_longer(database: Database, size: int, limit: str) -> None:
    async with await database.connect() as connection:
        await connection.execute(
            f"""CREATE TABLE {SCHEMA}.seen AS SELECT ''::text AS timeout;
            CREATE FUNCTION {SCHEMA}.note() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN UPDATE {SCHEMA}.seen SET timeout = current_setting('statement_timeout'); RETURN NEW; END $$;
            CREATE TRIGGER note BEFORE INSERT ON {SCHEMA}.change FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.note()"""
        )
        await begin(database)
        work = Work(uuid4(), new_banks=[(BANK, 1)])
        work.appended.append(Appended(BANK, 1, [(b" " * size, None)], 1001, None))
        await database.commit(work)
        assert await (await connection.execute(f"SELECT timeout FROM {SCHEMA}.seen")).fetchone() == (limit,)


async def test_changes_and_exchanges_are_not_compressed(database: Database) -> None:
    stored = "SELECT attrelid::regclass::text FROM pg_attribute WHERE attname = 'body' AND attstorage = 'e' ORDER BY 1"
    async with await database.connect() as connection:
        rows = await (await connection.execute(stored)).fetchall()
    assert rows == [(f"{SCHEMA}.change",), (f"{SCHEMA}.exchange",)]


async def test_a_checkpoint_holds_what_is_stored_and_readers_see_it(database: Database) -> None:
    await begin(database)
    await database.commit(change(1, new=True))
    snapshot = b'{"_store":{},"payment":{"1":{"id":"p1","status":"ACSC"}}}'
    await database.checkpoint(BANK, 1, 1, snapshot)
    content = await database.load(BANK)
    assert content is not None
    assert content.snapshot is not None
    assert (content.head.checkpoint, content.head.tail) == (1, [])
    assert content.snapshot.read(0, content.snapshot.size) == snapshot
    async with await database.connect() as connection:
        rows = await (await connection.execute(f"SELECT kind, id, body->>'status' FROM {SCHEMA}.document")).fetchall()
    assert rows == [("payment", "p1", "ACSC")]


def test_nothing_of_it_is_imported_without_a_store() -> None:
    script = "import sys, emulator.cli.main, emulator.assemble, emulator.assemble.application\n"
    script += "print([name for name in sys.modules if 'psycopg' in name or 'postgres' in name or 'pgserver' in name])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"
