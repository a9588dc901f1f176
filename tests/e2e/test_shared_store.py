"""Processes that share a store are one service: what one has answered, the others know."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from emulator.cli.main import run
from tests.postgres.cluster import eventually

pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")


@contextmanager
def serving(
    state: Path, *flags: str, log: Path = Path(os.devnull)
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    command = [sys.executable, "-m", "emulator", "serve", "--port", "0", "--state", str(state), *flags]
    with log.open("w") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().removeprefix("READY ").strip()
        with httpx.Client(base_url=url, timeout=20) as client:
            yield process, client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


Ask = Callable[..., httpx.Response]


@pytest.fixture
def two(store_url: str, tmp_path: Path) -> Iterator[tuple[Ask, Ask]]:
    with (
        serving(tmp_path / "a", "--store", store_url) as (_, first),
        serving(tmp_path / "b", "--store", store_url) as (_, second),
    ):
        yield first.request, second.request


def answer(response: httpx.Response) -> Any:
    assert response.status_code < 300, response.text
    return response.json() if response.content else None


def test_what_one_process_has_changed_the_other_shows(two: tuple[Ask, Ask], tmp_path: Path) -> None:
    first, second = two
    answer(first("PUT", "/_emulator/clock", json={"mode": "frozen", "now": "2027-03-02T09:00:00+00:00"}))
    assert answer(second("GET", "/_emulator/clock"))["now"] == "2027-03-02T09:00:00+00:00"
    answer(second("POST", "/_emulator/tpps", json={"name": "acme"}))
    assert "acme" in [tpp["name"] for tpp in answer(first("GET", "/_emulator/tpps"))["tpps"]]
    assert (tmp_path / "a" / "tpps" / "acme" / "key.pem").exists()
    assert (tmp_path / "a" / "ca.pem").read_bytes() == (tmp_path / "b" / "ca.pem").read_bytes()


def test_a_tpp_that_the_command_line_adds_beside_one_process_is_that_of_all(
    two: tuple[Ask, Ask], tmp_path: Path
) -> None:
    _, second = two
    assert run(["tpp", "new", "shop", "--state", str(tmp_path / "a")]) == 0
    eventually(lambda: "shop" in [tpp["name"] for tpp in answer(second("GET", "/_emulator/tpps"))["tpps"]])
    eventually((tmp_path / "b" / "tpps" / "shop").exists)
    for file in ("certificate.pem", "key.pem", "keystore.p12"):
        assert (tmp_path / "b/tpps/shop" / file).read_bytes() == (tmp_path / "a/tpps/shop" / file).read_bytes()


def test_a_state_directory_brings_its_tpps_along(store_url: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert run(["tpp", "new", "demo", "--state", str(state)]) == 0
    key = (state / "tpps/demo/key.pem").read_bytes()
    (state / "tpps" / "broken").mkdir()
    with serving(state, "--store", store_url) as (_, client):
        assert [tpp["name"] for tpp in client.get("/_emulator/tpps").json()["tpps"]] == ["demo"]
    assert (state / "tpps/demo/key.pem").read_bytes() == key


def test_requests_of_one_process_are_in_the_log_of_the_other(two: tuple[Ask, Ask]) -> None:
    first, second = two
    assert [ask("GET", "/v1/accounts").status_code for ask in (first, second, first)] == [400, 400, 400]
    for ask in two:
        requests = answer(ask("GET", "/_emulator/requests"))["requests"]
        assert [request["id"] for request in requests] == ["3", "2", "1"]
    detail = answer(second("GET", "/_emulator/requests/1"))
    assert detail["signature"]["valid"] is False
    answer(second("DELETE", "/_emulator/requests"))
    assert answer(first("GET", "/_emulator/requests"))["requests"] == []


def test_rules_count_over_all_processes(two: tuple[Ask, Ask]) -> None:
    rule = {
        "name": "twice",
        "unsigned": True,
        "when": {"operation": "getAccounts"},
        "times": {"first": 2},
        "then": {"answer": {"status": 500, "code": "SYSTEM_ERROR"}},
    }
    first, second = two
    answer(first("POST", "/_emulator/rules", json={"rules": [rule]}))
    statuses = [ask("GET", "/v1/accounts").status_code for ask in (first, second, first, second)]
    assert statuses == [500, 500, 400, 400]
    [count] = answer(second("GET", "/_emulator/rules"))["counts"]
    assert (count["matched"], count["acted"]) == (4, 2)


def test_banks_and_snapshots_are_those_of_all(two: tuple[Ask, Ask]) -> None:
    first, second = two
    answer(first("PUT", "/_emulator/banks/red", json={"now": "2027-03-02T09:00:00+00:00", "clock": "frozen"}))
    answer(second("PUT", "/banks/red/_emulator/snapshots/begun", json={}))
    answer(second("PUT", "/banks/red/_emulator/clock", json={"now": "2027-04-02T09:00:00+00:00"}))
    answer(first("POST", "/banks/red/_emulator/snapshots/begun/restore", json={}))
    assert answer(second("GET", "/banks/red/_emulator/clock"))["now"] == "2027-03-02T09:00:00+00:00"
    answer(first("DELETE", "/_emulator/banks/red"))
    assert second("GET", "/banks/red/_emulator/clock").status_code == 404


def test_without_the_server_nothing_is_answered_but_health_until_it_is_back(
    postgresql: Any, store_url: str, tmp_path: Path
) -> None:
    with serving(tmp_path / "a", "--store", store_url) as (_, client):
        postgresql.stop()
        try:
            statuses = {path: client.get(path).status_code for path in ("/health", "/ready", "/_emulator/clock")}
        finally:
            postgresql.start()
        assert statuses == {"/health": 200, "/ready": 503, "/_emulator/clock": 503}
        assert client.get("/ready").status_code == 200


def test_workers_serve_one_port_and_one_that_dies_is_replaced(store_url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(tmp_path / "a", "--store", store_url, "--workers", "2", log=log) as (process, client):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 2
        os.kill(int(children[0]), signal.SIGKILL)
        with httpx.Client(base_url=client.base_url, timeout=20) as later:  # the dead one's lease has to run out
            eventually(lambda: later.get("/v1/accounts").status_code == 400)
    assert process.returncode == 0
    lines = log.read_text()
    assert lines.count("documents in PostgreSQL") >= 2
    assert "stopped; every connection is closed" in lines


def test_workers_end_with_the_process_that_started_them(store_url: str, tmp_path: Path) -> None:
    with serving(tmp_path / "a", "--store", store_url, "--workers", "2") as (process, client):
        process.kill()
        process.communicate(timeout=20)  # stdout ends when no worker has it open any more
        with pytest.raises(httpx.ConnectError):
            client.get("/health")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "check that PostgreSQL runs"),
        ("postgresql://x@[bad/none", "--store"),
    ],
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_store_that_cannot_be_used_is_one_line(url: str, says: str, workers: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "emulator", "serve", "--port", "0", "--state", str(tmp_path), "--store", url]
    command += ["--workers", workers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert says in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_store_without_the_extra_is_one_line(workers: str, tmp_path: Path) -> None:
    without = "import sys; sys.modules['psycopg'] = None; from emulator.cli.main import run; sys.exit(run())"
    command = [sys.executable, "-c", without, "serve", "--port", "0", "--state", str(tmp_path), "--workers", workers]
    command += ["--store", "postgresql://nobody@127.0.0.1:1/none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "pip install 'bank-emulator[postgresql]'" in done.stderr


def test_tables_of_something_else_or_of_a_later_version_are_refused(
    postgresql: Any, store_url: str, tmp_path: Path
) -> None:
    import psycopg

    def started(*flags: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "emulator", "serve", "--port", "0", "--state", str(tmp_path)]
        done = subprocess.run([*command, "--store", store_url, *flags], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    with serving(tmp_path / "a", "--store", store_url):
        pass
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute("UPDATE bank_emulator.layout SET version = 99")
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE TABLE other.thing (id int)")
    for flags, expected, says in (((), 3, "99"), (("--store-schema", "other"), 2, "--store-schema")):
        status, text = started(*flags)
        assert (status, says in text) == (expected, True), text
