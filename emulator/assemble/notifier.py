"""Sends the queued notifications of the banks of a process, each bank's in a background task of its own.

A notification is claimed by a change of its document, sent once that is stored, and settled by another change. If the
process ends before, whoever has the bank next takes the claim over and sends it again: it may arrive twice, but is
never lost.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TypeVar

from emulator.api.service import BankService
from emulator.bank import notifications
from emulator.bank.documents import Notification
from emulator.bank.kinds import META, NOTIFICATION
from emulator.bank.notifications import DeliveryResult, Parties
from emulator.bank.payment import progression
from emulator.store import StoreUnwritable

logger = logging.getLogger(__name__)

TICK = 0.25  # seconds between two checks of bank time
MOST = 16  # notifications of a bank that are sent at the same time
EACH = 4  # of these to one receiver, and twice as many of one TPP, so that those that never answer do not delay others
PAUSE = 1.0  # seconds after a failed change: the disk may be full

Result = TypeVar("Result")
Post = Callable[[str, bytes, str, str | None], Awaitable[DeliveryResult]]
"""Post a body to an address under an X-Request-ID, as a part of the trace of this traceparent."""

Change = Callable[[BankService, Callable[[], Result]], Awaitable[Result]]
"""Change documents outside a request; returns the result once the change is durable."""


class Notifier:
    """The senders of a process, for the banks that `services` gives and `opened` finds by name.

    A bank has one while its setting is on, of thousands hardly one, and waits for no other bank's.
    """

    def __init__(
        self,
        services: Callable[[], Iterator[BankService]],
        opened: Callable[[str], BankService | None],
        *,
        change: Change[list[Notification] | None],
        post: Post,
    ) -> None:
        self._services = services
        self.opened = opened
        self.change = change
        self.post = post
        self._loop: asyncio.AbstractEventLoop | None = None  # between `start` and `stop`
        self._senders: dict[str, _Sender] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        """Whether nothing is being sent, and nothing is due."""
        return self._busy() is None

    def _busy(self) -> _Sender | None:
        return next((sender for sender in self._senders.values() if not sender.idle), None)

    def start(self) -> None:
        """Start sending, within a running loop."""
        self._loop = asyncio.get_running_loop()
        for service in self._services():
            self.follow(service)

    def follow(self, service: BankService) -> None:
        """Send the notifications of a bank; called for each bank that is opened."""
        if self._loop is not None:  # else `start` will do it
            take_note = partial(self._take_note, service)
            service.bank.documents.follow(NOTIFICATION, take_note)
            service.bank.documents.follow(META, take_note)  # settings and clock
            take_note()

    def _take_note(self, service: BankService) -> None:
        if self._loop is None or not service.bank.settings.notifications:
            return
        name = service.bank.name
        sender = self._senders.get(name)
        if sender is None or sender.service is not service:
            sender = self._senders[name] = _Sender(service, self)
            self.spawn(self._run(sender))
        sender.woken.set()

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        if self._loop is not None:
            task = self._loop.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, sender: _Sender) -> None:
        await sender.run()
        if self._senders.get(sender.service.bank.name) is sender:
            del self._senders[sender.service.bank.name]

    def stop(self) -> None:
        """Stop sending. Notifications in flight keep their claim, and are sent again at the next start."""
        self._loop = None
        for task in self._tasks:
            task.cancel()
        for sender in self._senders.values():
            sender.rested.set()
        self._senders.clear()

    async def quiet(self) -> None:
        """Return once nothing is in flight and nothing is due; at once after `stop`."""
        while (busy := self._busy()) is not None:
            busy.rested.clear()
            await busy.rested.wait()


class _Sender:
    """Sends the notifications of a bank while it is open and its setting on, or something is in flight."""

    def __init__(self, service: BankService, notifier: Notifier) -> None:
        self.service = service
        self._notifier = notifier
        self.woken = asyncio.Event()  # there may be something to do
        self.rested = asyncio.Event()  # what there was to do is done, or has failed
        self._sending: dict[str, Parties] = {}  # by the id of a notification in flight
        self._settled: dict[str, DeliveryResult] = {}  # answered, and not stored yet
        self._passed = 0  # due ones before those that are looked at next: one receiver may have thousands

    def _is_open(self) -> bool:
        return self._notifier.opened(self.service.bank.name) is self.service

    @property
    def idle(self) -> bool:
        """Whether nothing is being sent, and nothing is due."""
        busy = self.woken.is_set() or not self.rested.is_set() or self._sending or self._is_due()
        return not (busy and self._is_open())

    async def run(self) -> None:
        """Work whenever there may be something to do: after a change, and as bank time goes on."""
        while self._is_open() and (self.service.bank.settings.notifications or self._sending):
            self.woken.clear()
            self.rested.clear()
            failed = True
            try:
                await self._serve()
                failed = False
            except StoreUnwritable as error:
                logger.error("notifications cannot be sent: %s", error)
            except Exception:
                logger.exception("notifications could not be sent")
            self.rested.set()
            if failed:
                await asyncio.sleep(PAUSE)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK):
                    await self.woken.wait()
        self.rested.set()

    def _is_due(self) -> bool:
        """Whether a notification is due, or a change that may cause one."""
        bank = self.service.bank
        if not bank.settings.notifications:
            return False
        now = bank.clock.stamp()
        dues = (notifications.next_due(bank), progression.next_due(bank))
        return any(due is not None and due <= now for due in dues)

    def _has_work(self) -> bool:
        if self._settled:
            return True
        if not self.service.bank.settings.notifications:
            return False
        claimed = self.service.bank.documents.find(NOTIFICATION, state="sending")
        abandoned = any(one["id"] not in self._sending for one in claimed)
        return abandoned or (self._is_due() and len(self._in_flight()) < MOST)

    def _in_flight(self) -> list[Parties]:
        """The parties of the notifications that are not answered yet."""
        return [parties for identity, parties in self._sending.items() if identity not in self._settled]

    async def _serve(self) -> None:
        """Settle answered notifications, claim due ones and send them."""
        settled = dict(self._settled)
        if not self._has_work():
            return
        claim = partial(self._claim, settled, self.service.settling())
        while (claimed := await self._notifier.change(self.service, claim)) is None:
            await asyncio.sleep(0)  # requests come between
        for identity in settled:
            del self._settled[identity], self._sending[identity]
        for notification in claimed:
            if notifications.is_claimed(self.service.bank, notification["id"]):
                self._sending[notification["id"]] = notifications.parties_of(notification)
                self._notifier.spawn(self._send(notification))

    def _claim(self, settled: Mapping[str, DeliveryResult], pieces: Iterator[None]) -> list[Notification] | None:
        """Settle, release and claim notifications in one change; returns those to send.

        None after a piece of what is due in the bank, while there is more.
        """
        bank = self.service.bank
        if next(pieces, self) is None:
            return None
        with bank.documents.transaction():
            for identity, outcome in settled.items():
                notifications.settle(bank, identity, outcome)
            notifications.release_abandoned(bank, sending=self._sending)
            if not bank.settings.notifications:
                return []
            sending, passed = self._in_flight(), self._passed
            room = MOST - len(sending)
            claimed = notifications.claim(bank, sending=sending, most=room, each=EACH, passed=passed)
            passed += notifications.LOOKED_AT
            self._passed = passed if len(claimed) < room and notifications.number_due(bank) > passed else 0
            return claimed

    async def _send(self, notification: Notification) -> None:
        body = json.dumps(notification["body"], separators=(",", ":")).encode()
        post, identity = self._notifier.post, notification["id"]
        self._settled[identity] = await post(notification["uri"], body, identity, notification.get("traceparent"))
        self.woken.set()
