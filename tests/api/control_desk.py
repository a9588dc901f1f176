"""The control interface without a socket: JSON in, status and JSON out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from emulator.api.description import resolved as form
from emulator.api.messages import Request, Response, Stream, finished
from emulator.api.service import BankService
from emulator.assemble.application import BankApplication
from emulator.control import Control
from emulator.control.operations import Error, table
from tests.postgres.remote import RemoteService

BASE = "http://127.0.0.1:8080"
JSON = ("Content-Type", "application/json")


@dataclass
class Answer:
    """Status, headers and JSON body of an answer."""

    status: int
    headers: dict[str, str]
    json: Any

    def errors(self) -> list[tuple[str, str | None]]:
        """Code and path of each message of a refusal."""
        return [(message["code"], message.get("path")) for message in self.json["tppMessages"]]

    def texts(self) -> str:
        """The sentences of a refusal."""
        return " ".join(message["text"] for message in self.json["tppMessages"])


def check_form(method: str, path: str, response: Response) -> None:
    """Every answer has the form that its operation declares, every refusal that of an error."""
    segments = path.partition("?")[0].strip("/").split("/")
    row = next((row for row in table() if row.method == method and _names(row.path, segments)), None)
    if response.status >= 400:
        _form(Error).validate_json(response.body)
    elif row is not None:
        declared = row.answers[response.status].form
        assert (declared is None) == (response.body == b"")
        if declared is not None:
            _form(declared).validate_json(response.body)


def _names(pattern: str, segments: list[str]) -> bool:
    wanted = pattern.strip("/").split("/")
    same = (name == segment or name.startswith("{") for name, segment in zip(wanted, segments, strict=False))
    return len(wanted) == len(segments) and all(same)


@cache
def _form(declared: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form(declared))


class ControlDesk:
    """Asks the control interface about one bank."""

    def __init__(self, control: Control, service: BankService, *, prefix: str = "") -> None:
        self.control = control
        self.service = service
        self._prefix = prefix

    def raw(self, method: str, path: str, *headers: tuple[str, str], body: bytes = b"") -> Response:
        """Send a request as it stands; the Host is a loopback name unless `headers` has one."""
        response = self._answer(method, path, *headers, body=body)
        assert isinstance(response, Response)
        check_form(method, path, response)
        return response

    def events(self) -> Stream:
        """The event stream."""
        stream = self._answer("GET", "/events")
        assert isinstance(stream, Stream)
        return stream

    def _answer(self, method: str, path: str, *headers: tuple[str, str], body: bytes = b"") -> Response | Stream:
        named = any(name.lower() == "host" for name, _ in headers)
        sent = headers if named else (("Host", "127.0.0.1:8080"), *headers)
        request = Request(method, f"{self._prefix}/_emulator{path}", sent, body, BASE, self._prefix)
        remote = isinstance(self.service, RemoteService)
        return finished(self.service.handle(request) if remote else self.control.handle(self.service, request))

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Send JSON; a change without a body sends an empty object."""
        content = b"" if method == "GET" or (method == "DELETE" and body is None) else json.dumps(body or {}).encode()
        if isinstance(body, list):
            content = json.dumps(body).encode()
        response = self.raw(method, path, *([JSON] if content else []), body=content)
        headers = {name.lower(): value for name, value in response.headers}
        return Answer(response.status, headers, json.loads(response.body) if response.body else None)

    def get(self, path: str) -> Any:
        """What a GET answers, which must be fine."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.json
        return answer.json

    def do(self, method: str, path: str, body: Any = None) -> Any:
        """What a change answers, which must be fine."""
        answer = self.ask(method, path, body)
        assert answer.status < 300, answer.json
        return answer.json


def asked(application: BankApplication, method: str, target: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of what a whole application answers; a change without a body sends an empty object."""
    content = json.dumps(body or {}).encode() if method in ("PUT", "POST") else b""
    answer = application.handle(Request(method, target, (("Host", "127.0.0.1:8080"), JSON), content))
    assert isinstance(answer, Response)
    return answer.status, json.loads(answer.body) if answer.body else None
