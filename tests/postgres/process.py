"""A process over a shared store without its web server, in the event loop of the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from emulator.assemble.shared.registry import SharedRegistry
from emulator.assemble.shared.starting import assembled
from emulator.assemble.shared.turns import SharedTurns

from emulator.api.messages import Answered, Request, Response, Steps, Unfinished
from emulator.bank.clock import LIVE
from emulator.settings import ServeSettings

HEADERS = (("Host", "127.0.0.1:8080"), ("Content-Type", "application/json"))


class Process:
    """One process over the store, without its web server."""

    def __init__(self, turns: SharedTurns, registry: SharedRegistry) -> None:
        self.turns = turns
        self.registry = registry

    def answer_with(self, steps: Callable[[], Steps]) -> None:
        """Answer every request from now on with these steps."""

        def answer(request: Request) -> Answered:
            return (request.unfinished or Unfinished(steps())).step()

        self.turns.answers = answer

    def ask(self, method: str, path: str, body: Any = None, *, bank: str = "") -> asyncio.Future[Answered]:
        """The answer to a control request, or its first step."""
        content = b"" if method == "GET" else json.dumps(body or {}).encode()
        return self.go_on(Request(method, f"{bank and f'/banks/{bank}'}/_emulator/{path}", HEADERS, content))

    def go_on(self, request: Request) -> asyncio.Future[Answered]:
        """The answer to a request, or the next step of it, which the web server asks for as often as there is one."""
        awaited = None if request.unfinished is None else request.unfinished.awaits
        if awaited is not None and not awaited.done():
            return asyncio.ensure_future(self._go_on_after(asyncio.wrap_future(awaited), request))
        (answer,) = self.turns.begin([request])
        answer.add_done_callback(lambda done: setattr(request, "unfinished", _unfinished(done)))
        return answer

    async def _go_on_after(self, awaited: asyncio.Future[Any], request: Request) -> Answered:
        await asyncio.wait([awaited])
        return await self.go_on(request)

    async def answer(self, method: str, path: str, body: Any = None, *, bank: str = "") -> Answered:
        """The answer to a control request in the end."""
        content = b"" if method == "GET" else json.dumps(body or {}).encode()
        request = Request(method, f"{bank and f'/banks/{bank}'}/_emulator/{path}", HEADERS, content)
        while isinstance(answer := await self.go_on(request), Unfinished):
            await asyncio.sleep(0)
        return answer

    async def control(self, method: str, path: str, body: Any = None, *, bank: str = "", status: int = 200) -> Any:
        """What a control request is answered in the end."""
        answer = await self.answer(method, path, body, bank=bank)
        assert isinstance(answer, Response)
        assert answer.status == status, answer.body
        return json.loads(answer.body) if answer.body else None


def _unfinished(done: asyncio.Future[Answered]) -> Unfinished | None:
    return answer if not done.cancelled() and isinstance(answer := done.result(), Unfinished) else None


@asynccontextmanager
async def process(store_url: str, state: Path) -> AsyncIterator[Process]:
    settings = ServeSettings(state=state, store=store_url)
    application = await asyncio.to_thread(assembled, settings, LIVE)
    turns, registry = application.turn(), application._registry
    assert isinstance(turns, SharedTurns)
    assert isinstance(registry, SharedRegistry)
    turns.start()
    try:
        yield Process(turns, registry)
    finally:
        turns.stop()
