"""Processes that share a store are one service: what one has answered, the others know."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from emulator.cli.main import run
from tests.postgres.cluster import eventually
from tests.warm import Command

if TYPE_CHECKING:
    from tests.postgres.server import PostgreSQL

pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")


@contextmanager
def serving(state: Path, *flags: str, log: Path = Path(os.devnull)) -> Iterator[tuple[Command, httpx.Client]]:
    with log.open("w") as stderr:
        line = ("serve", "--port", "0", "--state", str(state), *flags)
        process = Command(*line, stdout=subprocess.PIPE, stderr=stderr)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().removeprefix("READY ").strip()
        with httpx.Client(base_url=url, timeout=20) as client:
            yield process, client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


Ask = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state directories `a` and `b` of the two processes."""
    return tmp_path_factory.mktemp("two")


@pytest.fixture(scope="module")
def both(postgresql: PostgreSQL, folder: Path) -> Iterator[tuple[Ask, Ask]]:
    """Two processes for all tests, with a store of their own."""
    url = postgresql.database()
    with (
        serving(folder / "a", "--store", url) as (_, first),
        serving(folder / "b", "--store", url) as (_, second),
    ):
        yield first.request, second.request
    postgresql.drop(url)


@pytest.fixture
def two(both: tuple[Ask, Ask]) -> tuple[Ask, Ask]:
    """The two processes, with their bank as it was made."""
    answer(both[0]("POST", "/_emulator/reset", json={}))
    return both


def answer(response: httpx.Response) -> Any:
    assert response.status_code < 300, response.text
    return response.json() if response.content else None


def test_what_one_process_has_changed_the_other_shows(two: tuple[Ask, Ask], folder: Path) -> None:
    first, second = two
    answer(first("PUT", "/_emulator/clock", json={"mode": "frozen", "now": "2027-03-02T09:00:00+00:00"}))
    assert answer(second("GET", "/_emulator/clock"))["now"] == "2027-03-02T09:00:00+00:00"
    answer(second("POST", "/_emulator/tpps", json={"name": "acme"}))
    assert "acme" in [tpp["name"] for tpp in answer(first("GET", "/_emulator/tpps"))["tpps"]]
    assert (folder / "a" / "tpps" / "acme" / "key.pem").exists()
    assert (folder / "a" / "ca.pem").read_bytes() == (folder / "b" / "ca.pem").read_bytes()


def test_a_form_of_the_console_issues_a_tpp_that_both_know(two: tuple[Ask, Ask]) -> None:
    first, second = two
    form = {
        "csrf": re.findall('name="csrf" value="([^"]+)"', first("GET", "/console/tpps").text)[-1],
        "name": "by-form",
        "roles": "PISP",
    }
    assert "BEGIN CERTIFICATE" in first("POST", "/console/tpps", data=form).text
    assert "by-form" in [tpp["name"] for tpp in answer(second("GET", "/_emulator/tpps"))["tpps"]]


def test_a_tpp_that_the_command_line_adds_beside_one_process_is_that_of_all(two: tuple[Ask, Ask], folder: Path) -> None:
    _, second = two
    assert run(["tpp", "new", "shop", "--state", str(folder / "a")]) == 0
    eventually(lambda: "shop" in [tpp["name"] for tpp in answer(second("GET", "/_emulator/tpps"))["tpps"]])
    eventually((folder / "b" / "tpps" / "shop").exists)
    for file in ("certificate.pem", "key.pem", "keystore.p12"):
        assert (folder / "b/tpps/shop" / file).read_bytes() == (folder / "a/tpps/shop" / file).read_bytes()


def test_a_state_directory_brings_its_tpps_along(store_url: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert run(["tpp", "new", "demo", "--state", str(state)]) == 0
    key = (state / "tpps/demo/key.pem").read_bytes()
    (state / "tpps" / "broken").mkdir()
    with serving(state, "--store", store_url) as (_, client):
        assert [tpp["name"] for tpp in client.get("/_emulator/tpps").json()["tpps"]] == ["demo"]
    assert (state / "tpps/demo/key.pem").read_bytes() == key


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
    file, log = tmp_path / "ready.json", tmp_path / "log"
    flags = ("--store", store_url, "--workers", "2", "--ready-file", str(file))
    with serving(tmp_path / "a", *flags, log=log) as (process, client):

        def workers() -> set[str]:
            return set(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())

        killed, other = workers()
        os.kill(int(killed), signal.SIGKILL)
        eventually(lambda: len(workers() - {killed, other}) == 1)
        with httpx.Client(base_url=client.base_url, timeout=20) as later:  # what the dead one had is nobody's yet
            assert later.get("/health").status_code == 200
        assert json.loads(file.read_text())["pid"] == process.pid
    assert (process.returncode, file.exists()) == (0, False)
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
def test_a_store_that_workers_cannot_use_is_one_line(url: str, says: str, tmp_path: Path) -> None:
    line = ("serve", "--port", "0", "--state", str(tmp_path), "--store", url, "--workers", "2")
    refused = Command(*line, stderr=subprocess.PIPE)
    _, log = refused.communicate(60)
    assert (refused.returncode, log.count("\n")) == (2, 1), log
    assert says in log
