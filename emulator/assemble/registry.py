"""The banks of a process: the default one and those created by `PUT /_emulator/banks/{name}` (CONTRACT 9.6)."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Literal

from emulator.api.log import RequestLog
from emulator.api.operation import routes
from emulator.api.operations import table
from emulator.api.service import BankService
from emulator.assemble.folders import NAME, Folders
from emulator.assemble.signing import response_signer
from emulator.assemble.snapshots import FileSnapshots
from emulator.bank import fixtures, notifications
from emulator.bank.bank import Bank, Event
from emulator.bank.clock import LIVE, Beginning
from emulator.bank.errors import BankError
from emulator.bank.fixtures import PreparedFixture
from emulator.bank.kinds import BANK, KINDS
from emulator.bank.notification_targets import Host
from emulator.bank.settings import Settings
from emulator.bank.snapshots import Snapshots
from emulator.bank.threads import run_to_end
from emulator.ca import CertificateAuthority
from emulator.conformance.observer import Conformance
from emulator.control.operation import BankSpec
from emulator.scenario.rules import RuleSet
from emulator.scenario.transport import Transport
from emulator.store import (
    Documents,
    Store,
    StoreDamaged,
    StoreError,
    WriteGroup,
    discarded_on_failure,
    journal_of,
    memory_store,
    open_store,
)
from emulator.store.journal_log import Abandoned

logger = logging.getLogger(__name__)

DEFAULT = "default"
NAMED_BANK = re.compile(rf"/banks/({NAME.pattern})(?=/|$)")  # the prefix of its addresses
MTIME_GRAIN = 0.01  # seconds; the resolution of the modification time of a file
SHORT_JOURNAL = 1 << 20  # bytes; a start reads such a journal in milliseconds
COMPACTING_SHORT = 1.0  # seconds in which `close` compacts all short journals
COMPACTING = 8.0  # seconds in which `close` compacts the others; the process exits within 10 (CONTRACT 1)


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """The configuration of all banks of a process.

    `directory`: the folder of the banks, None for banks in memory; `fixtures`: the fixture of a new bank; `settings`
    and `begins`: the settings and the clock that a reset restores; `transport_of`: called by `BankRegistry.transport`.
    """

    directory: Path | None
    fixtures: str
    settings: Settings
    seed: int | None
    ids_form: str
    durability: Literal["process", "power"]
    authority: CertificateAuthority
    transport_of: Callable[[BankRegistry], Transport]
    begins: Beginning = LIVE
    notify_hosts: tuple[Host, ...] = ()
    idle_seconds: float = 0  # without a request, after which a named bank is closed; 0: never
    progress: Callable[[int, int], None] | None = None  # of loading documents: bytes read, bytes in all


class BankRegistry:
    """The banks by name."""

    default: BankService

    def __init__(self, config: RegistryConfig) -> None:
        self.group = WriteGroup()
        self.config = config
        self._created: Counter[str] = Counter()  # new banks by name
        self._folders: Folders | None = None
        if config.directory is not None:
            self._folders = Folders(config.directory, power=config.durability == "power")
        self._router = routes(table())
        self._open: dict[str, BankService] = {}
        self._watched: set[str] = set()
        self._used: dict[str, float] = {}  # when an open named bank was last used; least recently used first
        self._stores: dict[str, Store] = {}
        self._logged: dict[str, str] = {}
        self.on_open: Callable[[BankService], None] | None = None  # called with every bank that is opened later
        self._begin()

    def _begin(self) -> None:
        self.default = self.open(DEFAULT)
        if self._folders is not None:  # `open` has locked the directory
            self._folders.sweep()
            self._folders.sync()

    @property
    def power(self) -> bool:
        """Whether answered changes survive a power failure."""
        return self._folders is not None and self.config.durability == "power"

    def names(self) -> list[str]:
        """The names of all banks, including those of an earlier run; the default one first."""
        names = set(self._open)
        if self._folders is not None:
            names |= self._folders.names()
        return [DEFAULT, *sorted(names - {DEFAULT})]

    def exists(self, name: str) -> bool:
        """Whether there is a bank of this name."""
        return name in self._open or self._is_stored(name)

    def opened(self, name: str) -> BankService | None:
        """The bank with this name if it is open, else None."""
        return self._open.get(name)

    def find(self, name: str) -> BankService | None:
        """The bank with this name, or None; a stored one is opened.

        Raises SYSTEM_ERROR (503), with a remedy, if it cannot be opened.
        """
        service = self._open.get(name)
        if service is None and self._is_stored(name):
            try:
                service = self.open(name)
            except (StoreError, OSError) as error:
                raise self._closed(name, error) from error
        if self._used.pop(name, None) is not None:
            self._used[name] = monotonic()
        return service

    def _closed(self, name: str, error: Exception) -> BankError:
        """The error for a bank that cannot be opened; logged once, not at every request to it."""
        text = f"Bank {name} cannot be opened: {error}."
        if isinstance(error, StoreDamaged) and not error.intact:
            text += f" Replace or delete it (/_emulator/banks/{name}), or run state check --repair."
        if self._logged.get(name) != text:
            self._logged[name] = text
            logger.error("%s", text)
        return BankError("SYSTEM_ERROR", text, status=503)

    @contextmanager
    def without_damage(self, name: str) -> Iterator[None]:
        """A context in which a bank with damaged documents does not exist; it is put back if the block fails."""
        try:
            self.find(name)
        except BankError as refused:
            if self._folders is None or not isinstance(refused.__cause__, StoreDamaged):
                raise
        else:
            yield
            return
        aside = self._folders.put_aside(name, replaced=True)
        try:
            yield
        except BaseException:
            self._folders.place(aside, name)
            raise
        self._folders.drop(aside)

    def _is_stored(self, name: str) -> bool:
        return self._folders is not None and self._folders.has(name)

    def open(self, name: str) -> BankService:
        """Open the bank `name` with its stored documents, or with --fixtures if there are none."""
        with ExitStack() as undo:
            documents = self._documents(self.directory_of(name))
            undo.callback(documents.discard)
            service = self._service(name, documents)
            if not any(map(documents.count, KINDS)):  # partial documents of a repair are kept
                fixtures.make(service.bank, self.config.fixtures)
            elif name == DEFAULT:
                fixtures.remember_fixture(service.bank, self.config.fixtures)
            undo.pop_all()
        self._enter(name, service, documents)
        return service

    def _enter(self, name: str, service: BankService, documents: Store) -> None:
        documents.join(self.group)
        self._open[name], self._stores[name] = service, documents
        if name != DEFAULT:
            self._used[name] = monotonic()
        if self.on_open is not None:
            self.on_open(service)

    def documents(self, name: str = DEFAULT) -> Store | None:
        """The documents of an open bank."""
        return self._stores.get(name)

    def snapshots_of(self, name: str) -> Snapshots:
        """The snapshots of a bank, which are in its folder."""
        directory = self.directory_of(name)
        return Snapshots() if directory is None else FileSnapshots(directory / "snapshots", power=self.power)

    def _service(self, name: str, documents: Store, seed: int | None = None) -> BankService:
        """A bank with these documents; `seed`: that of a new bank, None for the default."""
        config = self.config
        bank = Bank(
            documents,
            name=name,
            # A relative link of a named bank would lead to the default bank (CONTRACT 15).
            defaults=config.settings if name == DEFAULT else replace(config.settings, links="absolute"),
            begins=config.begins,
            seed=self._seed(name, documents) if seed is None else seed,
            ids_form=config.ids_form,
            stream=self._stream(name, documents),
            notify_hosts=config.notify_hosts,
            watched=self._watched,
        )
        if (log := journal_of(documents)) is not None and log.written:
            bank.clock.not_before(log.written + MTIME_GRAIN)
        return BankService(
            bank,
            router=self._router,
            rules=RuleSet(bank),
            trusted_ca=lambda: config.authority.certificate,
            signer=response_signer(config.authority.answer_credentials),
            observer=self._observer(bank),
            log=self._request_log(bank),
        )

    def _observer(self, bank: Bank) -> Conformance:
        return Conformance(bank)

    def _request_log(self, _bank: Bank) -> RequestLog:
        return RequestLog()

    def _seed(self, name: str, documents: Store) -> int | None:
        """The seed of a bank: --seed for the default bank; a named bank keeps the seed of its creation."""
        seed = self.config.seed
        if name == DEFAULT and seed is not None:
            return seed
        origin = BANK.read(documents)
        return seed if origin is None else origin.get("seed", seed)

    def _stream(self, name: str, documents: Store) -> str:
        """The name of the random stream of a bank; a new bank never gets that of a deleted bank of its name."""
        origin = BANK.read(documents)
        if origin is not None:
            return origin.get("stream", name)
        number = self._created[name] = self._created[name] + 1
        return name if number == 1 else f"{name}:{number}"

    def transport(self) -> Transport:
        """A new bank in memory to play a story on; it shares no data or TPPs with other banks."""
        return self.config.transport_of(self)

    def directory_of(self, name: str) -> Path | None:
        """The folder of a bank, None for one in memory."""
        return None if self._folders is None else self._folders.of(name)

    def _documents(self, directory: Path | None) -> Store:
        if directory is None:
            return memory_store(KINDS)
        return open_store(directory, KINDS, self.config.durability, progress=self.config.progress)

    def make(self, name: str, spec: BankSpec | None = None) -> BankService:
        """`making`, without other requests between its steps."""
        return run_to_end(self.making(name, spec or BankSpec()))

    def making(self, name: str, spec: BankSpec) -> Generator[object, None, BankService]:
        """Create or replace the bank `name` (PUT banks/{name}) and change it, atomically and durably.

        While a large fixture is read, other requests are answered, with the bank as it was before. Raises FORMAT_ERROR
        for an invalid name, and CONFLICT for another seed of the default bank or a bank that changes meanwhile.
        """
        if not NAME.fullmatch(name):
            raise BankError("FORMAT_ERROR", "A bank's name is [a-z0-9][a-z0-9-]{0,62}.", "name")
        known = self.find(name)
        if known is None:
            return (yield from self._create(name, spec))
        seed = spec.seed
        if seed is None:
            seed = known.bank.ids.seed if name == DEFAULT else self.config.seed
        if seed != known.bank.ids.seed:
            _refuse_default(name)
        ready = yield from self._prepared(spec, known.bank.documents)
        with discarded_on_failure(ready.content):
            if self.find(name) is not known:
                raise changed_meanwhile(name)
            ids = known.bank.ids
            before = ids.seed
            ids.reseed(seed)
            try:
                self._fill(known, self._stores[name], spec, ready)
            except BaseException:
                ids.reseed(before)
                raise
        known.log.clear()
        return known

    def _prepared(self, spec: BankSpec, documents: Documents | None) -> Generator[object, None, PreparedFixture]:
        return fixtures.prepare(
            documents,
            {"fixtures": spec.fixture or self.config.fixtures},
            today=fixtures.first_day(self.config.begins, spec.restored),
            ids_form=self.config.ids_form,
            report=spec.report,
        )

    def publish_to_all(self, kind: str, name: str, status: str) -> None:
        """Publish an event about a change of the process (its TPPs, its banks) at every watched bank."""
        for service in self.watched():
            service.bank.publish(about_all(service.bank, kind, name, status))

    def _create(self, name: str, spec: BankSpec) -> Generator[object, None, BankService]:
        """Create a bank; its folder gets its name once it is complete."""
        place = None if self._folders is None else self._folders.temporary()
        with ExitStack() as undo:
            if self._folders is not None and place is not None:
                undo.callback(self._folders.drop, place)
            documents = self._documents(place)
            undo.callback(documents.discard)
            ready = yield from self._prepared(spec, documents)
            if self.exists(name):
                raise changed_meanwhile(name)
            service = self._service(name, documents, spec.seed)
            self._fill(service, documents, spec, ready)
            if self._folders is not None and place is not None:
                self._folders.place(place, name)
                if (log := journal_of(documents)) is not None:
                    log.moved(self._folders.of(name))
            undo.pop_all()
        self._enter(name, service, documents)
        return service

    def _fill(self, service: BankService, documents: Store, spec: BankSpec, ready: PreparedFixture) -> None:
        with documents.transaction():
            fixtures.make(service.bank, ready, spec.restored)
            spec.prepare(service)
        documents.write_waiting()
        if (log := journal_of(documents)) is not None:
            log.sync()

    def close_bank(self, name: str) -> None:
        """Delete the bank and its documents; raises CONFLICT for the default bank, RESOURCE_UNKNOWN for none."""
        _refuse_default(name)
        if not self.exists(name):
            raise BankError("RESOURCE_UNKNOWN", f"The bank {name} does not exist.")
        self._delete(name)

    def _delete(self, name: str) -> None:
        aside = self._folders.put_aside(name) if self._folders is not None and self._is_stored(name) else None
        self._used.pop(name, None)
        service = self._open.pop(name, None)
        if service is not None:
            service.bank.dismiss()
            self._stores.pop(name).discard()
        if self._folders is not None and aside is not None:
            self._folders.drop(aside)

    def close_idle(self) -> None:
        """Close the least recently used named bank, if it has been idle for `idle_seconds`.

        The next request to it opens it again. Not to be called within a turn.
        """
        name = next(iter(self._used), None)
        limit = self.config.idle_seconds
        if name is None or self._folders is None or not limit or monotonic() - self._used[name] < limit:
            return
        del self._used[name]
        service, documents = self._open[name], self._stores[name]
        if is_busy(service, documents):
            self._used[name] = monotonic()
            return
        del self._open[name], self._stores[name]
        self.group.overgrown.discard(documents)
        documents.close()

    def services(self) -> Iterator[BankService]:
        """The open banks."""
        return iter(list(self._open.values()))

    def watched(self) -> list[BankService]:
        """The open banks with watchers (event streams, consoles)."""
        return [self._open[name] for name in sorted(self._watched) if name in self._open]

    def close(self, until: float | None = None) -> None:
        """Close all banks, and compact their journals until this time (of `monotonic`).

        The default bank comes first, then those with the largest journals; short journals get little time.
        """
        until = monotonic() + COMPACTING if until is None else until
        first = self._stores.get(DEFAULT)
        late = 0
        for documents in sorted(self._stores.values(), key=lambda d: (d is not first, -_journal_size(d))):
            size = _journal_size(documents)
            if documents is not first and size < SHORT_JOURNAL:
                until = min(until, monotonic() + COMPACTING_SHORT)

            def in_time(until: float = until) -> None:
                if monotonic() > until:
                    raise Abandoned

            late += monotonic() > until and size > 0
            documents.close(in_time)
        if late:
            logger.warning("the journals of %d banks were not compacted: there was no time", late)


def is_busy(service: BankService, documents: Store) -> bool:
    """Whether a bank has work to do: watchers, long work, unwritten changes, or notifications."""
    bank, log = service.bank, journal_of(documents)
    on_disk = documents.waiting or (log is not None and (log.sync_needed or log.compaction is not None))
    return bool(bank.watchers or bank.moves or on_disk or notifications.are_to_come(bank))


def about_all(bank: Bank, kind: str, name: str, status: str) -> Event:
    """The event of a change that concerns all banks."""
    return {"type": kind, "id": name, "status": status, "at": bank.clock.stamp()}


def _journal_size(documents: Store) -> int:
    log = journal_of(documents)
    return 0 if log is None else log.journal.size


def changed_meanwhile(name: str) -> BankError:
    """The error for a bank that was created or deleted while a request to create it was in progress."""
    return BankError("CONFLICT", f"Bank {name} was created or deleted in the meantime.", "name")


def _refuse_default(name: str) -> None:
    if name == DEFAULT:
        raise BankError("CONFLICT", "The default bank stays; reset it instead.", "name")
