"""The SQL of turns and checkpoints; `{schema}` stands for the quoted name of the schema."""

from __future__ import annotations

from collections.abc import Iterable

from emulator.store.postgres.connection import ANSWERING

IDLE = 2.0  # seconds between two steps of a turn, after which the server ends it: a stopped process blocks no other
BUSY = 120.0  # the same of a turn that is known to work for long, or whose commit is large


def _limits(idle: float, statement: float) -> str:
    return (
        f"SELECT set_config('idle_in_transaction_session_timeout', '{idle * 1000:.0f}', true),"
        f" set_config('statement_timeout', '{statement * 1000:.0f}', true)"
    )


LIMITS = _limits(IDLE, ANSWERING - 0.5)
LIMITS_BUSY = _limits(BUSY, BUSY)
LOCK = "SELECT name FROM {schema}.bank WHERE name IN ({names}) ORDER BY name FOR UPDATE"
# one statement, so that head and tail are of one moment, the tail without what takes long to apply; with numbers for
# exchanges, drawn once
HEADS = (
    "WITH drawn AS MATERIALIZED (SELECT array_agg(nextval('{schema}.exchange_number')) AS numbers"
    " FROM generate_series(1, {numbers}))"
    " SELECT b.name, b.incarnation, b.sequence, b.turn, b.checkpoint, b.written, b.counted,"
    " CASE WHEN b.counted = k.counted AND b.incarnation = k.incarnation THEN NULL ELSE b.counts END,"
    " c.sequence, c.turn, CASE WHEN c.sequence > k.sequence AND sum(octet_length(c.body))"
    " FILTER (WHERE c.sequence > k.sequence) OVER (PARTITION BY b.name ORDER BY c.sequence) < {most} THEN c.body END,"
    " CASE WHEN c.sequence > k.sequence THEN c.events END, drawn.numbers"
    " FROM drawn, (VALUES {positions}) k (name, incarnation, sequence, counted)"
    " JOIN {schema}.bank b ON b.name = k.name"
    " LEFT JOIN {schema}.change c ON c.bank = k.name AND c.sequence >= k.sequence ORDER BY b.name, c.sequence"
)
# Exchanges: their bodies, one behind the other, and a JSON array that has the rest. An `id` that is not positive stands
# for the next number. One of a bank that is deleted meanwhile is not stored. Arrays cost psycopg much more.
_NUMBERED = (
    "numbered AS MATERIALIZED (SELECT e.bank, e.incarnation, e.place,"
    " substring(%b::bytea FROM e.start FOR e.size) AS body,"
    " CASE WHEN e.id > 0 THEN e.id ELSE nextval('{schema}.exchange_number') END AS id FROM json_to_recordset(%s::json)"
    " e (bank text, incarnation bigint, id bigint, place integer, start integer, size integer)"
)
_STORED = (
    "stored AS (INSERT INTO {schema}.exchange (bank, id, body) SELECT n.bank, n.id, n.body FROM numbered n"
    " JOIN {schema}.bank b ON b.name = n.bank AND b.incarnation = n.incarnation)"
)
_NUMBERS = "ARRAY(SELECT id FROM numbered ORDER BY place)"
EXCHANGES = f"{_NUMBERED}), {_STORED}"
STORE = f"WITH {EXCHANGES} SELECT '', false, {_NUMBERS}"
# exchanges may be lost; a position that changes between two statements would be seen by neither
READ = (
    "WITH unsynced AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),"
    " stale AS (SELECT FROM json_to_recordset(%s::json)"
    " k (name text, incarnation bigint, sequence bigint, turn uuid, counted bigint)"
    " LEFT JOIN {schema}.bank b ON b.name = k.name"
    " WHERE (b.incarnation, b.sequence, b.turn, b.counted)"
    " IS DISTINCT FROM (k.incarnation, k.sequence, k.turn, k.counted)),"
    f" {_NUMBERED}, unsynced WHERE NOT EXISTS (SELECT FROM stale)), {_STORED}"
    f" SELECT NOT EXISTS (SELECT FROM stale), {_NUMBERS}"
)
HEAD = "SELECT incarnation, sequence, turn, checkpoint, written, counted, counts FROM {schema}.bank WHERE name = %s"
PARTS = "SELECT body FROM {schema}.checkpoint WHERE bank = %s AND sequence = %s ORDER BY part"
# of those up to the checkpoint only the events
CHANGES = (
    "SELECT c.sequence, c.turn, CASE WHEN c.sequence > b.checkpoint THEN c.body ELSE '' END, c.events"
    " FROM {schema}.change c JOIN {schema}.bank b ON b.name = c.bank"
    " WHERE c.bank = %s AND c.sequence > least(b.checkpoint, %s::bigint) ORDER BY c.sequence"
)
MAKE = "INSERT INTO {schema}.bank (name, incarnation, sequence, turn) VALUES (%s, %s, 0, %s)"
APPEND = "INSERT INTO {schema}.change (bank, sequence, turn, body, events) VALUES (%s, %s, %s, %b, %b)"
# whoever brings the size over the limit writes the checkpoint
ADVANCE = (
    "advanced AS (UPDATE {schema}.bank b SET sequence = v.sequence,"
    " turn = CASE WHEN v.changed THEN v.turn ELSE b.turn END,"
    " size = CASE WHEN b.size + v.size < v.most THEN b.size + v.size ELSE 0 END,"
    " written = greatest(b.written, v.written), counts = coalesce(v.counts, b.counts),"
    " counted = b.counted + CASE WHEN v.counts IS NULL THEN 0 ELSE 1 END"
    " FROM (SELECT %s::bigint AS sequence, %s::uuid AS turn, %s::boolean AS changed, %s::bigint AS size,"
    " %s::bigint AS most, %s::bigint AS written, %b::bytea AS counts, %s::text AS name) v WHERE b.name = v.name"
    " RETURNING b.name, b.size = 0 AND v.size > 0 AS due)"
)
ADVANCED = f"SELECT name, due, {_NUMBERS} FROM advanced"  # with EXCHANGES
ADVANCED_ONLY = "SELECT name, due, '{}'::bigint[] FROM advanced"
TRIM = "DELETE FROM {schema}.change WHERE bank = %s AND sequence <= %s"
SAVE_SNAPSHOT = (
    "INSERT INTO {schema}.snapshot (bank, name, created, body) VALUES (%s, %s, %s, %b)"
    " ON CONFLICT (bank, name) DO UPDATE SET created = excluded.created, body = excluded.body"
)
SNAPSHOT = "SELECT created, body FROM {schema}.snapshot WHERE bank = %s AND name = %s"
NAME_SNAPSHOT = "UPDATE {schema}.snapshot SET name = %s, created = %s WHERE bank = %s AND name = %s"
# of processes that have ended since
DROP_STAGED = "DELETE FROM {schema}.snapshot WHERE name ~ '^[.]' AND created < now() - interval '1 day'"
# A content is staged as a checkpoint with a negative sequence. It becomes that of the change before the one that refers
# to it, of which there may be another already; where it is missing the column that must not be null makes this fail.
CHECKPOINT_PART = "INSERT INTO {schema}.checkpoint (bank, sequence, part, body) VALUES (%s, %s, %s, %b)"
DROP_STAGED_CONTENTS = "DELETE FROM {schema}.checkpoint WHERE sequence < 0 AND sequence > %s"
PLACE_CONTENT = (
    "DELETE FROM {schema}.checkpoint WHERE bank = %s AND sequence = %s",
    "UPDATE {schema}.checkpoint SET sequence = %s WHERE bank = %s AND sequence = %s",
    "UPDATE {schema}.bank b SET checkpoint ="
    " (SELECT c.sequence FROM {schema}.checkpoint c WHERE c.bank = b.name AND c.sequence = %s AND c.part = 0)"
    " WHERE b.name = %s",
)
DROP_CHECKPOINTS = (
    "DELETE FROM {schema}.checkpoint WHERE bank = %s AND sequence >= 0"
    " AND sequence < (SELECT checkpoint FROM {schema}.bank WHERE name = %s)"
)
DROP_SNAPSHOT = "DELETE FROM {schema}.snapshot WHERE bank = %s AND name = %s"
KEEP_SECRET = (
    "INSERT INTO {schema}.secret (kind, name, version, body) VALUES (%s, %s, %s, %b)"
    " ON CONFLICT (kind, name) DO UPDATE SET version = excluded.version, body = excluded.body"
)


def together(parts: Iterable[str], statement: str) -> str:
    """One statement that also runs others, each `name AS (...)`: what a turn writes costs by statement."""
    return f"WITH {', '.join(parts)} {statement}"
