"""A receiver of status notifications in a test: an HTTP server on a free port that records its requests."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from emulator.testing.loop import LoopThread


@dataclass(frozen=True, slots=True)
class Received:
    """A notification as received: headers by lower-case name, and the JSON body."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class Receiver:
    """Receives notifications at `uri` and answers 204; `received` has them in the order of arrival."""

    def __init__(self, loop: LoopThread) -> None:
        self.received: list[Received] = []
        self._loop = loop
        self._answers: deque[int] = deque()
        self._runner, port = loop.run(self._start())
        self.uri = f"http://127.0.0.1:{port}/notifications"

    def answer(self, *statuses: int) -> None:
        """Answer the next notifications with these statuses, then 204 again."""
        self._answers.extend(statuses)

    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the notifications, in the order of arrival."""
        return [one.body for one in self.received]

    def stop(self) -> None:
        """Close the port."""
        self._loop.run(self._runner.cleanup())

    async def _start(self) -> tuple[web.ServerRunner, int]:
        runner = web.ServerRunner(web.Server(self._receive))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, runner.addresses[0][1]

    async def _receive(self, request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.received.append(Received(request.path, headers, json.loads(await request.read())))
        return web.Response(status=self._answers.popleft() if self._answers else 204)
