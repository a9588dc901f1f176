"""The connections of one listening address, and how they come to their end."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from aiohttp.web_server import Server

from emulator.web.address import Base
from emulator.web.connection import Connection
from emulator.web.exchange import Exchange
from emulator.web.handler import Handler
from emulator.web.limits import Limits


class Listener(Server):
    """The connections of one listening address; `base` tells how that address is written in links."""

    def __init__(self, handler: Handler, base: Base, limits: Limits) -> None:
        # aiohttp asks for its own request and response types and uses the few members that ours have.
        super().__init__(cast(Any, handler), request_factory=cast(Any, Exchange))
        self.handler = handler
        self.base = base
        self.limits = limits
        self.open: set[Connection] = set()
        self.ending = False

    def __call__(self) -> Connection:
        return Connection(self, asyncio.get_running_loop())

    def pre_shutdown(self) -> None:
        """Tell every connection to end with the request it is at; whoever connects from now on is sent away."""
        self.ending = True
        for connection in tuple(self.open):
            connection.give_up_waiting()
        super().pre_shutdown()

    def drop_stuck(self) -> None:
        """Abort the connections that were closing already at the last call: their clients do not read."""
        for connection in tuple(self.open):
            connection.drop_if_stuck()

    def drop_all(self) -> None:
        """Abort what is still open after a shutdown: answers that nobody reads."""
        for connection in tuple(self.open):
            connection.drop()
