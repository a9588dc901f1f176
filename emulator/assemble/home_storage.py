"""The shared store as the registry sees it: the banks that `homes.py` has taken, and all others by name."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Set
from contextlib import ExitStack, contextmanager
from functools import partial

from emulator.assemble.homes import LOST, NOWHERE, Homes
from emulator.assemble.storage import New, Storage
from emulator.bank.kinds import KINDS
from emulator.bank.threads import in_thread
from emulator.store import Documents, StoreLost, StoreUnwritable, StoreVoid
from emulator.store.postgres.connection import LOADING, StoreUnreachable, unwritable
from emulator.store.postgres.leases import Lease
from emulator.store.postgres.log import DELETE, Content, PostgresLog, parts_of


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
        content = Content(name, partial(parts_of, homes.server, name))
        documents = Documents(PostgresLog(lease, homes.commits, content), KINDS)
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

        def work() -> None:
            deletion = homes.server.rows(DELETE, name, lease.epoch, within=LOADING, again=False)
            try:
                if not homes.server.submit(deletion).result():
                    raise StoreLost(LOST)
            except StoreUnreachable as error:
                raise unwritable(error) from error

        try:
            yield from in_thread(work, lasts=True)
        except BaseException as error:
            lease.deleting = isinstance(error, StoreVoid) or not isinstance(error, StoreUnwritable)
            if lease.deleting and homes.leases.held.get(name) is lease:
                homes.drop(name)
            raise
        if homes.leases.held.get(name) is lease:  # else it was created again
            homes.known.pop(name, None)
            homes.leases.held.pop(name)
