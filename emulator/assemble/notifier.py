"""Sends the queued notifications of the banks of a process, in a background task.

A notification is claimed by a change of its document, sent once that is stored, and settled by another change. If the
process ends before, whoever has the bank next takes the claim over and sends it again: it may arrive twice, but is
never lost.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TypeVar

from emulator.api.service import BankService
from emulator.bank import notifications
from emulator.bank.documents import Notification
from emulator.bank.kinds import META, NOTIFICATION
from emulator.bank.notifications import DeliveryResult
from emulator.bank.payment import progression
from emulator.store import StoreUnwritable

logger = logging.getLogger(__name__)

TICK = 0.25  # seconds between two checks of bank time, while a bank has the setting on
MOST = 16  # notifications that are sent at the same time, of all banks
EACH = 4  # of these for one TPP, so that a receiver that never answers does not delay others
PAUSE = 1.0  # seconds after a failed change: the disk may be full

Result = TypeVar("Result")
Post = Callable[[str, bytes, str, str | None], Awaitable[DeliveryResult]]
"""Post a body to an address under an X-Request-ID, as a part of the trace of this traceparent."""

Change = Callable[[BankService, Callable[[], Result]], Awaitable[Result]]
"""Change documents outside a request; returns the result once the change is durable."""


class Notifier:
    """The sender of a process, for the banks that `services` gives and `opened` finds by name."""

    def __init__(
        self,
        services: Callable[[], Iterator[BankService]],
        opened: Callable[[str], BankService | None],
        *,
        change: Change[list[Notification] | None],
        post: Post | None,
    ) -> None:
        self._services = services
        self._opened = opened
        self._notifying: dict[str, BankService] = {}  # those whose settings let them notify, of thousands hardly one
        self._change = change
        self._post = post
        self._running: asyncio.Task[None] | None = None  # between `start` and `stop`
        self._woken = asyncio.Event()  # there may be something to do
        self._rested = asyncio.Event()  # what there was to do is done, or has failed
        self._sending: dict[str, str] = {}  # by the id of a notification in flight: its TPP
        self._settled: dict[str, tuple[BankService, DeliveryResult]] = {}  # answered, and not stored yet
        self._posts: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        """Whether nothing is being sent, and nothing is due."""
        busy = self._woken.is_set() or not self._rested.is_set() or self._sending or self._settled
        return not busy and not any(map(self._is_due, self._followed()))

    def start(self) -> None:
        """Start sending, within a running loop."""
        if self._post is None:
            return
        self._running = asyncio.get_running_loop().create_task(self._run(self._post))
        for service in self._services():
            self.follow(service)

    def follow(self, service: BankService) -> None:
        """Send the notifications of a bank; called for each bank that is opened."""
        if self._running is None:
            return  # `start` will do it
        service.bank.documents.follow(NOTIFICATION, self._woken.set)
        service.bank.documents.follow(META, partial(self._take_note, service))  # settings and clock
        self._take_note(service)

    def _take_note(self, service: BankService) -> None:
        if service.bank.settings.notifications:
            self._notifying[service.bank.name] = service
            self._woken.set()
        else:
            self._notifying.pop(service.bank.name, None)

    def _followed(self) -> list[BankService]:
        """The banks that may have something to send."""
        closed = [name for name, service in self._notifying.items() if self._opened(name) is not service]
        for name in closed:
            del self._notifying[name]
        return list(self._notifying.values())

    def stop(self) -> None:
        """Stop sending. Notifications in flight keep their claim, and are sent again at the next start."""
        if self._running is not None:
            for task in (self._running, *self._posts):
                task.cancel()
            self._running = None
            self._rested.set()

    async def quiet(self) -> None:
        """Return once nothing is in flight and nothing is due; at once after `stop`."""
        while self._running is not None and not self.idle:
            self._rested.clear()
            await self._rested.wait()

    async def _run(self, post: Post) -> None:
        """Work whenever there may be something to do: after a change, and as bank time goes on."""
        while True:
            self._woken.clear()
            self._rested.clear()
            failed = False
            for service in self._concerned():
                try:
                    await self._serve(service, post)
                except StoreUnwritable as error:
                    failed = True
                    logger.error("notifications cannot be sent: %s", error)
                except Exception:
                    failed = True
                    logger.exception("notifications could not be sent")
            self._rested.set()
            if failed:
                await asyncio.sleep(PAUSE)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK if self._notifying else None):
                    await self._woken.wait()

    def _concerned(self) -> list[BankService]:
        """The banks that may have something to send, and those with answered notifications to settle."""
        for identity, (service, _) in list(self._settled.items()):
            if self._opened(service.bank.name) is not service:
                del self._settled[identity], self._sending[identity]
        services = [service for service, _ in self._settled.values()] + self._followed()
        return list({service.bank.name: service for service in services}.values())

    def _is_due(self, service: BankService) -> bool:
        """Whether a notification is due, or a change that may cause one."""
        bank = service.bank
        if not bank.settings.notifications:
            return False
        now = bank.clock.stamp()
        dues = (notifications.next_due(bank), progression.next_due(bank))
        return any(due is not None and due <= now for due in dues)

    def _has_work(self, service: BankService) -> bool:
        if not service.bank.settings.notifications:
            return False
        claimed = service.bank.documents.find(NOTIFICATION, state="sending")
        abandoned = any(one["id"] not in self._sending for one in claimed)
        return abandoned or (self._is_due(service) and len(self._sending) < MOST)

    async def _serve(self, service: BankService, post: Post) -> None:
        """Settle answered notifications of a bank, claim due ones and send them."""
        settled = {identity: outcome for identity, (one, outcome) in self._settled.items() if one is service}
        if not (settled or self._has_work(service)):
            return
        claim = partial(self._claim, service, settled, service.settling())
        while (claimed := await self._change(service, claim)) is None:
            await asyncio.sleep(0)  # requests come between
        for identity in settled:
            del self._settled[identity], self._sending[identity]
        for notification in claimed:
            if notifications.is_claimed(service.bank, notification["id"]):
                self._sending[notification["id"]] = notification["tpp"]
                sending = asyncio.get_running_loop().create_task(self._send(service, notification, post))
                self._posts.add(sending)
                sending.add_done_callback(self._posts.discard)

    def _claim(
        self, service: BankService, settled: Mapping[str, DeliveryResult], pieces: Iterator[None]
    ) -> list[Notification] | None:
        """Settle, release and claim notifications of a bank in one change; returns those to send.

        None after a piece of what is due in the bank, while there is more.
        """
        bank = service.bank
        if next(pieces, self) is None:
            return None
        with bank.documents.transaction():
            for identity, outcome in settled.items():
                notifications.settle(bank, identity, outcome)
            notifications.release_abandoned(bank, sending=self._sending)
            if not bank.settings.notifications:
                return []
            in_flight = Counter(tpp for identity, tpp in self._sending.items() if identity not in settled)
            most = MOST - in_flight.total()
            return notifications.claim(bank, room=in_flight, most=most, each=EACH)

    async def _send(self, service: BankService, notification: Notification, post: Post) -> None:
        body = json.dumps(notification["body"], separators=(",", ":")).encode()
        outcome = await post(notification["uri"], body, notification["id"], notification.get("traceparent"))
        self._settled[notification["id"]] = service, outcome
        self._woken.set()
