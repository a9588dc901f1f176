"""The shared store as the registry sees it: the banks that `homes.py` has taken, all others by name, and snapshots."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

from emulator.assemble.homes import LOST, NOWHERE, Homes
from emulator.assemble.storage import New, Storage
from emulator.bank.bank import Bank
from emulator.bank.kinds import KINDS
from emulator.bank.snapshots import Snapshots
from emulator.bank.threads import in_thread
from emulator.store import Documents, Image, StoreDeleted, StoreLost, StoreUncertain, StoreUnwritable, StoreVoid
from emulator.store.postgres.leases import Lease
from emulator.store.postgres.log import DELETE, EMPTY, PostgresLog
from emulator.store.snapshot import image_from_bytes, snapshot_bytes

_SNAPSHOT = "SELECT body FROM {schema}.snapshot WHERE bank = %s AND name = %s"
_SAVE_SNAPSHOT = (
    "INSERT INTO {schema}.snapshot (bank, name, created, body)"
    " SELECT name, %s, %s, %b FROM {schema}.bank WHERE name = %s AND epoch = %s"
    " ON CONFLICT (bank, name) DO UPDATE SET created = excluded.created, body = excluded.body RETURNING 1"
)
# a bank that was deleted while its snapshot was written must not leave it to the next one of its name
_TAKE_SNAPSHOT_BACK = (
    "DELETE FROM {schema}.snapshot s WHERE bank = %s AND name = %s AND created = %s"
    " AND NOT EXISTS (SELECT FROM {schema}.bank b WHERE b.name = s.bank AND b.made = %s) RETURNING 1"
)
# not what the next home has saved: it waits for the row
_DROP_SNAPSHOTS = (
    "WITH own AS (SELECT name FROM {schema}.bank WHERE name = %s AND epoch = %s FOR UPDATE),"
    " gone AS (DELETE FROM {schema}.snapshot s USING own o WHERE s.bank = o.name AND s.name = ANY(%s))"
    " SELECT name FROM own"
)


def _execute(homes: Homes, statement: str, *values: object) -> None:
    """Have the store change something once, for a thread; StoreLost if it does not, as another process has the bank."""
    if not homes.server.rows_in_thread(statement, *values, again=False):
        raise StoreLost(LOST)


class ServerSnapshots(Snapshots):
    """The snapshots of a bank in the database."""

    stored = True

    def __init__(self, homes: Homes, lease: Lease) -> None:
        super().__init__(lease.snapshots)
        self._homes = homes
        self._lease = lease

    def _store(self, _bank: Bank, name: str, image: Image, created: datetime) -> Iterator[object]:
        yield from in_thread(lambda: self._write(name, image, created), lasts=True)

    def _write(self, name: str, image: Image, created: datetime) -> None:
        bank, content = self._lease.name, snapshot_bytes(image.rows)
        _execute(self._homes, _SAVE_SNAPSHOT, name, created, content, bank, self._lease.epoch)
        try:
            gone = self._homes.server.rows_in_thread(_TAKE_SNAPSHOT_BACK, bank, name, created, self._lease.made)
        except StoreUnwritable as error:
            raise StoreUncertain(f"the snapshot is stored: {error}") from error
        if gone:
            raise StoreLost(LOST)

    def _failed(self, error: BaseException) -> None:
        """Without knowing what is stored, look when the bank is asked for again. Its new epoch lets nothing come late.

        As with a commit: what is in memory must not be one thing, and what the next home loads another.
        """
        if isinstance(error, StoreUncertain) and self._homes.leases.held.get(self._lease.name) is self._lease:
            self._homes.drop(self._lease.name)

    def _drop(self, names: Sequence[str]) -> Iterator[object]:
        asked = self._lease.name, self._lease.epoch, list(names)
        try:
            yield from in_thread(lambda: _execute(self._homes, _DROP_SNAPSHOTS, *asked), lasts=True)
        except StoreLost:
            if self._lease.deleting:
                raise StoreDeleted("the bank is being deleted") from None
            raise

    def _read(self, name: str) -> Image:
        for (body,) in self._homes.server.rows_in_thread(_SNAPSHOT, self._lease.name, name):
            return image_from_bytes(bytes(body), KINDS, file=Path(name))
        raise LookupError(name)


class HomeStorage(Storage):
    """The store as the registry sees it: banks are taken and opened before a turn begins.

    A damaged bank stays as it is until it is deleted, or the first change of a new one is being stored.
    """

    opens_default = False
    confirms = True

    def __init__(self, homes: Homes) -> None:
        super().__init__()
        self._homes = homes

    def names(self) -> Set[str]:
        """Every bank, as of the last look."""
        return self._homes.known.keys()

    def has(self, name: str) -> bool:
        """Whether there was the bank at the last look."""
        return name in self._homes.known

    def home(self, name: str) -> str | None:
        return self._homes.known.get(name, NOWHERE).address

    def number(self, name: str) -> int:
        """How many banks of this name there were, this one included."""
        lease = self._homes.leases.held.get(name)
        return 1 if lease is None else lease.made + 1 + (lease.damage is not None)

    def _lease(self, name: str) -> Lease:
        lease = self._homes.leases.held.get(name)
        if lease is None:
            raise StoreLost(LOST)
        return lease

    def open(self, name: str) -> Documents:
        """It would be open if this process were its home, and it were not damaged."""
        raise self._lease(name).damage or StoreLost(LOST)

    @contextmanager
    def creating(self, name: str) -> Iterator[New]:
        """Empty documents, which are stored with their first changes."""
        homes, lease = self._homes, self._lease(name)
        documents = Documents(PostgresLog(lease, homes.commits, EMPTY), KINDS)
        with ExitStack() as undo:
            undo.callback(documents.discard)

            def place() -> None:
                homes.known[name] = homes.leases.here
                lease.made += lease.damage is not None  # as the store counts one that is replaced
                lease.sequence, lease.damage = documents.sequence, None
                undo.pop_all()

            yield documents, place

    def delete(self, name: str, _end: Callable[[], None]) -> Generator[object, None, None]:
        """Delete a bank of which this process is the home; it is so no more until that is known to have failed.

        `end` is not needed: the registry closes the bank after the last step, when it is known to be deleted.
        """
        homes = self._homes
        documents = homes.registry.documents(name)
        if documents is not None and documents.log.sync_needed:
            yield None  # its creation, perhaps, which would be carried out again if it were not stored before
        lease = self._lease(name)
        if not lease.empty and homes.registry.documents(name) is None:
            raise StoreLost(LOST)  # and taken again: it is being loaded
        lease.deleting = True
        try:
            yield from in_thread(lambda: _execute(homes, DELETE, name, lease.epoch), lasts=True)
        except BaseException as error:
            lease.deleting = isinstance(error, StoreVoid) or not isinstance(error, StoreUnwritable)
            if lease.deleting and homes.leases.held.get(name) is lease:
                homes.drop(name)
            raise
        if homes.leases.held.get(name) is lease:  # else it was created again
            homes.known.pop(name, None)
            homes.leases.held.pop(name)

    def snapshots(self, name: str) -> Snapshots:
        """The snapshots in the store; of a bank that is none, as for operations that need no bank, in memory."""
        lease = self._homes.leases.held.get(name)
        return Snapshots() if lease is None else ServerSnapshots(self._homes, lease)
