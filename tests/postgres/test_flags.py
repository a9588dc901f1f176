"""The flags of the processes that share a store: one seed for all, and a line where others differ."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from emulator import assemble
from emulator.assemble.application import BankApplication
from emulator.client import TppClient
from emulator.settings import ServeSettings
from tests.known_state import KARI
from tests.postgres.cluster import Node, cluster, control


def start(folder: Path, url: str, **flags: object) -> BankApplication:
    return assemble.assemble(ServeSettings(store=url, state=folder, **flags))  # type: ignore[arg-type]


def test_the_seed_of_the_first_process_is_that_of_all(tmp_path: Path, store_url: str) -> None:
    start(tmp_path / "first", store_url, seed=7).close()
    with pytest.raises(assemble.StartRefused, match="--store: its processes share --seed 7, and this one has --seed 8"):
        start(tmp_path / "second", store_url, seed=8)
    start(tmp_path / "third", store_url).close()  # without the flag it takes that of the store
    node = Node("node", tmp_path / "node", ("--store", store_url)).start()
    try:
        control(node.url, "PUT", "banks/other")
        (meta,) = (one for one in control(f"{node.url}/banks/other", "GET", "state")["meta"] if one["id"] == "bank")
        assert meta["seed"] == 7
    finally:
        node.kill()


def test_a_scenario_is_applied_by_the_first_process_that_names_it(tmp_path: Path, store_url: str) -> None:
    def progression(url: str) -> str:
        return str(control(url, "GET", "settings")["progression"])

    first, second = (tmp_path / f"{name}.yaml" for name in ("first", "second"))
    for file, setting in ((first, "manual"), (second, "time")):
        start = f"start: {{from: current, settings: {{progression: {setting}}}}}"
        file.write_text(f"scenario: {file.stem}\nsummary: A setting.\n{start}\n")
    flags = ("--store", store_url, "--scenario", str(first))
    one = Node("one", tmp_path / "one", flags).start()
    two = Node("two", tmp_path / "two", flags)
    try:
        assert progression(one.url) == "manual"
        control(one.url, "PUT", "settings", {"progression": "immediate"})
        two.start()
        assert progression(two.url) == progression(one.url) == "immediate"
        two.kill()
        two.flags = ("--store", store_url, "--scenario", str(second))
        two.start()
        assert progression(one.url) == "immediate"
        assert "--scenario is not applied: another process has the default bank" in two.log()
    finally:
        one.kill()
        two.kill()


def test_other_flags_are_logged_by_the_process_that_starts_later(tmp_path: Path, store_url: str) -> None:
    first = Node("first", tmp_path / "first", ("--store", store_url, "--weather", "rough")).start()
    second = Node("second", tmp_path / "second", ("--store", store_url)).start()
    try:
        text = "this process has --weather calm, another one of the store --weather rough: give all of them the same"
        assert text in second.log()
        assert "Traceback" not in first.log() + second.log()
    finally:
        first.kill()
        second.kill()


def test_the_rules_of_the_weather_count_at_all_processes_together(tmp_path: Path, store_url: str) -> None:
    with cluster(tmp_path, store_url, "--weather", "rough", "--seed", "7", nodes=2) as running:
        psu = control(running.nodes[0].url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI})
        for number in range(8):
            with TppClient(running.nodes[number % 2].url, running.demo) as client, suppress(OSError):
                client.use_session(psu)
                client.get("/v1/accounts")
        counts = [control(node.url, "GET", "rules")["counts"] for node in running.nodes]
        assert counts[0] == counts[1]
        (slow,) = (one for one in counts[0] if one["name"] == "weather: slow answer")
        assert slow["matched"] == 8
