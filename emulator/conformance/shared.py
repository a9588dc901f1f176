"""The conformance report of a bank that several processes serve: each judges the requests to all of them.

The observations of this process wait until those of the others were fetched from the shared request log (`collect`).
Then all of them are brought into the order of the bank: an exchange stands after the last change of the bank that it
could see, exchanges among each other by their numbers. What only one process can see, a browser at a page or what a
plan has played, is published as an event that no stream shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from emulator.api.log import Exchange
from emulator.bank.bank import PRIVATE, Bank, Event
from emulator.bank.clock import real_seconds
from emulator.conformance.observer import MOST_BYTES, MOST_QUEUED, Change, Conformance

Order = tuple[int, int]
"""The number of the bank's last change, then 0 for that change and the number of an exchange after it."""


class SharedConformance(Conformance):
    """The report on the TPPs of one bank; `demand` is called before it is read: see NotFetched."""

    def __init__(self, bank: Bank, demand: Callable[[], None], clock: Callable[[], float] = real_seconds) -> None:
        super().__init__(bank, clock)
        self._demand = demand
        self._seen: list[tuple[Order, float, Exchange | Change, int]] = []  # order, real time, bytes of bodies
        self._seen_bytes = 0
        self.since = 0  # the change with which the report began again

    @property
    def waits(self) -> bool:
        """Whether this process has seen something that is not judged before `collect`."""
        return bool(self._seen)

    def collect(self, exchanges: Iterable[Exchange]) -> None:
        """Add the exchanges of other processes, and queue everything so far for judgement, in order."""
        if self.on:
            for exchange in exchanges:
                self.request(exchange)
        seen, self._seen, self._seen_bytes = self._seen, [], 0
        for _, received, one, size in sorted(seen, key=lambda entry: entry[:2]):
            super()._add(one, size, received)

    def begin_again(self, since: int) -> None:
        """Drop the observations before a change."""
        if since > self.since:
            self.since = since
            super().forget()
            self._seen = [entry for entry in self._seen if entry[0][0] >= since]

    # What is seen

    def event(self, event: Event) -> None:
        """Record a change that the bank announces, whichever process made it."""
        kind = event["type"]
        if kind == "reset" or (kind == "conformance" and event["status"] == "cleared"):
            self.begin_again(self._bank.documents.sequence)
        elif kind == PRIVATE:
            _OF_ALL[event["about"]](self, *event["arguments"])
        else:
            super().event(event)

    def forget(self) -> None:
        """Nothing to do here: every process drops its observations at the event of the change."""

    def page(self, token: str, tpp: str | None, *, link: str) -> None:
        """Record a browser at an SCA page, in every process."""
        self._publish("page", token, tpp, link)

    def _page(self, token: str, tpp: str | None, link: str) -> None:
        super().page(token, tpp, link=link)

    def observe(self, tpp: str, value: Mapping[str, Any]) -> None:
        """Record an action of a run, in every process."""
        self._publish("plan", tpp, dict(value))

    def _observe(self, tpp: str, value: Mapping[str, Any]) -> None:
        super().observe(tpp, value)

    def believe(self, beliefs: Mapping[str, Mapping[str, Any]]) -> None:
        """Record the claims of the TPP, in every process."""
        self._publish("beliefs", {name: dict(belief) for name, belief in beliefs.items()})

    def _believe(self, beliefs: Mapping[str, Mapping[str, Any]]) -> None:
        super().believe(beliefs)

    def _publish(self, about: str, *arguments: Any) -> None:
        self._bank.publish({"type": PRIVATE, "about": about, "arguments": arguments})

    def _add(self, seen: Exchange | Change, size: int = 0, received: float | None = None) -> None:
        if isinstance(seen, Exchange):
            order, received = (seen.sequence, seen.id), seen.received or received
        else:
            order = (self._bank.documents.sequence, 0)
        if order[0] < self.since:
            return
        self._seen.append((order, received or self.clock(), seen, size))
        self._seen_bytes += size
        if len(self._seen) > MOST_QUEUED or self._seen_bytes > MOST_BYTES:
            self.collect(())

    # What is read

    def _judge(self) -> Any:
        self._demand()
        self.collect(())
        return super()._judge()

    def opened(self) -> list[str]:
        """The SCAs whose page a browser has opened, at any process."""
        self._demand()
        return super().opened()


# What is done in every process about a private event.
_OF_ALL: Mapping[str, Callable[..., None]] = {
    "page": SharedConformance._page,
    "plan": SharedConformance._observe,
    "beliefs": SharedConformance._believe,
}
