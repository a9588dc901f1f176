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
from collections.abc import Awaitable, Callable, Iterator
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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._working: asyncio.Task[None] | None = None
        self._woken = False
        self._again = False
        self._paused_until = 0.0  # time of the loop
        self._sending: dict[str, str] = {}  # by the id of a notification in flight: its TPP
        self._settled: list[tuple[BankService, str, DeliveryResult]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        """Whether nothing is being sent, and nothing is due."""
        busy = self._woken or self._working is not None or self._sending or self._settled
        return not busy and not any(map(self._is_due, self._followed()))

    def start(self) -> None:
        """Start sending, within a running loop."""
        if self._post is None:
            return
        self._loop = asyncio.get_running_loop()
        for service in self._services():
            self.follow(service)

    def follow(self, service: BankService) -> None:
        """Send the notifications of a bank; called for each bank that is opened."""
        if self._loop is None:
            return  # `start` will do it
        service.bank.documents.follow(NOTIFICATION, self._wake)
        service.bank.documents.follow(META, partial(self._take_note, service))  # settings and clock
        self._take_note(service)

    def _take_note(self, service: BankService) -> None:
        if service.bank.settings.notifications:
            self._notifying[service.bank.name] = service
            self._wake()
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
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()
        for task in tuple(self._tasks):
            task.cancel()

    async def quiet(self) -> None:
        """Return once nothing is in flight and nothing is due; at once after `stop`."""
        while self._loop is not None and not self.idle:
            self._begin()
            if self._tasks:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(TICK)

    def _wake(self) -> None:
        if not self._woken and self._loop is not None:
            self._woken = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        """Start work if there is any, and check again later if bank time may bring some."""
        self._woken = False
        if self._loop is None or self._post is None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        followed = self._followed()
        if followed:
            self._timer = self._loop.call_later(TICK, self._wake)
        if self._working is not None:
            self._again = True
        elif self._loop.time() >= self._paused_until and (self._settled or any(map(self._has_work, followed))):
            self._working = self._spawn(self._work(self._post))

    def _spawn(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

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

    async def _work(self, post: Post) -> None:
        """Settle answered notifications and claim due ones, bank by bank."""
        try:
            settled, self._settled = self._settled, []
            services = {service.bank.name: service for service in self._followed()}
            for service, identity, _ in settled:
                if self._opened(service.bank.name) is service:
                    services[service.bank.name] = service
                else:
                    self._sending.pop(identity, None)
            for service in services.values():
                own = [(identity, outcome) for one, identity, outcome in settled if one is service]
                if own or self._has_work(service):
                    await self._serve(service, own, post)
        finally:
            self._working = None
            if self._again:
                self._again = False
                self._wake()

    async def _serve(self, service: BankService, settled: list[tuple[str, DeliveryResult]], post: Post) -> None:
        try:
            pieces = service.settling()
            claim = partial(self._claim, service, settled, pieces)
            while (claimed := await self._change(service, claim)) is None:
                await asyncio.sleep(0)  # requests come between
        except Exception as error:
            if not isinstance(error, StoreUnwritable):
                logger.exception("notifications could not be sent")
            else:
                logger.error("notifications cannot be sent: %s", error)
            self._settled += [(service, identity, outcome) for identity, outcome in settled]
            self._paused_until = asyncio.get_running_loop().time() + PAUSE
            return
        for identity, _ in settled:
            self._sending.pop(identity, None)
        for notification in claimed:
            if notifications.is_claimed(service.bank, notification["id"]):
                self._sending[notification["id"]] = notification["tpp"]
                self._spawn(self._send(service, notification, post))

    def _claim(
        self, service: BankService, settled: list[tuple[str, DeliveryResult]], pieces: Iterator[None]
    ) -> list[Notification] | None:
        """Settle, release and claim notifications of a bank in one change; returns those to send.

        None after a piece of what is due in the bank, while there is more.
        """
        bank = service.bank
        if next(pieces, self) is None:
            return None
        with bank.documents.transaction():
            for identity, outcome in settled:
                notifications.settle(bank, identity, outcome)
            notifications.release_abandoned(bank, sending=self._sending)
            if not bank.settings.notifications:
                return []
            answered = {identity for identity, _ in settled}
            in_flight = Counter(tpp for identity, tpp in self._sending.items() if identity not in answered)
            most = MOST - in_flight.total()
            return notifications.claim(bank, room=in_flight, most=most, each=EACH)

    async def _send(self, service: BankService, notification: Notification, post: Post) -> None:
        body = json.dumps(notification["body"], separators=(",", ":")).encode()
        outcome = await post(notification["uri"], body, notification["id"], notification.get("traceparent"))
        self._settled.append((service, notification["id"], outcome))
        self._wake()
