"""The servers that the other tests rely on: they start, stop, lose nothing that was committed, and take over."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres.server import PostgreSQL, own_folder


def test_a_database_belongs_to_its_role_alone(postgresql: PostgreSQL, store_url: str) -> None:
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA own")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE ROLE other")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgresql.url(store_url.rpartition("/")[2], password="wrong"))


def test_what_is_committed_outlives_a_crash(postgresql: PostgreSQL, store_url: str) -> None:
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE number (value int)")
        connection.execute("INSERT INTO number VALUES (1)")
        postgresql.crash()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    postgresql.start()
    with psycopg.connect(store_url) as connection:
        assert connection.execute("SELECT value FROM number").fetchall() == [(1,)]


@pytest.mark.crash
def test_a_standby_has_every_commit_when_it_takes_over(postgresql: PostgreSQL) -> None:
    with own_folder() as folder, own_folder() as other:
        primary = PostgreSQL.create(folder)
        copy = primary.standby(other)
        try:
            url = primary.database()
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CREATE TABLE number (value int)")
                connection.execute("INSERT INTO number VALUES (1)")
            primary.crash()
            copy.promote()
            with psycopg.connect(copy.url(url.rpartition("/")[2]), autocommit=True) as connection:
                assert connection.execute("SELECT value FROM number").fetchall() == [(1,)]
                connection.execute("INSERT INTO number VALUES (2)")
        finally:
            primary.crash()
            copy.crash()
