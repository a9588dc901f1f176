"""`state copy` moves a service there and back with nothing lost; `state check --store` finds what is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from emulator import assemble
from emulator.assemble import stored_service
from emulator.cli.main import run
from emulator.settings import ServeSettings
from tests.e2e.process import served
from tests.postgres.cluster import control
from tests.postgres.server import PostgreSQL


def filled(state: Path) -> dict[str, object]:
    """A state directory with two banks and a snapshot; what it holds."""
    with served(state) as bank:
        control(bank.url, "PUT", "banks/other", {"fixtures": "empty"})
        control(bank.url, "PUT", "snapshots/before")
        control(bank.url, "POST", "tpps", {"name": "shop"})
        control(bank.url, "POST", "sessions", {"tpp": "demo", "nationalId": "14888520059"})
        held = holding(bank.url)
        assert bank.stop() == 0
    return held


def holding(url: str) -> dict[str, object]:
    listed = {name: control(url, "GET", name) for name in ("snapshots", "tpps")}
    names = [one["name"] for one in control(url, "GET", "banks")["banks"]]
    tpps = sorted(one["name"] for one in listed["tpps"]["tpps"])
    return {"state": control(url, "GET", "state"), "snapshots": listed["snapshots"], "tpps": tpps, "banks": names}


@pytest.mark.crash
def test_a_service_is_moved_there_and_back(tmp_path: Path, store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, last = tmp_path / "first", tmp_path / "last"
    held = filled(first)
    assert run(["state", "copy", str(first), store_url]) == 0
    output = capsys.readouterr().out
    assert output.startswith("Copied 2 banks, 1 snapshot and 2 TPPs from ")
    assert "emulator-password" not in output
    assert run(["state", "check", "--store", store_url]) == 0
    assert "default: intact, " in capsys.readouterr().out
    with served(tmp_path / "beside", "--store", store_url) as bank:
        assert holding(bank.url) == held
        assert (tmp_path / "beside" / "ca.pem").read_bytes() == (first / "ca.pem").read_bytes()
        assert bank.stop() == 0
    capsys.readouterr()
    assert run(["state", "copy", store_url, str(last), "--output", "json"]) == 0
    copied = json.loads(capsys.readouterr().out)
    assert [copied[name] for name in ("target", "banks", "snapshots", "tpps")] == [str(last), 2, 1, 2]
    assert "emulator-password" not in copied["source"]
    assert run(["state", "check", "--state", str(last)]) == 0
    with served(last) as bank:
        assert holding(bank.url) == held


@pytest.mark.crash
def test_what_is_there_is_kept_unless_it_is_to_be_replaced(
    tmp_path: Path, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = tmp_path / "first"
    filled(first)
    assert run(["state", "copy", str(first), store_url]) == 0
    assert run(["state", "copy", str(first), store_url]) == 2
    assert "holds banks (default, other); --replace" in capsys.readouterr().err
    assert run(["state", "copy", str(first), store_url, "--replace"]) == 0
    assert run(["state", "copy", store_url, str(first)]) == 2
    assert "holds banks (default, other); --replace" in capsys.readouterr().err
    with served(first):
        assert run(["state", "copy", store_url, str(first), "--replace"]) == 2
        assert "process " in capsys.readouterr().err
        assert run(["state", "copy", str(first), store_url, "--replace"]) == 2
        assert "process " in capsys.readouterr().err
    assert run(["state", "copy", store_url, str(first), "--replace"]) == 0


@pytest.mark.crash
@pytest.mark.parametrize("query", ["", pytest.param("?application_name=sandbox", marks=pytest.mark.long)])
def test_a_store_that_processes_use_is_not_replaced(
    tmp_path: Path,
    store_url: str,
    query: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filled(tmp_path / "first")
    url = store_url + query
    copy = ["state", "copy", str(tmp_path / "first"), url, "--replace"]
    with served(tmp_path / "beside", "--store", url, "--fixtures", "empty") as bank:
        before = holding(bank.url)
        with monkeypatch.context() as patch:
            patch.setattr(stored_service, "_ENDING", 0.5)
            assert run(copy) == 2
        output = capsys.readouterr()
        [line] = output.err.splitlines()
        assert "(schema bank_emulator) is in use by a process connected from 127.0.0.1: stop all processes" in line
        assert "emulator-password" not in line
        assert holding(bank.url) == before
        assert run(["state", "copy", str(tmp_path / "first"), store_url, "--store-schema", "elsewhere"]) == 0
        assert bank.stop() == 0
    assert run(copy) == 0
    capsys.readouterr()
    assert run(["state", "check", "--store", url]) == 0
    assert "other: intact, " in capsys.readouterr().out


def test_there_is_one_line_for_what_cannot_be_copied_or_checked(
    tmp_path: Path, postgresql: PostgreSQL, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = postgresql.url(store_url.rpartition("/")[2], password="wrong")
    for arguments, text in (
        (["state", "copy", str(tmp_path), store_url], "holds no bank"),
        (["state", "copy", store_url, str(tmp_path / "new")], "has no tables"),
        (["state", "check", "--store", wrong], "password"),
        (["state", "check", "--store", store_url, "--repair"], "--repair is for a state directory"),
        (["state", "check", "--store", "mysql://u:pw@host/db"], "--store takes postgresql://"),
        (["state", "check", "--store", store_url, "--store-schema", 'a"b'], "--store-schema takes a plain name"),
        (["state", "copy", str(tmp_path), store_url, "--store-schema", "A"], "--store-schema takes a plain name"),
        (["state", "copy", "mysql://nobody@127.0.0.1/none", str(tmp_path / "new")], "takes postgresql://"),
    ):
        assert run(arguments) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert text in lines[0]


@pytest.mark.crash
def test_damage_is_found_and_named(tmp_path: Path, store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with served(tmp_path / "state", "--store", store_url) as bank:
        for number in range(5):
            control(bank.url, "PUT", "settings", {"progression": "manual" if number % 2 else "time"})
        assert run(["state", "check", "--store", store_url]) == 0
        assert bank.stop() == 0
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute(
            "DELETE FROM bank_emulator.change WHERE bank = 'default'"
            " AND sequence = (SELECT max(sequence) - 2 FROM bank_emulator.change WHERE bank = 'default')"
        )
    capsys.readouterr()
    assert run(["state", "check", "--store", store_url]) == 3
    output = capsys.readouterr()
    assert "1 changes are missing, the first of them " in output.out
    assert output.err.startswith("bank-emulator: default is damaged: ")


@pytest.mark.parametrize(
    "statement, problem",
    [
        (
            "UPDATE {}.bank SET memory = 'x' WHERE name = 'default'",
            "  what the last home of bank default had in memory",
        ),
        ("UPDATE {}.secret SET body = 'x' WHERE kind = 'service'", "  the secret service is damaged: "),
        (
            "WITH a AS (UPDATE {}.bank SET sequence = 2 WHERE name = 'default') INSERT INTO {}.change"
            """ VALUES ('default', 2,"""
            """ '{{"put":[["_snapshot",1,{{"id":"a","created":"","content":"content-5.json"}}]]}}')""",
            "  content content-5.json of bank default is damaged: it is missing",
        ),
        ("UPDATE {}.bank SET written = -1 WHERE name = 'default'", "  the time -1 in the row of bank default is out"),
        ("DELETE FROM {}.bank WHERE name = 'default'", "  the row in bank of default is missing"),
        ("INSERT INTO {}.change VALUES ('default', 2, '{{}}')", "  the head is at change 1, the last stored one is 2"),
        (
            """UPDATE {}.secret SET body = '{{"certificate.pem": "eA==", "key.pem": "eA=="}}' WHERE kind = 'tpp'""",
            "  the secret tpp demo is damaged: ",
        ),
        ("DELETE FROM {}.secret WHERE kind = 'ca'", "  the sandbox CA is missing"),
        ("UPDATE {}.change SET body = '{{' WHERE bank = 'default'", "  change 1 of bank default is damaged: "),
    ],
)
def test_each_kind_of_damage_is_found(
    tmp_path: Path, store_url: str, capsys: pytest.CaptureFixture[str], statement: str, problem: str
) -> None:
    assemble.assemble(ServeSettings(store=store_url, state=tmp_path / "state")).close()
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute(statement.format("bank_emulator", "bank_emulator").encode())
    assert run(["state", "check", "--store", store_url]) == 3
    output = capsys.readouterr()
    assert problem in output.out
    assert output.err.count("\n") == 1


def test_a_check_makes_no_tables_and_migrates_none(
    tmp_path: Path, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["state", "check", "--store", store_url]) == 2
    assert "schema bank_emulator has no tables" in capsys.readouterr().err
    with psycopg.connect(store_url, autocommit=True) as connection:
        schemas = "SELECT count(*) FROM information_schema.schemata WHERE schema_name = 'bank_emulator'"
        assert connection.execute(schemas).fetchone() == (0,)
        assemble.assemble(ServeSettings(store=store_url, state=tmp_path / "state")).close()
        connection.execute("UPDATE bank_emulator.layout SET version = 1")
        assert run(["state", "check", "--store", store_url]) == 2
        assert "have version 1: a start of `serve` migrates them" in capsys.readouterr().err
        assert connection.execute("SELECT version FROM bank_emulator.layout").fetchall() == [(1,)]


def test_the_search_path_in_the_url_names_the_schema_unless_a_flag_does(
    tmp_path: Path, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "first")
    url = f"{store_url}?options=-csearch_path%3Delsewhere"
    assert run(["state", "copy", str(tmp_path / "first"), url]) == 0
    assert run(["state", "check", "--store", store_url]) == 2
    assert "schema bank_emulator has no tables" in capsys.readouterr().err
    assert run(["state", "check", "--store", store_url, "--store-schema", "elsewhere"]) == 0
    assert run(["state", "check", "--store", url, "--store-schema", "third"]) == 2
    assert "schema third has no tables" in capsys.readouterr().err
    assemble.assemble(ServeSettings(store=url, state=tmp_path / "own")).close()
    assert run(["state", "check", "--store", store_url]) == 2, "serve uses the same schema"


def test_the_word_postgresql_is_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["state", "copy", "postgresql", "postgresql"]) == 2
    assert "SOURCE and TARGET are the same server" in capsys.readouterr().err
    assert run(["state", "copy", str(tmp_path), str(tmp_path / "new"), "--state", str(tmp_path)]) == 2
    assert "--state is the directory of the server" in capsys.readouterr().err
