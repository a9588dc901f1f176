"""A bank that is broken on purpose: `python -m tests.postgres.faulty FAULT PORT serve ...`; the checker must find each.

Nothing of this is in the program: the launcher replaces methods and statements before it starts it. PORT is where the
other processes are told to reach this one, so that something can stand between them; FAULT may be `none`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from emulator.assemble.homes import Homes
from emulator.bank import snapshots
from emulator.bank.payment import progression
from emulator.cli.main import run
from emulator.control import interface
from emulator.control.operations import scenarios
from emulator.store.postgres import leases, log
from emulator.store.postgres.leases import Lease, Leases
from emulator.store.postgres.log import Commits, PostgresLog

LATE = 1.5  # seconds


def trusting_its_lease() -> None:
    """A process looks at its lease and at nothing else, and hears late of a loss: of a renewal, of a refused commit."""
    lost, renew = Homes._lost, Leases.renew

    async def late(self: Leases) -> list[str]:
        gone = await renew(self)
        if gone:
            await asyncio.sleep(LATE)
        return gone

    def lost_later(self: Homes, owner: PostgresLog) -> None:
        asyncio.get_running_loop().call_later(LATE, lost, self, owner)

    Leases.renew = late  # type: ignore[method-assign]
    Homes._lost = lost_later  # type: ignore[method-assign]
    PostgresLog.owned = property(lambda self: self.lease.valid)  # type: ignore[assignment, method-assign]


def stale_read() -> None:
    """An answer leaves although the lease is over."""
    trusting_its_lease()
    Lease.valid = property(lambda self: True)  # type: ignore[assignment, method-assign]


def slow_clock() -> None:
    """The clock of each process goes at a fifth of the pace."""
    trusting_its_lease()
    elapsed = leases.elapsed
    began = elapsed()
    leases.elapsed = lambda: began + (elapsed() - began) / 5


def append_without_epoch() -> None:
    """A commit does not look who the home is."""
    stale_read()
    log._COMMIT_ONE = (
        "WITH advanced AS (UPDATE {schema}.bank SET sequence = greatest(sequence, %s), written = greatest(written, %s)"
        " WHERE name = %s AND %s::bigint + %s::bigint > 0 RETURNING name, sequence)"
        " INSERT INTO {schema}.change (bank, sequence, body) SELECT name, sequence, %b FROM advanced"
        " ON CONFLICT (bank, sequence) DO UPDATE SET body = excluded.body RETURNING bank"
    )
    log._COMMIT = (
        log._COMMIT.replace(" AND b.epoch = v.epoch AND b.sequence = v.first - 1", "")
        .replace("SET sequence = v.last", "SET sequence = greatest(b.sequence, v.last)")
        .replace("JOIN advanced a ON a.name = c.bank)", "JOIN advanced a ON a.name = c.bank ON CONFLICT DO NOTHING)")
    )


def answer_before_the_commit() -> None:
    """Answers leave while the commit is still under way."""
    store = Commits._store

    async def slow(self: Commits, batch: Any) -> None:
        await asyncio.sleep(0.2)
        await store(self, batch)

    Commits._store = slow  # type: ignore[method-assign]
    PostgresLog.sync_needed = False  # type: ignore[assignment, method-assign]


def old_home() -> None:
    """A process goes on to pass requests to a home that is none any more, and that carries them out."""
    stale_read()

    async def heedless(self: Homes) -> None:
        await self.leases.renew()

    Homes.renew = heedless  # type: ignore[method-assign]
    Homes._lost = lambda self, owner: None  # type: ignore[method-assign]


FAULTS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "stale-read": stale_read,
    "slow-clock": slow_clock,
    "append-without-epoch": append_without_epoch,
    "answer-before-the-commit": answer_before_the_commit,
    "old-home": old_home,
}


def advertised_at(port: int) -> None:
    """Tell the others this port."""
    begin = Leases.__init__

    def init(self: Leases, server: Any, home: str, _: str) -> None:
        begin(self, server, home, f"127.0.0.1:{port}")

    Leases.__init__ = init  # type: ignore[method-assign]


def hasty() -> None:
    """What takes steps, threads and files of its own with much data does so with little."""
    for module, limits in {
        snapshots: {"LARGE": 20_000},
        interface: {"_LARGE": 200},
        scenarios: {"LARGE": 200},
        progression: {"PIECE": 2},
        # a bank of 30 MB, as ten minutes make it, then still loads in a second
        log: {"CHECKPOINT": 100_000, "PART": 100_000, "AT_ONCE": 4},
    }.items():
        for name, value in limits.items():
            if not hasattr(module, name):
                raise AttributeError(name)
            setattr(module, name, value)


if __name__ == "__main__":
    hasty()
    FAULTS[sys.argv[1]]()
    advertised_at(int(sys.argv[2]))
    sys.exit(run(sys.argv[3:]))
