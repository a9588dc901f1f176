"""From a parsed head to an answer: the only place where the web room calls the core."""

from __future__ import annotations

from emulator.api.messages import AT_ONCE, Request, Response, Stream
from emulator.store import Store, StoreUnwritable
from emulator.web import wire
from emulator.web.answers import Answer, EventStream, Hangup, Refusal, Sent
from emulator.web.encoding import encode
from emulator.web.exchange import Exchange, Refused
from emulator.web.limits import MAX_HEAD_BYTES
from emulator.web.refusals import wire_refusal
from emulator.web.site import Site
from emulator.web.upkeep import Upkeep
from emulator.web.wake import Watchers


class Handler:
    """Called by aiohttp with each exchange; never raises for what a client sends."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._upkeep = Upkeep()
        self.watchers = Watchers(site)

    async def __call__(self, exchange: Exchange) -> Sent:
        try:
            request = await self._request(exchange)
        except Refused as refused:
            return Refusal(exchange, refused.response)
        except ConnectionError:
            return Hangup(exchange)
        answer = self._site.handle(request)
        store = self._site.store_for(request)
        if store is not None:
            if store.compaction_due:
                self._upkeep.compact(store)
            if store.sync_needed:
                answer = await self._synced(store, answer)
        if self.watchers:
            self.watchers.look_again()
        if isinstance(answer, Stream):
            return EventStream(exchange, answer, self.watchers)
        return await self._deliver(exchange, answer)

    async def _request(self, exchange: Exchange) -> Request:
        message = exchange.message
        refusal = wire.fault(message)
        if refusal is None and exchange.connection.received > MAX_HEAD_BYTES:
            refusal = wire.head_too_large(message)
        if refusal is not None:
            raise Refused(refusal)
        target = wire.origin_form(message)
        if target is None:
            raise Refused(wire_refusal(400, "The request target names another host than Host does."))
        body = await exchange.body()
        base = exchange.connection.base.of(message.headers.get("Host"))
        return Request(message.method, target, wire.header_pairs(message), body, base)

    async def _synced(self, store: Store, answer: Response | Stream) -> Response | Stream:
        """`answer` once what it tells is safe, or 503: with a failed fsync the change was undone."""
        try:
            await self._upkeep.synced(store)
        except StoreUnwritable as error:
            self._site.undone(store)
            refusal = wire_refusal(503, f"The bank cannot keep its documents: {error}.")
            refusal.headers += [pair for pair in answer.headers if pair[0] == "X-Request-ID"]
            return refusal
        return answer

    async def _deliver(self, exchange: Exchange, response: Response) -> Sent:
        delivery = response.delivery
        if delivery is not AT_ONCE:
            if delivery.delay > 0 and await exchange.gone(delivery.delay):
                return Hangup(exchange)
            if delivery.disconnect is not None:
                return Hangup(exchange)
        encode(response, exchange.message.headers.get("Accept-Encoding"))
        return Answer(exchange, response)
