"""The tables and their versions: an older layout is migrated at the first start, and nothing in it is lost."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from emulator import assemble
from emulator.cli.main import run
from emulator.settings import ServeSettings
from emulator.store.postgres import layout
from emulator.store.postgres.connection import StoreLayoutNewer, session
from emulator.store.postgres.log import content_of
from tests.postgres.process import PATIENCE, execute, process
from tests.postgres.server import ROLE, PostgreSQL

SCHEMA = "bank_emulator"


def loaded(url: str) -> None:
    """Load the dump.

    In its default bank a payment was made, a snapshot taken, another payment made, the snapshot restored, as a large
    content, and a third payment made; a bank `red` was made, deleted and made again.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(Path(__file__).with_name("layout1.sql").read_bytes())


async def test_a_store_of_layout_1_is_migrated_at_the_first_start(store_url: str, tmp_path: Path) -> None:
    loaded(store_url)
    [(exchanges,)] = await execute(store_url, "SELECT count(*) FROM {schema}.exchange")
    assert exchanges == 1
    await execute(store_url, "CREATE VIEW {schema}.kinds AS SELECT DISTINCT kind FROM {schema}.document")
    async with process(store_url, tmp_path / "state", fixtures="household") as one:
        assert await execute(store_url, "SELECT version FROM {schema}.layout") == [(layout.VERSION,)]
        payments = (await one.control("GET", "state"))["payment"]
        texts = {payment["initiation"]["remittanceInformationUnstructured"] for payment in payments}
        assert texts == {"before the snapshot", "after the restore"}
        assert (await one.control("GET", "settings"))["progression"] == "manual"
        assert (await one.control("GET", "clock"))["now"] == "2027-03-01T09:00:00+00:00"
        assert (await one.control("GET", "clock", bank="red"))["now"] == "2027-03-02T09:00:00+00:00"
        assert [each["name"] for each in (await one.control("GET", "snapshots"))["snapshots"]] == ["first"]
        assert [tpp["name"] for tpp in (await one.control("GET", "tpps"))["tpps"]] == ["demo"]
        assert one.registry.default.bank.ids.seed == 7
        await one.control("POST", "snapshots/first/restore")
        assert len((await one.control("GET", "state"))["payment"]) == 1
        await one.control("DELETE", "banks/red", status=204)
        await one.control("PUT", "banks/red", {"fixtures": "empty"}, status=201)
        assert await execute(store_url, "SELECT made FROM {schema}.bank WHERE name = 'red'") == [(2,)]
        await one.end()
    assert await asyncio.to_thread(run, ["state", "check", "--store", store_url]) == 0


async def test_of_processes_that_start_together_one_migrates(store_url: str) -> None:
    loaded(store_url)
    with ExitStack() as ending:
        one, two, other = [ending.enter_context(session(store_url, SCHEMA)) for _ in "123"]
        async with asyncio.timeout(PATIENCE):
            with other.connection.transaction():
                other.rows("SELECT FROM {schema}.layout FOR UPDATE")
                starts = asyncio.gather(*(asyncio.to_thread(layout.prepare, each) for each in (one, two)))
                while await execute(store_url, "SELECT count(*) FROM pg_locks WHERE NOT granted") != [(2,)]:
                    await asyncio.sleep(0.01)
            await starts
    assert await execute(store_url, "SELECT version FROM {schema}.layout") == [(layout.VERSION,)]


async def test_a_check_does_not_migrate(store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(store_url)
    before = await execute(store_url, "SELECT * FROM {schema}.bank ORDER BY name")
    assert await asyncio.to_thread(run, ["state", "check", "--store", store_url]) == 2
    assert "have version 1: a start of `serve` migrates them" in capsys.readouterr().err
    assert await execute(store_url, "SELECT * FROM {schema}.bank ORDER BY name") == before


async def test_steps_are_done_once_and_a_newer_layout_is_refused(store_url: str) -> None:
    newer = layout.VERSION + 1
    steps = {layout.VERSION: ["ALTER TABLE {schema}.layout ADD COLUMN colour text DEFAULT 'red'"]}
    with session(store_url, SCHEMA) as starting:
        layout.prepare(starting)
        for _ in range(2):
            layout.prepare(starting, version=newer, steps=steps)
        assert await execute(store_url, "SELECT version, colour FROM {schema}.layout") == [(newer, "red")]
        with pytest.raises(StoreLayoutNewer, match=f"version {newer}"):
            layout.prepare(starting)


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


async def test_changes_are_not_compressed(store_url: str) -> None:
    with session(store_url, SCHEMA) as starting:
        layout.prepare(starting)
    stored = "SELECT attrelid::regclass::text FROM pg_attribute WHERE attname = 'body' AND attstorage = 'e'"
    assert await execute(store_url, stored) == [(f"{SCHEMA}.change",)]


async def test_a_checkpoint_shortens_the_next_start_and_is_what_people_read_with_sql(
    store_url: str, tmp_path: Path
) -> None:
    async with process(store_url, tmp_path / "state") as one:
        await one.control("PUT", "settings", {"progression": "manual"})
        log = one.log("default")
        await log.compaction(lambda: None)
        await one.control("PUT", "settings", {"progression": "time"})
        [(sequence, checkpoint)] = await execute(store_url, "SELECT sequence, checkpoint FROM {schema}.bank")
        assert 0 < checkpoint < sequence
        people = await one.control("GET", "people")
        [(count,)] = await execute(store_url, "SELECT count(*) FROM {schema}.document WHERE kind = 'person'")
        assert count == len(people["people"])
        content = await content_of(one.homes.server, "default", sequence, checkpoint)
        assert [number for number, _ in content.changes] == list(range(checkpoint + 1, sequence + 1))
        await one.end()
    async with process(store_url, tmp_path / "state") as later:
        assert (await later.control("GET", "settings"))["progression"] == "time"
        assert await later.control("GET", "people") == people
