"""Who is the home of a bank: leases in the database, each with an epoch.

A bank has one home at a time, the process that has its documents in memory and answers for it. A home holds a lease of
LASTS seconds in the bank's row, and renews it each second; taking one raises `epoch`. PATIENCE (homes.py) and UNKNOWN
(log.py) are longer than LASTS; the times are in postgresql.md, too.

    a row is                becomes   by
    free: `until` is past   held      `take`: epoch + 1 (`locate` in homes.py, for a request or an orphan)
    held                    held      `renew`: `until`; `take_again`: `until`, epoch + 1 (log.py)
    held                    free      `give_back`, which leaves `home` if the bank is active; DELETE; time
`orphans` are free rows that still name a home.

    what fails     consequence
    `take`         nothing is changed; the request gets 503
    `renew`        tried each second; after `until` answers are thrown away; a bank that it does not return is dropped
    `give_back`    the lease is forgotten here already, and runs out; request log and counters of the bank are lost
    `take_again`   tried for UNKNOWN seconds (log.py); then the bank is dropped

Only the clock of the database decides who may take a lease. A process measures nothing but how long ago it *began* its
last renewal, with a clock that does not stand still while the machine is suspended, and takes MARGIN off. So it stops
to answer before anybody else may begin, and wrong clocks of the processes do no harm. Why no two homes answer:

- It is stopped (SIGSTOP, a suspended machine), or its renewals do not arrive. It looks at `Lease.valid` after an answer
  was computed and before it leaves. If the lease was valid then, the answer was true at that moment, which lies between
  request and answer; else it is thrown away, and the request is passed on.
- It is stopped before the commit of a change. The commit names the epoch, and does nothing if another process has taken
  the bank since; the home drops the bank.
- It is stopped after the commit. The change was stored while it was the home: whoever takes the bank loads it.
- A commit is under way while another process takes the bank. Both want the row: either the commit is first, and what it
  stored is loaded by the other, or it finds another epoch. Who waits for it hears which, also where the home has lost
  the bank meanwhile: what was carried out is not passed on.
- A commit is lost on its way and executed later. Whoever wants to know its outcome takes the lease again, which raises
  the epoch: what comes later finds another one.
- It deletes a bank, which makes the row free before it hears of that. From before the statement is sent it does not
  answer for the bank (`Lease.deleting`), unless that is known to have failed.
- It is killed. Its lease runs out; others look each second for leases that have, and take the bank over.
- The clock of the database is set, or a standby with another clock takes over. As long as it is not more than MARGIN
  ahead, nothing; beyond that two homes could *read* for the rest. Writes are right all the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from emulator.store.postgres.connection import LOADING, Server, StoredDataDamaged

LASTS = 3.0  # seconds of the database's clock
MARGIN = 0.5  # seconds
ASKED = 0.5  # seconds for which an answer to `is_home` is used

# Seconds since some moment. Linux's monotonic clock stands still while the machine is suspended, this one does not;
# elsewhere it is the other way.
elapsed = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

_UNTIL = f"now() + interval '{LASTS:g} seconds'"
_TAKE = (
    "WITH free AS (SELECT name FROM {schema}.bank"
    " WHERE name = %s AND (until < now() OR home = %s) AND (sequence > 0 OR %s) FOR UPDATE), taken AS ("
    f" UPDATE {{schema}}.bank b SET home = %s, address = %s, epoch = epoch + 1, until = {_UNTIL}"
    " FROM free WHERE b.name = free.name RETURNING epoch, sequence, checkpoint, written, made)"
    " SELECT true, NULL, NULL, epoch, sequence, checkpoint, written, made FROM taken UNION ALL"
    " SELECT false, CASE WHEN until < now() THEN NULL ELSE address END, home, epoch, sequence, checkpoint, written,"
    " made FROM {schema}.bank WHERE name = %s AND NOT EXISTS (SELECT FROM taken)"
)
_MAKE = "INSERT INTO {schema}.bank (name) VALUES (%s) ON CONFLICT DO NOTHING"
_NAMED = "name IN (SELECT json_array_elements_text(%s::json))"
_RENEW = f"UPDATE {{schema}}.bank SET until = {_UNTIL} WHERE home = %s AND {_NAMED} RETURNING name, epoch"
_RETAKE = (
    f"UPDATE {{schema}}.bank SET epoch = epoch + 1, until = {_UNTIL} WHERE home = %s AND {_NAMED}"
    " RETURNING name, epoch, sequence"
)
_GIVE_BACK = (
    "UPDATE {schema}.bank b SET until = now() - interval '1 microsecond',"
    " memory = coalesce(r.memory, b.memory),"
    " home = CASE WHEN r.active THEN b.home END"
    " FROM unnest(%s::text[], %s::bigint[], %s::boolean[], %b::bytea[]) r (name, epoch, active, memory)"
    " WHERE b.name = r.name AND b.epoch = r.epoch"
)
_MEMORY = "SELECT memory FROM {schema}.bank WHERE name = %s AND epoch = %s AND memory IS NOT NULL"
_FORGET = "UPDATE {schema}.bank SET memory = NULL WHERE name = %s AND epoch = %s"
_IS_HOME = "SELECT 1 FROM {schema}.bank WHERE name = %s AND home = %s AND until > now()"
_ORPHANS = (
    "SELECT name FROM {schema}.bank WHERE home IS NOT NULL AND until < now() AND sequence > 0"
    " ORDER BY random() LIMIT %s"
)


@dataclass(slots=True, eq=False)
class Lease:
    """The right of this process to be the home of a bank; `until`: on the clock of `elapsed`, margin taken off.

    As the bank was taken: `sequence`: its last change, 0 for a bank that does not exist; `written`: real time of it in
    microseconds; `made`: how often a bank of this name was deleted; `damage`: why it cannot be loaded.
    """

    name: str
    until: float
    epoch: int
    sequence: int
    checkpoint: int
    written: int
    made: int
    damage: StoredDataDamaged | None = None
    deleting: bool = False  # the bank is being deleted, and may be gone: any other process may say so

    @property
    def replaces(self) -> bool:
        """Whether something may be stored of another bank of this name: one that is damaged, or was deleted."""
        return self.damage is not None or (not self.sequence and self.made > 0)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to load: the bank does not exist yet, or is damaged."""
        return self.damage is not None or not self.sequence

    @property
    def valid(self) -> bool:
        """Whether no other process can be the home."""
        return not self.deleting and elapsed() < self.until


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the home of a bank is, by its address and id; None: nobody. Without an address the bank does not exist."""

    address: str | None
    home: str | None


class Leases:
    """The leases of one process, which is reached at `address` by the others. Methods raise StoreUnreachable."""

    def __init__(self, server: Server, home: str, address: str) -> None:
        self._server = server
        self.home = home
        self.address = address
        self.here = Whereabouts(address, home)
        self.held: dict[str, Lease] = {}
        self._asking: dict[tuple[str, str], asyncio.Task[list[Any]]] = {}  # is_home

    async def take(self, name: str, *, new: bool = False) -> Lease | Whereabouts:
        """Become the home of a bank that has none; `new`: also of one that does not exist, to create it."""
        began = elapsed()
        if new:
            await self._server.rows(_MAKE, name)
        while rows := await self._server.rows(_TAKE, name, self.home, new, self.home, self.address, name):
            taken, address, home, *as_taken = rows[0]
            if taken:
                lease = self.held[name] = Lease(name, began + LASTS - MARGIN, *as_taken)
                return lease
            exists = as_taken[1] > 0
            if address is not None or not (exists or new):
                return Whereabouts(address, home)
            # another process has taken it just now: the statement has seen the row as it was before
        return Whereabouts(None, None)

    async def renew(self) -> list[str]:
        """Renew all leases; the banks that are lost."""
        asked, began = dict(self.held), elapsed()
        if not asked:
            return []
        rows = await self._server.rows(_RENEW, self.home, orjson.dumps(list(asked)).decode())
        epochs: dict[str, int] = dict(rows)
        for name, lease in asked.items():
            if epochs.get(name) == lease.epoch:
                lease.until = max(lease.until, began + LASTS - MARGIN)
        # one that was taken again meanwhile has another epoch, which the next renewal finds
        return [name for name, lease in asked.items() if self.held.get(name) is lease and name not in epochs]

    async def take_again(self, names: Iterable[str]) -> dict[str, int]:
        """Raise the epoch of banks whose last commit has an unknown outcome; the last change of those still held."""
        asked = [name for name in names if name in self.held]
        rows = await self._server.rows(_RETAKE, self.home, orjson.dumps(asked).decode(), within=2.0)
        for name, epoch, _ in rows:
            if (lease := self.held.get(name)) is not None:  # else it was dropped meanwhile
                lease.epoch = max(lease.epoch, epoch)  # or even taken again after this
        return {name: sequence for name, _, sequence in rows}

    async def memory(self, lease: Lease) -> bytes | None:
        """What the last home of a bank has left for this one alone."""
        rows = await self._server.rows(_MEMORY, lease.name, lease.epoch, within=LOADING)
        if not rows:
            return None
        await self._server.rows(_FORGET, lease.name, lease.epoch)
        memory: bytes = rows[0][0]
        return memory

    async def give_back(self, left: Mapping[str, tuple[bytes | None, bool]]) -> None:
        """End these leases, with what the next home is to have in memory, and whether the bank is active: it is then
        taken by another process although nobody asks for it. None: what an earlier home has left stays.
        """
        ended = []
        for name, (memory, active) in left.items():
            if (lease := self.held.pop(name, None)) is not None:
                lease.until = 0.0  # from now on another process may answer
                ended.append((name, lease.epoch, active, memory))
        if ended:
            await self._server.rows(_GIVE_BACK, *map(list, zip(*ended, strict=True)))

    async def is_home(self, name: str, home: str) -> bool:
        """Whether another process is the home of a bank.

        All who wait for that home ask together, once in ASKED seconds: their questions would fill a slow line.
        """
        asked = name, home
        if asked not in self._asking:
            self._asking[asked] = asyncio.get_running_loop().create_task(self._server.rows(_IS_HOME, name, home))
            self._asking[asked].add_done_callback(lambda asking: self._answered(asked, asking))
        return bool(await asyncio.shield(self._asking[asked]))

    def _answered(self, asked: tuple[str, str], asking: asyncio.Task[list[Any]]) -> None:
        asyncio.get_running_loop().call_later(ASKED, self._asking.pop, asked)
        if not asking.cancelled():
            asking.exception()  # perhaps nobody waits for it any more

    async def orphans(self, most: int) -> list[str]:
        """Some banks whose home is gone without having given them back."""
        return [name for (name,) in await self._server.rows(_ORPHANS, most)]
