"""The banks of a process: the default one and those created by `PUT /_emulator/banks/{name}`."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from time import monotonic
from urllib.parse import unquote

from emulator.api.messages import Request, Response
from emulator.api.outcomes import Outcomes
from emulator.api.router import split_target
from emulator.api.service import BankService, Sign, Signer
from emulator.assemble.storage import Storage
from emulator.bank import fixtures, notifications
from emulator.bank.bank import Bank
from emulator.bank.clock import LIVE, Beginning, real_now
from emulator.bank.errors import BankError
from emulator.bank.fixtures import PreparedFixture
from emulator.bank.formats import FILE_NAME
from emulator.bank.kinds import BANK, KINDS
from emulator.bank.payment import baskets, payments
from emulator.bank.settings import Settings
from emulator.bank.threads import run_to_end
from emulator.ca import CertificateAuthority, Credentials
from emulator.conformance.observer import Conformance
from emulator.control.operation import BankSpec
from emulator.httpsig.keyid import key_id_for
from emulator.httpsig.signing import digest_value, format_date, signature_header
from emulator.metrics.counts import ProcessCounts
from emulator.scenario.rules import RuleSet
from emulator.scenario.transport import Transport
from emulator.settings import ServeSettings
from emulator.store import (
    Documents,
    StoreDamaged,
    StoreError,
    StoreLost,
    StoreShared,
    WriteGroup,
    memory_store,
)
from emulator.store.journal_log import Abandoned

logger = logging.getLogger(__name__)

DEFAULT = "default"
_NAMED_BANK = re.compile(rf"/banks/({FILE_NAME.pattern})(?=/|$)")  # the prefix of its addresses
TPP_INTERFACE = re.compile(rf"(?:/banks/({FILE_NAME.pattern}))?/v1/")  # what nearly all requests are sent to
_NO_BANK = frozenset({"", "health", "metrics", "openapi.json", "docs", "static"})
MTIME_GRAIN = 0.01  # seconds; the resolution of the modification time of a file
SHORT_JOURNAL = 1 << 20  # bytes; a start reads such a journal in milliseconds
COMPACTING_SHORT = 1.0  # seconds in which `close` compacts all short journals
COMPACTING = 8.0  # seconds in which `close` compacts the others; the process exits within 10


def bank_of(request: Request) -> tuple[str | None, bool]:
    """The bank that a request is about, None for one that every process answers itself; and whether it is about the
    bank as a whole, which may then be new or damaged.

    Creating, replacing and deleting a bank are about that bank, whichever one's control interface they are sent to.
    """
    if (tpp := TPP_INTERFACE.match(request.target)) is not None:
        return tpp[1] or DEFAULT, False
    _, named, rest = address_of(request.target)
    if request.method in ("PUT", "DELETE") and rest.startswith("/_emulator/banks/"):
        name = unquote(rest.removeprefix("/_emulator/banks/")).strip("/")
        if FILE_NAME.fullmatch(name):
            return name, True
    return named or (None if part_of(rest) in _NO_BANK else DEFAULT), False


def address_of(target: str) -> tuple[str, str, str]:
    """The prefix of a named bank and its name, both empty for the default one, and the path within the bank."""
    path, _ = split_target(target)
    named = _NAMED_BANK.match(path)
    return ("", "", path) if named is None else (named[0], named[1], path[named.end() :])


def part_of(path: str) -> str:
    """The first segment of a path within a bank."""
    return path[1:].partition("/")[0]


class BankRegistry:
    """The banks by name.

    `storage`: where they are stored; `begins`: the clock that a reset restores; `transport_of`: called by `transport`.
    """

    def __init__(
        self,
        settings: ServeSettings,
        authority: CertificateAuthority,
        storage: Storage,
        *,
        transport_of: Callable[[ServeSettings], Transport],
        begins: Beginning = LIVE,
    ) -> None:
        self.group = WriteGroup()
        self.outcomes = Outcomes()
        self.counts = ProcessCounts()
        self.settings = settings
        self.storage = storage
        self.authority = authority
        self._transport_of = transport_of
        self._begins = begins
        self._open: dict[str, BankService] = {}
        self.opened = self._open.get
        """The bank with this name if it is open, else None."""
        self._watched: set[str] = set()
        self._used: dict[str, float] = {}  # when an open named bank was last used; least recently used first
        self._logged: dict[str, str] = {}
        self._stand_in: BankService | None = None
        self.on_open: Callable[[BankService], None] | None = None  # called with every bank that is opened later
        if self.storage.opens_default:
            self.open(DEFAULT)
            self.storage.sweep()  # `open` has locked the directory

    @property
    def default(self) -> BankService:
        """The default bank; StoreLost where another process has it."""
        service = self._open.get(DEFAULT)
        if service is None:
            raise StoreLost("another process has the default bank")
        return service

    def names(self) -> list[str]:
        """The names of all banks, including those of an earlier run; the default one first."""
        return [DEFAULT, *sorted((self._open.keys() | self.storage.names()) - {DEFAULT})]

    def exists(self, name: str) -> bool:
        """Whether there is a bank of this name."""
        return name in self._open or self.storage.has(name)

    def stand_in(self) -> BankService:
        """A bank in memory without data, for operations that are about no bank of this process, as creating one."""
        if self._stand_in is None:
            self._stand_in = self._service("none", memory_store(KINDS))
        return self._stand_in

    def find(self, name: str) -> BankService | None:
        """The bank with this name, or None; a stored one is opened.

        Raises SYSTEM_ERROR (503), with a remedy, if it cannot be opened.
        """
        service = self._open.get(name)
        if service is None and self.storage.has(name):
            try:
                service = self.open(name)
            except StoreLost:
                raise
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

    def _undamaged(self, name: str) -> BankService | None:
        """The bank with this name; None also for one with damaged documents, whose place another one may take."""
        try:
            return self.find(name)
        except BankError as refused:
            cause = refused.__cause__
            if isinstance(cause, StoreDamaged) or (isinstance(cause, StoreShared) and cause.unreadable):
                return None
            raise

    def open(self, name: str, documents: Documents | None = None) -> BankService:
        """Open the bank `name` with its stored documents, or with --fixtures if there are none."""
        documents = documents or self.storage.open(name)
        with ExitStack() as undo:
            undo.callback(documents.discard)
            service = self._service(name, documents)
            if not any(map(documents.count, KINDS)):  # partial documents of a repair are kept
                fixtures.make(service.bank, self.settings.fixture)
            undo.pop_all()
        self._enter(service)
        return service

    def _enter(self, service: BankService) -> None:
        name = service.bank.name
        service.bank.documents.join(self.group)
        self._open[name] = service
        if name != DEFAULT:
            self._used[name] = monotonic()
        if self.on_open is not None:
            self.on_open(service)

    def documents(self, name: str = DEFAULT) -> Documents | None:
        """The documents of an open bank."""
        service = self._open.get(name)
        return None if service is None else service.bank.documents

    def _service(self, name: str, documents: Documents, seed: int | None = None) -> BankService:
        """A bank with these documents; `seed`: that of a new bank, None for the default.

        A named bank keeps the seed of its creation, and a new one never gets the random stream of a deleted bank of its
        name.
        """
        asked, origin = self.settings, BANK.read(documents)
        stream = name if origin is None else origin.get("stream", name)
        if origin is None and (number := self.storage.number(name)) > 1:
            stream = f"{name}:{number}"
        if seed is None:
            seed = asked.seed
            if origin is not None and (name != DEFAULT or seed is None):
                seed = origin.get("seed", seed)
        links = asked.links if name == DEFAULT else "absolute"  # a relative one would lead to the default bank
        bank = Bank(
            documents,
            name=name,
            defaults=Settings(profile=asked.profile, links=links, weather=asked.weather),
            begins=self._begins,
            seed=seed,
            ids_form=asked.ids,
            stream=stream,
            notify_hosts=asked.allow_notify,
            watched=self._watched,
        )
        payments.attach(bank)
        baskets.attach(bank)
        if documents.log.written:
            bank.clock.not_before(documents.log.written + MTIME_GRAIN)
        return BankService(
            bank,
            rules=RuleSet(bank),
            trusted_ca=lambda: self.authority.certificate,
            signer=response_signer(self.authority.answer_credentials),
            observer=Conformance(bank),
            outcomes=self.outcomes,
        )

    def transport(self) -> Transport:
        """A new bank in memory to play a story on; it shares no data or TPPs with other banks."""
        return self._transport_of(self.settings)

    def make(self, name: str, spec: BankSpec | None = None) -> BankService:
        """`making`, without other requests between its steps."""
        return run_to_end(self.making(name, spec or BankSpec()))

    def making(self, name: str, spec: BankSpec) -> Generator[object, None, BankService]:
        """Create or replace the bank `name` (PUT banks/{name}) and change it, atomically and durably.

        While a large fixture is read, other requests are answered, with the bank as it was before. Raises FORMAT_ERROR
        for an invalid name, and CONFLICT for another seed of the default bank or a bank that changes meanwhile.
        """
        if not FILE_NAME.fullmatch(name):
            raise BankError("FORMAT_ERROR", "A bank's name is [a-z0-9][a-z0-9-]{0,62}.", "name")
        known = self._undamaged(name)
        if known is None:
            damaged = self.exists(name)
            with self.storage.creating(name) as (documents, place):  # it has its place once it is complete
                ready = yield from self._prepared(spec, documents)
                if name in self._open or self.exists(name) is not damaged:
                    raise changed_meanwhile(name)
                service = self._service(name, documents, spec.seed)
                self._fill(service, spec, ready, service.bank.ids.seed, place)
            self._enter(service)
            return service
        seed = spec.seed
        if seed is None:
            seed = known.bank.ids.seed if name == DEFAULT else self.settings.seed
        if name == DEFAULT and seed != known.bank.ids.seed:
            raise BankError("CONFLICT", "The seed of the default bank is that of its start (--seed).", "seed")
        ready = yield from self._prepared(spec, known.bank.documents)
        if self.find(name) is not known:
            raise changed_meanwhile(name)
        self._fill(known, spec, ready, seed)
        return known

    def _prepared(self, spec: BankSpec, documents: Documents | None) -> Generator[object, None, PreparedFixture]:
        return fixtures.prepare(
            documents,
            {"fixtures": spec.fixture or self.settings.fixture},
            today=fixtures.first_day(self._begins, spec.restored),
            ids_form=self.settings.ids,
            report=spec.report,
        )

    def home(self, name: str) -> str | None:
        """The address of the process that has the bank, if several share banks."""
        return self.storage.home(name)

    def publish_to_all(self, kind: str, name: str, status: str) -> None:
        """Publish an event about a change of the process (its TPPs, its banks) at every watched bank."""
        for service in self.watched():
            at = service.bank.clock.stamp()
            service.bank.publish({"type": kind, "id": name, "status": status, "at": at})

    def _fill(
        self,
        service: BankService,
        spec: BankSpec,
        ready: PreparedFixture,
        seed: int | None,
        place: Callable[[], None] = lambda: None,
    ) -> None:
        documents = service.bank.documents
        with ExitStack() as undo:
            with documents.transaction():
                service.bank.ids.reseed(seed)
                documents.undoing(service.log.clear())
                fixtures.make(service.bank, ready, spec.restored)
                spec.prepare(service, undo)
            documents.write_waiting()
            documents.log.sync()
            place()

    def close_bank(self, name: str) -> None:
        """`deleting`, without other requests between its steps."""
        run_to_end(self.deleting(name))

    def deleting(self, name: str) -> Generator[object, None, None]:
        """Delete the bank and its documents; raises CONFLICT for the default bank, RESOURCE_UNKNOWN for none."""
        if name == DEFAULT:
            raise BankError("CONFLICT", "The default bank stays; reset it instead.", "name")
        if not self.exists(name):
            raise BankError("RESOURCE_UNKNOWN", f"The bank {name} does not exist.")
        service = self._open.get(name)

        def end() -> None:
            if self._open.get(name) is service:  # else it was created again
                self.end(name)

        if self.storage.has(name):
            yield from self.storage.delete(name, end)
        end()

    def end(self, name: str) -> None:
        """Close an open bank, which is deleted or lost."""
        service = self._open.get(name)
        if service is not None:
            service.bank.tell(None)
            self.forget(name).discard()

    def forget(self, name: str) -> Documents:
        """Remove an open bank from memory; returns its documents, to be closed or discarded."""
        self._used.pop(name, None)
        return self._open.pop(name).bank.documents

    def close_idle(self) -> None:
        """Close the least recently used named bank, if it has been idle for `idle_hours` and has nothing to do.

        The next request to it opens it again. Not to be called within a turn.
        """
        name = next(iter(self._used), None)
        limit = self.settings.idle_hours * 3600
        if name is None or not limit or monotonic() - self._used[name] < limit or not self.storage.has(name):
            return
        bank = self._open[name].bank
        documents = bank.documents
        unwritten = documents.waiting or documents.log.sync_needed or documents.log.compacting
        if bank.watchers or bank.advances or unwritten or notifications.are_to_come(bank):
            del self._used[name]
            self._used[name] = monotonic()
        else:
            self.forget(name).close()

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
        stores = [service.bank.documents for service in self.services()]
        first = self.documents()
        for documents in sorted(stores, key=lambda d: (d is not first, -d.log.size)):
            if documents is not first and documents.log.size < SHORT_JOURNAL:
                until = min(until, monotonic() + COMPACTING_SHORT)

            def in_time(until: float = until) -> None:
                if monotonic() > until:
                    raise Abandoned

            documents.close(in_time)


def changed_meanwhile(name: str) -> BankError:
    """The error for a bank that was created or deleted while a request to create it was in progress."""
    return BankError("CONFLICT", f"Bank {name} was created or deleted in the meantime.", "name")


def response_signer(credentials: Callable[[], Credentials]) -> Signer:
    """A function that adds Date, Digest and Signature to an answer; the signature covers its X-Request-ID too.

    A Digest or Signature of a scripted rule is not changed, and a scripted Digest is signed. `credentials` is called
    for the first signed answer only, as it generates a key; its exceptions pass through.
    """

    def signer() -> Sign:
        signing = credentials()

        def sign(response: Response) -> None:
            present = {name.lower(): value for name, value in response.headers}
            date, digest = format_date(real_now()), present.get("digest") or digest_value(response.body)
            request_id = [("x-request-id", present["x-request-id"])] if "x-request-id" in present else []
            lines = [("digest", digest), *request_id, ("date", date)]
            signature = signature_header(lines, key_id=key_id_for(signing.certificate), key=signing.key)
            added = (("Date", date), ("Digest", digest), ("Signature", signature))
            response.headers += [(name, value) for name, value in added if name.lower() not in present]

        return sign

    return signer
