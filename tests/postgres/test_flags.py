"""The flags of the processes that share a store: one seed for all, and a line where others differ."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from emulator import assemble
from emulator.failure import Failed
from emulator.settings import ServeSettings
from tests.postgres.process import Process, process


def start(folder: Path, url: str, **flags: object) -> None:
    """Start, and leave the bank at once."""
    assemble.assemble(ServeSettings(store=url, state=folder, **flags)).close()  # type: ignore[arg-type]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE bank_emulator.bank SET until = 'epoch'")


async def test_the_seed_of_the_first_process_is_that_of_all(tmp_path: Path, store_url: str) -> None:
    await asyncio.to_thread(start, tmp_path / "first", store_url, seed=7)
    with pytest.raises(Failed, match="--store: its processes share --seed 7, and this one has --seed 8"):
        await asyncio.to_thread(start, tmp_path / "second", store_url, seed=8)
    await asyncio.to_thread(start, tmp_path / "third", store_url)  # without the flag it takes that of the store
    async with process(store_url, tmp_path / "fourth") as one:
        await one.control("PUT", "banks/other")
        (meta,) = (one for one in (await one.control("GET", "state", bank="other"))["meta"] if one["id"] == "bank")
        assert meta["seed"] == 7


async def test_a_scenario_is_applied_once_for_all_and_by_a_process_that_has_the_bank(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def progression(one: Process) -> str:
        return str((await one.control("GET", "settings"))["progression"])

    first, second = (tmp_path / f"{name}.yaml" for name in ("first", "second"))
    for file, setting in ((first, "manual"), (second, "time")):
        start = f"start: {{from: current, settings: {{progression: {setting}}}}}"
        file.write_text(f"scenario: {file.stem}\nsummary: A setting.\n{start}\n")
    async with process(store_url, tmp_path / "one", scenario=(str(first),)) as one:
        assert await progression(one) == "manual"
        await one.control("PUT", "settings", {"progression": "immediate"})
        async with process(store_url, tmp_path / "two", scenario=(str(first),)) as two:
            assert [await progression(each) for each in (one, two)] == ["immediate"] * 2
        assert "--scenario" not in caplog.text
        async with process(store_url, tmp_path / "three", scenario=(str(second),)) as three:
            assert [await progression(each) for each in (one, three)] == ["immediate"] * 2
        assert "--scenario is not applied: another process has the default bank" in caplog.text
        await one.end()
    async with process(store_url, tmp_path / "one", scenario=(str(second),)) as later:
        assert await progression(later) == "time"


async def test_a_process_that_takes_the_bank_over_leaves_what_it_was_made_with(tmp_path: Path, store_url: str) -> None:
    made_with = {"fixtures": "two-signatures", "scenario": "slow-bank"}
    async with (
        process(store_url, tmp_path / "one", fixtures="two-signatures", scenario=("slow-bank",)) as one,
        process(store_url, tmp_path / "two") as two,
    ):
        await one.end()
        assert await two.control("POST", "reset") == made_with
        await two.end()
    async with process(store_url, tmp_path / "three") as three:
        assert await three.control("POST", "reset") == made_with
        await three.end()
    async with process(store_url, tmp_path / "four", fixtures="household") as four:
        assert await four.control("POST", "reset") == {**made_with, "fixtures": "household"}


def test_other_flags_are_logged_by_the_process_that_starts_later(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    start(tmp_path / "first", store_url, weather="rough")
    start(tmp_path / "second", store_url)
    text = "this process has --weather calm, another one of the store --weather rough: give all of them the same"
    assert [record.getMessage() for record in caplog.records] == [text]
