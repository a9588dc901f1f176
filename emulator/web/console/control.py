"""The control interface as the console uses it: the same operations as any client, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.api.messages import Request, Response, Stream

if TYPE_CHECKING:
    from emulator.api.service import BankService

# What `assemble` hands in: the control room's own `handle`.
Answering = Callable[["BankService", Request], Response | Stream]


class ControlRefused(Exception):
    """The control interface refused; `status`, the sentences that say why, the `members` of the body at fault."""

    def __init__(self, status: int, texts: list[str], members: frozenset[str] = frozenset()) -> None:
        super().__init__(" ".join(texts))
        self.status = status
        self.texts = texts
        self.members = members


@dataclass(frozen=True, slots=True)
class Control:
    """The control interface of one bank, asked on behalf of one browser request."""

    answering: Answering
    service: BankService
    request: Request
    token: str | None

    def send(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
    ) -> Response | Stream:
        """The raw answer of `/_emulator/PATH`; the Host of the browser's request is kept, for the same checks."""
        headers = [(name, value) for name, value in self.request.headers if name.lower() in ("host", "accept")]
        if body or method in ("POST", "PUT"):
            headers.append(("Content-Type", content_type))
        if self.token is not None:
            headers.append(("Authorization", f"Bearer {self.token}"))
        target = f"{self.request.prefix}/_emulator/{path}"
        asked = Request(method, target, tuple(headers), body, self.request.base, self.request.prefix)
        return self.answering(self.service, asked)

    def ask(self, method: str, path: str, body: Any = None, *, yaml: str | None = None) -> Any:
        """The JSON answer; ControlRefused for 4xx and 5xx."""
        if yaml is not None:
            answer = self.send(method, path, yaml.encode(), "application/yaml")
        else:
            answer = self.send(method, path, b"" if body is None else json.dumps(body).encode())
        if isinstance(answer, Stream):
            raise ControlRefused(500, ["The control interface gave a stream."])
        value = _read(answer)
        if answer.status >= 400:
            messages = _messages(value)
            texts = [_text(message) for message in messages] or [f"The control interface answered {answer.status}."]
            members = frozenset(message.get("path", "").partition(".")[0] for message in messages)
            raise ControlRefused(answer.status, texts, members)
        return value

    def every(self, kind: str) -> list[dict[str, Any]]:
        """All that the control interface lists at an address, as many as it gives at once."""
        found: list[dict[str, Any]] = self.ask("GET", f"{kind}?limit=1000")[kind]
        return found


def _read(answer: Response) -> Any:
    try:
        return json.loads(answer.body) if answer.body else None
    except ValueError:
        return None


def _messages(value: Any) -> list[dict[str, str]]:
    return value.get("tppMessages", []) if isinstance(value, dict) else []


def _text(message: dict[str, str]) -> str:
    return f"{message['text']} ({message['path']})" if message.get("path") else message["text"]
