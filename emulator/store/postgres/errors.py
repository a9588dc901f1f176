"""Why a PostgreSQL cannot be used: one line with the cause and a remedy.

An error of a statement has a SQLSTATE. One of connecting has only the server's text, which may be in its own language;
where that is not recognized, the advice is the general one.
"""

from __future__ import annotations

import psycopg

from emulator.store.errors import StoreShared


class StoreUnreachable(StoreShared):
    """The server does not answer, or does not do what is asked, at the moment."""


class StoreUnusable(StoreShared):
    """The server answers, and the store cannot be used as it was named: one line with a remedy (exit status 2)."""


class StoreLayoutNewer(StoreShared):
    """The tables were made by a later version of this program (exit status 3)."""

    unreadable = True


class StoredDataDamaged(StoreShared):
    """`what` the tables hold cannot be read, for this `reason` (exit status 3)."""

    unreadable = True

    def __init__(self, what: str, reason: object) -> None:
        super().__init__(f"{what} is damaged: {reason}: restore the tables from a backup of PostgreSQL")
        self.problem = f"{what} is damaged: {reason}"


_ADVICE: tuple[tuple[frozenset[str], tuple[str, ...], str], ...] = (
    (
        frozenset({"42501"}),
        (),
        "give the user all rights on schema {schema} and its tables, or the right to create the schema",
    ),
    (frozenset({"25006"}), ("read-only",), "name the primary, a server that takes writes"),
    (frozenset({"53100"}), (), "make room on the server"),
    (frozenset({"57P03"}), ("the database system is",), "try again when PostgreSQL has started"),
    (frozenset({"53300"}), ("too many", "connection slots"), "raise the limit of connections, or end others"),
    (frozenset({"42P01", "42703", "42883"}), (), "the tables in schema {schema} were changed: restore them"),
    (frozenset(), ("timestamp too",), "a time in schema {schema} is damaged: restore it"),
    (frozenset(), ("SSL", "certificate"), "check sslmode in the address"),
    (frozenset(), ("resolve",), "check host and port in the address"),
    (frozenset(), ("invalid",), "check the address"),
    (frozenset({"28P01", "28000"}), ("password", "authentication", "role"), "check user and password"),
    (frozenset({"3D000"}), ("database",), "create the database, or name another one"),
)
"""SQLSTATEs, pieces of a text without one, and what helps; the first that fits."""

_GENERAL = "check that PostgreSQL runs and can be reached from here"


def line_of(error: BaseException) -> str:
    """The first line of what psycopg says."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def _advised(error: psycopg.Error, schema: str) -> str:
    line = line_of(error)
    # the address of the server, which is the user's own, must not be mistaken for a reason
    reason = line.rpartition("failed: ")[2]
    for states, pieces, advice in _ADVICE:
        if error.sqlstate in states if error.sqlstate is not None else any(piece in reason for piece in pieces):
            return f"{line}: {advice.format(schema=schema)}"
    return f"{line}: {_GENERAL}"


def unusable(error: psycopg.Error, schema: str) -> StoreUnusable:
    """Why a start or a command cannot use the store."""
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        text = f"this is no address of a PostgreSQL ({line_of(error)}): postgresql://user:password@host/database"
        return StoreUnusable(text)
    return StoreUnusable(_advised(error, schema))


def unreachable(error: psycopg.Error, schema: str) -> StoreUnreachable:
    """Why a turn cannot use the store."""
    return StoreUnreachable(f"PostgreSQL: {_advised(error, schema)}")
