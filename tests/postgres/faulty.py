"""A bank that is broken on purpose: `python -m tests.postgres.faulty FAULT serve ...`; the checker must find each.

Nothing of this is in the program: the launcher replaces methods and statements before it starts it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from emulator.assemble.shared.running import TurnRunner
from emulator.assemble.shared.turns import SharedTurns

from emulator.cli.main import run
from emulator.store.postgres import Committed, database, statements

NAP = (
    "INSERT INTO {schema}.change (bank, sequence, turn, body, events)"
    " SELECT %s::text, %s::bigint, %s::uuid, %b::bytea, %b::bytea FROM (SELECT pg_sleep(0.2)) nap"
)


def stale_read() -> None:
    """A read does not look at what others have changed."""
    whole = TurnRunner._caught_up

    async def caught_up(self: Any, *fetched: Any) -> bool:
        _, _, needs, names, _ = fetched
        if not needs.write and names and names <= self._registry.open_banks.keys():
            return True
        return await whole(self, *fetched)

    TurnRunner._caught_up = caught_up  # type: ignore[method-assign]
    statements.READ = statements.READ.replace("NOT EXISTS (SELECT FROM stale)", "true")


def skipped_lock() -> None:
    """Writers do not wait for each other, and who comes second does not notice."""
    statements.LOCK = statements.LOCK.replace(" FOR UPDATE", "")
    statements.APPEND += " ON CONFLICT DO NOTHING"
    # or the service would only say that changes are missing
    statements.ADVANCE = statements.ADVANCE.replace(
        "SET sequence = v.sequence", "SET sequence = greatest(b.sequence, v.sequence)"
    )


def lost_append() -> None:
    """Every hundredth change is not stored, though the head counts it."""
    statements.APPEND = (
        "INSERT INTO {schema}.change (bank, sequence, turn, body, events)"
        " SELECT * FROM (VALUES (%s::text, %s::bigint, %s::uuid, %b::bytea, %b::bytea))"
        " one (bank, sequence, turn, body, events) WHERE one.sequence %% 100 <> 0 OR one.bank = ''"
    )


def answer_before_the_commit() -> None:
    """Answers leave while the transaction is still under way."""
    statements.APPEND = NAP
    whole, begin, start = database.Database.commit, database.Database.begin, SharedTurns.start
    end = database.Database.end
    under_way: dict[Any, asyncio.Task[Any]] = {}
    serving = []

    def started(self: Any) -> None:
        serving.append(self)
        start(self)

    SharedTurns.start = started  # type: ignore[method-assign]

    async def commit(self: Any, work: Any) -> Committed:
        if not serving:
            return await whole(self, work)
        task = under_way[self] = asyncio.ensure_future(whole(self, work))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.sleep(0)
        return Committed([], None)

    async def begun(self: Any, *positions: Any, **options: Any) -> Any:
        if self in under_way:  # a connection does one thing at a time
            await asyncio.wait([under_way.pop(self)])
        return await begin(self, *positions, **options)

    async def ended(self: Any) -> None:
        task = under_way.get(self)
        if task is None or task.done() or task is asyncio.current_task():
            await end(self)

    database.Database.commit, database.Database.begin = commit, begun  # type: ignore[method-assign]
    database.Database.end = ended  # type: ignore[method-assign]


FAULTS: dict[str, Callable[[], None]] = {
    "stale-read": stale_read,
    "skipped-lock": skipped_lock,
    "lost-append": lost_append,
    "answer-before-the-commit": answer_before_the_commit,
}

if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
    sys.exit(run(sys.argv[2:]))
