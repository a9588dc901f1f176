"""An emulator with all its pages on a free port, served by a thread of this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from emulator.api.messages import Request
from emulator.assemble.local_banks import LocalBanks
from tests.known_state import KARI, STRAKS
from tests.unit.pages.living import Living, straks


class ServedPages:
    """The emulator behind a real port. `run` calls a function in the server's thread, which owns the bank."""

    def __init__(self, emulator: Living, banks: LocalBanks) -> None:
        self.emulator = emulator
        self.url = emulator.base
        self._banks = banks

    def run(self, function: Any, *arguments: Any, **named: Any) -> Any:
        """The function's answer."""
        return self._banks.call(lambda: function(*arguments, **named))

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
    emulator = Living(**options)
    with closing(LocalBanks(emulator.application)) as banks:
        emulator.served_at(banks.url)
        yield ServedPages(emulator, banks)
