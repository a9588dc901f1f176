"""One bank: its documents, clock, ids and settings; the first argument of every function of the domain."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from emulator.bank.clock import LIVE, Beginning, Clock
from emulator.bank.errors import BankError
from emulator.bank.formats import composed
from emulator.bank.ids import Ids
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CUSTOMER, EXCHANGE, PARAMETERS, PERSON, PSU, SESSION, SETTINGS
from emulator.bank.money import BUILT_IN_PRICES, PriceList
from emulator.bank.notification_targets import Host
from emulator.bank.settings import Settings, merged
from emulator.store import Documents, Kind, StoreUnwritable

D = TypeVar("D", bound=Mapping[str, Any])
Event = dict[str, Any]
Watcher = Callable[[Event | None], None]


def progress_event(bank: Bank, kind: str, status: str, *, done: int, of: int) -> Event:
    """The event that reports the progress of a long operation: `done` of `of` steps."""
    return {"type": kind, "id": bank.name, "status": status, "at": bank.clock.stamp(), "done": done, "of": of}


def reports_preparing(
    bank: Bank, kind: str = "reset", *, status: str = "preparing", name: str | None = None
) -> Callable[[int, int], None]:
    """A function that publishes how many parts of preparing a content are done, of how many: `(done, of)`."""

    def report(done: int, of: int) -> None:
        event = progress_event(bank, kind, status, done=done, of=of)
        bank.publish(event if name is None else {**event, "id": name})

    return report


@dataclass(slots=True)
class DueSteps:
    """What of a content is due at one moment and has not been applied yet, see `progression`.

    `failures`: of the documents, when it was listed; what was undone since is due again, and not listed.
    """

    due: str
    content: object
    failures: int
    waiting: deque[tuple[Kind[Any], str]]


class Bank:
    """An independent bank (own customers, clock, settings).

    `payers` caches the customers of requests, by their headers (see `access`); `accounts` the accounts that they pay
    from and to (see `initiation`).
    `exchange` has the rates and fees of its fixture, `settings` those in force: both follow their document.
    `defaults` are the settings that a reset restores, `begins` the clock. `seed` and `ids_form` come from `--seed` and
    `--ids`; ids are derived from `stream` (None: the name). `notify_hosts` are hosts that may receive notifications
    whatever the TPP's certificate says (`--allow-notify`).
    """

    def __init__(
        self,
        documents: Documents,
        *,
        name: str = "default",
        defaults: Settings | None = None,
        begins: Beginning = LIVE,
        seed: int | None = None,
        ids_form: str = "uuid",
        stream: str | None = None,
        notify_hosts: Collection[Host] = (),
        watched: set[str] | None = None,
    ) -> None:
        self.name = name
        self.documents = documents
        self.defaults = defaults or Settings()
        self.begins = begins
        self.clock = Clock(documents)
        self.ids = Ids(documents, stream=stream or name, seed=seed, form=ids_form)
        self.notify_hosts = notify_hosts
        self.payers = documents.dependent_cache(PSU, SESSION, AGREEMENT, CUSTOMER, PERSON)
        self.accounts = documents.dependent_cache(ACCOUNT, CUSTOMER, AGREEMENT)
        self.advances = 0  # advances of the clock in progress, which apply due steps themselves (see `progression`)
        self.due_steps: DueSteps | None = None
        self._identity = object()  # another one after each `make_anew`
        # What payments and baskets add (`payments.attach`): the effects of an approval by purpose (`sca.ScaEffect`),
        # and what is called after a change of the settings, with the previous ones.
        self.sca_effects: dict[str, Any] = {}
        self.settings_followers: list[Callable[[Bank, Settings], None]] = []
        self.watchers: list[Watcher] = []
        self._watched = set() if watched is None else watched  # names of banks with watchers, shared by all banks
        documents.listen(self.tell)
        self.exchange = BUILT_IN_PRICES
        EXCHANGE.follow(documents, self._take_exchange)
        self.settings = self.defaults
        SETTINGS.follow(documents, self._take_settings)

    def _take_exchange(self, document: Mapping[str, Any] | None) -> None:
        self.exchange = BUILT_IN_PRICES if document is None else PriceList(document)

    def _take_settings(self, document: Mapping[str, Any] | None) -> None:
        changes = {name: value for name, value in (document or {}).items() if name != "id"}
        self.settings = merged(self.defaults, changes)

    def change_settings(self, changes: Mapping[str, Any]) -> Settings:
        """Merge `changes` into the settings; raises BankError FORMAT_ERROR with every problem."""
        before, settings = self.settings, merged(self.settings, composed(dict(changes)))
        SETTINGS.write(self.documents, {"id": "settings", **settings.differences(self.defaults)})
        for follow in self.settings_followers:
            follow(self, before)
        return settings

    def make_anew(self) -> None:
        """Note, in the open transaction, that the bank is replaced by another one of its name."""
        before, self._identity = self._identity, object()
        self.documents.undoing(lambda: setattr(self, "_identity", before))

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """A context for preparing a change beside other requests; CONFLICT if this is another bank by then, or none.

        Resetting or restoring it meanwhile is no conflict, but as if that had been asked for before.
        """
        before = self._identity
        try:
            yield
        except StoreUnwritable:
            if self._identity is before and self.documents.content() is not None:
                raise
        if self._identity is not before or self.documents.content() is None:
            raise BankError("CONFLICT", "The bank was replaced or deleted in the meantime.")

    def find(self, kind: Kind[D], identity: str) -> D:
        """The document with this id; RESOURCE_UNKNOWN if there is none."""
        document = self.documents.get(kind, identity)
        if document is None:
            raise BankError("RESOURCE_UNKNOWN", f"There is no {kind.name} {identity}.", PARAMETERS.get(kind))
        return document

    def make_room(self, kind: Kind[Any], most: int, **equals: str) -> None:
        """Evict the oldest of the documents with these members if there are `most` or more."""
        oldest = self.documents.first(kind, **equals) if self.documents.count(kind, **equals) >= most else None
        if oldest is not None:
            self.documents.delete(kind, oldest["id"])

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with every event, and with None when the bank is deleted; call the result to stop."""
        self.watchers.append(watcher)
        self._watched.add(self.name)

        def end() -> None:
            self.watchers.remove(watcher)
            if not self.watchers:
                self._watched.discard(self.name)

        return end

    def publish(self, event: Event) -> None:
        """Send an event to the watchers once the change is stored: `{"type": ..., "at": ..., ...}`."""
        self.documents.publish(event)

    def tell(self, event: Event | None) -> None:
        """Pass an event to the watchers in this process; None: the bank is deleted."""
        for watcher in tuple(self.watchers):
            watcher(event)
