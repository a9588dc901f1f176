"""An emulator with all its pages on a free port, served by a thread of this process."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from emulator.api.messages import Request
from emulator.web.server import WebServer, listen, port_of
from tests.known_state import KARI, STRAKS
from tests.unit.pages.living import Living, straks


class ServedPages:
    """The emulator behind a real port. `run` calls a function in the server's thread, which owns the bank."""

    def __init__(self, emulator: Living, loop: asyncio.AbstractEventLoop) -> None:
        self.emulator = emulator
        self.url = emulator.base
        self._loop = loop

    def run(self, function: Any, *arguments: Any, **named: Any) -> Any:
        """The function's answer."""

        async def call() -> Any:
            return function(*arguments, **named)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(30)

    def call(self, method: str, path: str, **options: Any) -> Any:
        """The TPP sends a signed request; the JSON answer."""
        answer = self.run(self.emulator.call, method, path, **options)
        return json.loads(answer.body) if answer.body else None

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the control interface; the JSON answer."""
        headers = (("Host", "127.0.0.1"), ("Content-Type", "application/json"))
        content = b"" if body is None else json.dumps(body).encode()
        request = Request(method, f"/_emulator/{path}", headers, content, base=self.url)
        answer = self.run(self.emulator.application.handle, request)
        return json.loads(answer.body) if answer.body else None

    def log_in(self, person: str = KARI) -> None:
        """A customer at the demo TPP, without the pages."""
        self.emulator.tpp.use_session(self.control("POST", "sessions", {"tpp": "demo", "nationalId": person}))

    def paid(self) -> str:
        """A payment of Kari's that waits for her; its id."""
        self.log_in()
        return str(self.call("POST", STRAKS, json=straks(), headers={"PSU-Context": "PRIVATE"})["paymentId"])


@contextmanager
def served_pages(**options: Any) -> Iterator[ServedPages]:
    """A running emulator; `options` as `Living` takes them."""
    sockets = listen(["127.0.0.1"], 0)
    ready = threading.Event()
    held: list[ServedPages] = []
    failed: list[BaseException] = []
    ending: list[asyncio.Event] = []

    async def serve() -> None:
        emulator = Living(base=f"http://127.0.0.1:{port_of(sockets)}", **options)
        server = WebServer(emulator.application, host="127.0.0.1", plain=sockets)
        await server.start()
        ending.append(asyncio.Event())
        held.append(ServedPages(emulator, asyncio.get_running_loop()))
        ready.set()
        await ending[0].wait()
        await server.stop()
        emulator.registry.close()

    def whole() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=whole, daemon=True)
    thread.start()
    ready.wait(30)
    if failed:
        raise failed[0]
    served = held[0]
    try:
        yield served
    finally:
        served._loop.call_soon_threadsafe(ending[0].set)
        thread.join(30)
