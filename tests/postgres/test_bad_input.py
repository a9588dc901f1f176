"""A PostgreSQL that cannot be used: one line says what and what helps; while it serves, 503 and nothing lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from emulator import assemble
from emulator.api.messages import Request
from emulator.cli.main import run
from emulator.failure import Failed
from emulator.settings import ServeSettings
from emulator.store.postgres.connection import unusable
from tests.cases import cases
from tests.postgres.cluster import Node, ask, control, eventually
from tests.postgres.process import HEADERS, Process
from tests.postgres.server import PASSWORD, ROLE, PostgreSQL, own_folder
from tests.warm import Command

SCHEMA = "bank_emulator"
FULL = """
    CREATE FUNCTION public.no_room() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file "base/1"' USING ERRCODE = 'disk_full'; END $$;
    CREATE TRIGGER no_room BEFORE INSERT ON bank_emulator.change EXECUTE FUNCTION public.no_room()
"""


def refusal(folder: Path, url: str, schema: str = SCHEMA) -> str:
    """The one line that a start ends with."""
    settings = ServeSettings(store=url, store_schema=schema, state=folder / "state")
    with pytest.raises(Failed) as caught:
        assemble.assemble(settings)
    text = str(caught.value)
    assert text.startswith("--store: ")
    assert "\n" not in text
    assert PASSWORD not in text
    return text


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


@pytest.fixture
def tables(tmp_path: Path, store_url: str) -> psycopg.Connection:
    """The owner's connection to a store with a bank in it, whose home has gone."""
    assemble.assemble(ServeSettings(store=store_url, state=tmp_path / "first")).close()
    connection = psycopg.connect(store_url, autocommit=True)
    connection.execute("UPDATE bank_emulator.bank SET until = 'epoch'")
    return connection


@pytest.fixture
def guest(postgresql: PostgreSQL, store_url: str) -> Iterator[str]:
    """The store's address for a role that owns nothing."""
    with postgresql.admin() as admin:
        admin.execute(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    yield store_url.replace(f"//{ROLE}:", "//guest:")
    with postgresql.admin(name_of(store_url)) as admin:
        admin.execute("DROP OWNED BY guest")
        admin.execute("DROP ROLE guest")


# Start


@pytest.mark.parametrize(
    "url, what, help_text",
    [
        (
            "postgresql://u@127.0.0.1/db?colour=red",
            'query parameter: "colour"',
            "postgresql://user:password@host/databa",
        ),
        ("postgresql://127.0.0.1:1/db", "Connection refused", "check that PostgreSQL runs and can be reached"),
        ("postgresql://bank.invalid/db", "bank.invalid", "check host and port in the address"),
        ("postgresql://127.0.0.1:port/db", 'invalid integer value "port"', "check the address"),
        ("postgresql://127.0.0.1/db?sslmode=red", 'invalid sslmode value: "red"', "check the address"),
    ],
)
def test_a_server_that_is_not_there(tmp_path: Path, url: str, what: str, help_text: str) -> None:
    text = refusal(tmp_path, url)
    assert what in text
    assert help_text in text


@pytest.mark.parametrize("address", ["[::1/db", "h h/db", "127.0.0.1/db?colour=red"])
@pytest.mark.parametrize("password", ["secret", "50%secret", "a secret"])
def test_an_address_that_is_none_is_refused_without_its_password(tmp_path: Path, password: str, address: str) -> None:
    text = refusal(tmp_path, f"postgresql://u:{password}@{address}")
    assert "this is no address of a PostgreSQL (" in text
    assert "secret" not in text


def test_a_server_that_does_not_let_the_user_in(tmp_path: Path, postgresql: PostgreSQL, store_url: str) -> None:
    name = name_of(store_url)
    wrong = refusal(tmp_path, postgresql.url(name, password="wrong"))
    assert wrong.endswith(f'password authentication failed for user "{ROLE}": check user and password')
    missing = refusal(tmp_path, postgresql.url("nowhere"))
    assert missing.endswith('database "nowhere" does not exist: create the database, or name another one')
    assert refusal(tmp_path, f"{store_url}?sslmode=require").endswith("check sslmode in the address")


@pytest.mark.parametrize("state", ["starting up", "shutting down", "in recovery mode"])
def test_a_server_that_is_not_ready_yet(state: str) -> None:
    error = psycopg.OperationalError(f"connection failed: FATAL:  the database system is {state}")
    assert str(unusable(error, SCHEMA)).endswith(f"is {state}: try again when PostgreSQL has started")


def test_a_limit_of_connections_that_is_reached(tmp_path: Path, postgresql: PostgreSQL, store_url: str) -> None:
    with postgresql.admin() as admin:
        admin.execute(f"ALTER DATABASE {name_of(store_url)} CONNECTION LIMIT 0")
    text = refusal(tmp_path, store_url)
    assert "too many connections for database" in text
    assert text.endswith("raise the limit of connections, end others, or lower --store-connections")


@pytest.mark.long
def test_a_standby_takes_no_writes(tmp_path: Path, postgresql: PostgreSQL) -> None:
    with own_folder() as folder, own_folder() as other:
        primary = PostgreSQL.create(folder)
        url = primary.database()
        copy = primary.standby(other)
        try:
            url = copy.url(name_of(url))
            for address in (url, f"{url}?target_session_attrs=any"):
                text = refusal(tmp_path, address)
                assert "read-only" in text or "recovery is in progress" in text
                assert text.endswith("name the primary, a server that takes writes")
        finally:
            primary.crash()
            copy.crash()


def test_a_server_that_takes_no_writes(tmp_path: Path, postgresql: PostgreSQL, store_url: str) -> None:
    with no_writes(postgresql, name_of(store_url)):
        text = refusal(tmp_path, store_url)
    assert "read-only" in text
    assert text.endswith("name the primary, a server that takes writes")


def test_a_user_without_rights(tmp_path: Path, guest: str, tables: psycopg.Connection, store_url: str) -> None:
    help_text = f"give the user all rights on schema {SCHEMA} and its tables, or the right to create the schema"
    assert f"permission denied for schema {SCHEMA}: {help_text}" in refusal(tmp_path, guest)
    assert "permission denied for database" in refusal(tmp_path, guest, "other")
    tables.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO guest")
    assert f"permission denied for table layout: {help_text}" in refusal(tmp_path, guest)
    tables.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {SCHEMA} TO guest")
    tables.execute(f"REVOKE INSERT ON {SCHEMA}.change FROM guest")
    assert "the user may not write table change: give it all rights" in refusal(tmp_path, guest)


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE other.thing (id int)",
        "CREATE TABLE other.layout (page int); CREATE TABLE other.bank (id int); CREATE TABLE other.change (id int)",
        "CREATE TABLE other.layout (version int); CREATE TABLE other.bank (id int); CREATE TABLE other.change (id int)",
        "CREATE TABLE other.layout (version int); INSERT INTO other.layout VALUES (1);"
        " CREATE TABLE other.bank (name text); CREATE TABLE other.change (bank text)",
        "CREATE TABLE other.layout (version int); INSERT INTO other.layout VALUES (-1);"
        " CREATE TABLE other.bank (name text); CREATE TABLE other.change (bank text)",
    ],
)
def test_a_schema_of_something_else(tmp_path: Path, store_url: str, statements: str) -> None:
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other")
        connection.execute(statements)
        before = content(connection)
        assert "schema other has tables of something else: name another one" in refusal(tmp_path, store_url, "other")
        assert content(connection) == before


def content(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    """All columns of the schema `other`."""
    columns = (
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'other' ORDER BY 1, 2"
    )
    return connection.execute(columns).fetchall()


def test_a_disk_that_is_full_at_the_start(tmp_path: Path, tables: psycopg.Connection, store_url: str) -> None:
    tables.execute("DELETE FROM bank_emulator.bank; DELETE FROM bank_emulator.change")
    tables.execute(FULL)
    text = refusal(tmp_path, store_url)
    assert text.endswith('could not extend file "base/1": make room on the server')


@pytest.mark.parametrize(
    "statement, what",
    [
        *[
            (
                f"UPDATE {{}}.secret SET body = '{body}' WHERE kind = 'service'",
                f"the secret service is damaged: {what}",
            )
            for body, what in (
                ("5", "it is not an object with flags"),
                ("{{", ""),
                ('{{"flags": 5}}', "it is not an object with flags"),
                ('{{"flags": {{"seed": []}}}}', "flags.seed is not a number"),
                ('{{"scenarios": 5}}', "its scenarios are not a list"),
            )
        ],
        ("UPDATE {}.secret SET body = 'x' WHERE kind = 'ca'", "the secret ca is damaged: "),
        ("UPDATE {}.secret SET body = '{{}}' WHERE kind = 'ca'", "the secret ca is damaged: ca.pem is missing"),
        ("UPDATE {}.secret SET body = '{{}}' WHERE kind = 'tpp'", "the secret tpp demo is damaged: "),
        (
            """UPDATE {}.secret SET body = '{{"certificate.pem": "eA==", "key.pem": "eA=="}}' WHERE kind = 'tpp'""",
            "the secret tpp demo is damaged: ",
        ),
        ("UPDATE {}.change SET body = '{{' WHERE bank = 'default'", "change 1 of bank default is damaged: "),
        ("DELETE FROM {}.change WHERE bank = 'default'", "bank default is damaged: changes after 0 are missing"),
        (
            "UPDATE {}.bank SET checkpoint = 1 WHERE name = 'default'",
            "the checkpoint of bank default is damaged: it is missing",
        ),
        (
            "INSERT INTO {0}.checkpoint VALUES ('default', 1, 0, '{{');"
            " UPDATE {0}.bank SET checkpoint = 1 WHERE name = 'default'",
            "the checkpoint of bank default is damaged: ",
        ),
    ],
)
def test_damaged_data_is_named(
    tmp_path: Path, tables: psycopg.Connection, store_url: str, statement: str, what: str
) -> None:
    tables.execute(statement.format(SCHEMA).encode())
    text = refusal(tmp_path, store_url)
    assert text.startswith(f"--store: {what}")
    assert text.endswith("restore the tables from a backup of PostgreSQL")


def test_the_command_ends_with_one_line_and_its_status(
    tmp_path: Path, tables: psycopg.Connection, postgresql: PostgreSQL, store_url: str
) -> None:
    wrong = postgresql.url(name_of(store_url), password="wrong")
    assert serve(tmp_path, "--store", wrong) == (2, "check user and password")
    tables.execute("UPDATE bank_emulator.layout SET version = 99")
    assert serve(tmp_path, "--store", store_url) == (3, "use the version that wrote them, or later")


def serve(folder: Path, *arguments: str, program: tuple[str, ...] = ()) -> tuple[int, str]:
    """The exit status of `serve`, and what helps: the end of the one line that it says on stderr."""
    line = ("serve", "--port", "0", "--state", str(folder / "state"), *arguments)
    if program:
        ended = subprocess.run([sys.executable, *program, *line], capture_output=True, text=True, timeout=60)
        status, err = ended.returncode, ended.stderr
    else:
        with Command(*line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
            _, err = command.communicate(timeout=60)
            status = command.wait()
    (text,) = err.splitlines()
    assert text.startswith("bank-emulator: --store: ")
    return status, text.rpartition(": ")[2].partition(" (")[0]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--advertise", "127.0.0.1:0"], "takes a port between 1 and 65535"),
        (["--advertise", "127.0.0.1:65536"], "takes a port between 1 and 65535"),
        (["--advertise", "::1"], "takes HOST or HOST:PORT"),
        (["--advertise", "127.0.0.1:9", "--workers", "2"], "workers cannot share a port; leave it out"),
        (["--store-connections", "0"], "--store-connections"),
    ],
)
def test_an_address_or_a_number_that_cannot_be_one_is_named(
    tmp_path: Path, store_url: str, arguments: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--state", str(tmp_path), "--store", store_url, *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert what in line


WITHOUT = """
import sys
from types import ModuleType
sys.modules["psycopg"] = ModuleType("psycopg")  # as if it, or its library in C, were not installed
from emulator.api.messages import Request
from emulator.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@cases("store", ["postgresql://127.0.0.1/db", "postgresql"])
def test_without_the_extra_one_line_names_it(tmp_path: Path, store: str) -> None:
    status, help_text = serve(tmp_path, "--store", store, program=("-c", WITHOUT))
    assert (status, help_text) == (2, "pip install 'bank-emulator[postgresql]'")


# While it serves


@contextmanager
def no_room(postgresql: PostgreSQL, database: str) -> Iterator[None]:
    with postgresql.admin(database) as admin:
        admin.execute(FULL)
        yield
        admin.execute("DROP FUNCTION public.no_room CASCADE")


@contextmanager
def no_connections(postgresql: PostgreSQL, database: str) -> Iterator[None]:
    with postgresql.admin() as admin:
        admin.execute(f"ALTER DATABASE {database} CONNECTION LIMIT 0")
        hang_up(admin, database)
        yield
        admin.execute(f"ALTER DATABASE {database} CONNECTION LIMIT -1")


@contextmanager
def no_writes(postgresql: PostgreSQL, database: str) -> Iterator[None]:
    with postgresql.admin() as admin:
        admin.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        hang_up(admin, database)
        yield
        admin.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")


@contextmanager
def no_rights(postgresql: PostgreSQL, database: str) -> Iterator[None]:
    with postgresql.admin(database) as admin:
        admin.execute("ALTER TABLE bank_emulator.change OWNER TO postgres")
        yield
        admin.execute(f"ALTER TABLE bank_emulator.change OWNER TO {ROLE}")


@contextmanager
def no_table(postgresql: PostgreSQL, database: str) -> Iterator[None]:
    with postgresql.admin(database) as admin:
        admin.execute("ALTER TABLE bank_emulator.change RENAME TO away")
        yield
        admin.execute("ALTER TABLE bank_emulator.away RENAME TO change")


def hang_up(admin: psycopg.Connection, database: str) -> None:
    admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database])


@pytest.mark.parametrize(
    "trouble, help_text",
    [
        (no_room, "make room on the server"),
        (no_connections, "raise the limit of connections, end others, or lower --store-connections"),
        (no_writes, "name the primary, a server that takes writes"),
        (no_rights, f"give the user all rights on schema {SCHEMA} and its tables, or the right to create the schema"),
        (no_table, f"the tables in schema {SCHEMA} were changed: restore them"),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_change_that_cannot_be_stored_is_503_and_not_made(
    one: Process,
    bank: str,
    postgresql: PostgreSQL,
    trouble: Callable[[PostgreSQL, str], AbstractContextManager[None]],
    help_text: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await one.control("PUT", "settings", {"progression": "manual"}, bank=bank)
    before = await one.control("GET", "state", bank=bank)
    with trouble(postgresql, name_of(one.url)):
        answer = await one.control("PUT", "settings", {"progression": "time"}, bank=bank, status=503)
        (message,) = answer["tppMessages"]
        assert message["code"] == "SYSTEM_ERROR"
        assert help_text in message["text"]
        assert (await one.send(Request("GET", "/health", HEADERS))).status == 200
    while (await one.send(Request("GET", "/ready", HEADERS))).status != 200:
        await asyncio.sleep(0.01)
    assert await one.control("GET", "state", bank=bank) == before
    await one.control("PUT", "settings", {"progression": "time"}, bank=bank)
    assert (await one.control("GET", "settings", bank=bank))["progression"] == "time"
    assert not [record for record in caplog.records if record.exc_info]


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A folder of the server's user on a file system of its own; skips where that cannot be mounted."""
    with own_folder() as folder, ExitStack() as mounted:
        owner = folder.stat()
        options = f"size={megabytes}m,uid={owner.st_uid},gid={owner.st_gid},mode=700"
        mount = shutil.which("mount")
        if os.getuid() != 0 or mount is None:
            pytest.skip("only root mounts file systems")
        done = subprocess.run(
            [mount, "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True
        )
        if done.returncode != 0:
            pytest.skip(f"a file system cannot be mounted: {done.stderr.strip()}")
        mounted.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)
        yield folder


def fill(file: Path) -> None:
    """Write a file until its disk has no room."""
    with suppress(OSError), file.open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(1 << 16))


def test_a_disk_that_fills_up_loses_nothing(tmp_path: Path, postgresql: PostgreSQL) -> None:
    """With a real one: the tables lie on a small disk, which another file fills."""
    url = postgresql.database()
    with small_disk(24) as disk, ExitStack() as ending:
        ending.callback(postgresql.drop, url)
        with postgresql.admin() as admin:
            admin.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
            admin.execute(f"ALTER DATABASE {name_of(url)} SET default_tablespace = small")
            admin.execute("GRANT CREATE ON TABLESPACE small TO PUBLIC")
        ending.callback(lambda: postgresql.admin().execute("DROP TABLESPACE small"))
        ending.callback(postgresql.drop, url)
        running = Node("node", tmp_path / "node", ("--store", url)).start()
        ending.callback(running.kill)
        control(running.url, "PUT", "settings", {"progression": "manual"})
        filler = disk / "filler"
        fill(filler)
        names = []
        status = 200
        for number in range(200):  # until the last page of the tables is full
            status, _ = ask(running.url, "PUT", f"/_emulator/snapshots/s{number}")
            if status >= 500:
                break
            names.append(f"s{number}")
        assert status == 503
        eventually(lambda: "make room on the server" in running.log())  # a renewal of the lease may tell first
        filler.unlink()
        control(running.url, "PUT", "snapshots/last")
        stored = {one["name"] for one in control(running.url, "GET", "snapshots")["snapshots"]}
        assert stored == {*names, "last"}
        assert run(["state", "check", "--store", url]) == 0
