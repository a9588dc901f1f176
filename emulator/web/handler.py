"""From a parsed head to an answer: the only place where the web room calls the core."""

from __future__ import annotations

from emulator.api.messages import AT_ONCE, Request, Response, Stream
from emulator.web import wire
from emulator.web.answers import Answer, EventStream, Hangup, Refusal, Sent
from emulator.web.encoding import encode
from emulator.web.exchange import Exchange, Refused
from emulator.web.limits import MAX_HEAD_BYTES
from emulator.web.refusals import wire_refusal
from emulator.web.site import Site
from emulator.web.wake import Watchers


class Handler:
    """Called by aiohttp with each exchange; never raises for what a client sends."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.watchers = Watchers(site)

    async def __call__(self, exchange: Exchange) -> Sent:
        try:
            request = await self._request(exchange)
        except Refused as refused:
            return Refusal(exchange, refused.response)
        except ConnectionError:
            return Hangup(exchange)
        answer = self._site.handle(request)
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

    async def _deliver(self, exchange: Exchange, response: Response) -> Sent:
        delivery = response.delivery
        if delivery is not AT_ONCE:
            if delivery.delay > 0 and await exchange.gone(delivery.delay):
                return Hangup(exchange)
            if delivery.disconnect is not None:
                return Hangup(exchange)
        encode(response, exchange.message.headers.get("Accept-Encoding"))
        return Answer(exchange, response)
