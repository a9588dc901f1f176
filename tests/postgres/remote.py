"""The banks of the tests that drive the core without a socket, when these run against a cluster (`--processes N`).

The same calls, sent over HTTP to the balancer: signed requests, the control interface, the pages. Each test begins
with the default bank in its known state on the same Monday. What looks inside a bank and can be read from outside is
read there; a test that asks for more is skipped at that point, so that nothing has to be marked by hand.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from threading import Thread
from typing import Any, NoReturn
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from emulator.api.messages import Delivery, Push, Request, Response, Stream, Unsubscribe
from emulator.bank.clock import oslo_date, stamp
from emulator.bank.kinds import KINDS
from emulator.bank.settings import Settings
from emulator.client import Identity
from emulator.store import Documents, memory_store

PATIENCE = 60.0
BASE = "http://127.0.0.1:8080"
MONDAY = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
JSON = ("Content-Type", "application/json")
READS = frozenset({"get", "exists", "all", "find", "first", "count", "range", "range_count", "first_key", "dump", "at"})


def inside(name: str) -> NoReturn:
    """Skip the test that asks for what only the process of the bank has."""
    pytest.skip(f"looks inside the bank's process: {name}")


class Inside:
    """Whatever is asked of it is inside."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        inside(f"{type(self).__name__}.{name}")


@dataclass
class Wire(Inside):
    """Sends requests of the core to a base address, each on a connection of its own. `sent` counts them.

    `prefix`: of the bank that the control interface is asked about.
    """

    url: str
    prefix: str = ""
    sent: int = 0

    def send(self, request: Request) -> Any:
        if request.base not in ("", BASE):
            inside("another public address")
        self.sent += 1
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
        headers = [*request.headers]
        if not any(name.lower() == "host" for name, _ in headers):
            headers.append(("Host", "127.0.0.1:8080"))
        try:
            connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value.encode("utf-8" if max(value, default="") > "\xff" else "latin-1"))
            has_length = any(name.lower() == "content-length" for name, _ in headers)
            if not has_length and (request.body or request.method in ("POST", "PUT")):
                connection.putheader("Content-Length", str(len(request.body)))
            connection.endheaders(request.body or None)
            answer = connection.getresponse()
            streams = (answer.getheader("Content-Type") or "").startswith("text/event-stream")
            if streams and request.method != "HEAD":
                return Stream(answer.status, answer.getheaders(), lambda push: self._follow(answer, push))
            return Response(answer.status, answer.getheaders(), answer.read())
        except (http.client.HTTPException, ConnectionError):
            return Response(0, delivery=Delivery(disconnect="after"))
        except (UnicodeEncodeError, ValueError) as error:
            inside(f"what no client can send ({error})")
        finally:
            connection.close()  # a response that is read to the end of the connection keeps its socket

    def _follow(self, events: http.client.HTTPResponse, push: Push) -> Unsubscribe:
        """Push events as they come. At the end all have come that were sent before: a last request is one of them."""
        last = str(uuid4())

        def read() -> None:
            chunk = b""
            while last.encode() not in chunk and (line := events.readline()):
                chunk += line
                if line == b"\n" and last.encode() not in chunk:
                    push(chunk)
                    chunk = b""

        reader = Thread(target=read, daemon=True)
        reader.start()

        def end() -> None:
            self.send(Request("GET", f"{self.prefix}/v1/{last}"))
            reader.join(PATIENCE)
            assert not reader.is_alive(), "the stream does not tell of a request"
            events.close()

        return end

    def control(self, method: str, path: str, body: Any = None, *, prefix: str = "") -> Any:
        """What the control interface answers, which must be fine."""
        content = b"" if method == "GET" else json.dumps(body if body is not None else {}).encode()
        headers = (("Host", "127.0.0.1:8080"), JSON)
        answer = self.send(Request(method, f"{prefix or self.prefix}/_emulator/{path}", headers, content))
        if answer.status >= 300 or answer.status == 0:
            raise AssertionError(f"{method} {path}: {answer.status} {answer.body.decode()}")
        return json.loads(answer.body) if answer.body else None


class RemoteDocuments(Inside):
    """The documents as `GET state` has them now; to read only."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __getattr__(self, name: str) -> Any:
        if name not in READS:
            inside(f"documents.{name}")
        return getattr(self._read(), name)

    def _read(self) -> Documents:
        kinds = {kind.name: kind for kind in KINDS}
        store = memory_store(KINDS)
        for name, documents in self._wire.control("GET", "state").items():
            for document in documents:
                store.put(kinds[name], document)
        return store


class RemoteClock(Inside):
    """The bank's clock."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def now(self) -> datetime:
        return datetime.fromisoformat(self._wire.control("GET", "clock")["now"])

    def today(self) -> date:
        return oslo_date(self.now())

    def stamp(self) -> str:
        return stamp(self.now())

    @property
    def mode(self) -> str:
        return str(self._wire.control("GET", "clock")["mode"])

    def set(self, *, now: datetime | None = None, mode: str | None = None) -> None:
        asked = {"now": None if now is None else now.isoformat(), "mode": mode}
        self._wire.control("PUT", "clock", {name: value for name, value in asked.items() if value is not None})

    def advance(self, by: timedelta) -> None:
        self._wire.control("POST", "clock/advance", {"by": f"PT{by.total_seconds():.6f}".rstrip("0").rstrip(".") + "S"})


class RemoteBank(Inside):
    """A bank as it can be seen from outside."""

    def __init__(self, wire: Wire) -> None:
        self.documents = RemoteDocuments(wire)
        self.clock = RemoteClock(wire)
        self._wire = wire

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("documents", "clock", "_wire"):
            inside(f"bank.{name} = ...")
        super().__setattr__(name, value)

    @property
    def settings(self) -> Settings:
        return Settings(**self._wire.control("GET", "settings"))

    def change_settings(self, changes: dict[str, Any]) -> None:
        self._wire.control("PUT", "settings", changes)


class RemoteExchange(Inside):
    """A request in the log, as the control interface shows it."""

    def __init__(self, wire: Wire, entry: dict[str, Any]) -> None:
        self._wire = wire
        self._entry = entry

    @property
    def operation(self) -> str | None:
        return self._entry.get("operation")

    def summary(self) -> dict[str, Any]:
        return self._entry

    def detail(self) -> dict[str, Any]:
        return dict(self._wire.control("GET", f"requests/{self._entry['id']}"))


class RemoteLog(Inside):
    """The request log of a bank."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def entries(self, limit: int = 100) -> list[RemoteExchange]:
        listed = self._wire.control("GET", f"requests?limit={limit}")["requests"]
        return [RemoteExchange(self._wire, entry) for entry in listed]

    def newest(self) -> Iterator[RemoteExchange]:
        return iter(self.entries(1000))

    def clear(self) -> None:
        self._wire.control("DELETE", "requests")


class RemoteService(Inside):
    """What answers for a bank."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.bank = RemoteBank(wire)
        self.log = RemoteLog(wire)

    def begin_anew(self, now: datetime) -> None:
        """The known state at a moment, at which the clock stands."""
        start = {"from": "known-state", "clock": now.isoformat()}
        self.wire.control("POST", "scenario", {"scenario": "monday", "start": start})
        with suppress(AssertionError):
            self.wire.control("DELETE", "scenario")

    def handle(self, request: Request) -> Response:
        return self.wire.send(request)

    def settle(self) -> None:
        """Whatever is due is applied before the next request is answered."""


class RemoteRegistry(Inside):
    """The banks of the cluster."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.default = RemoteService(wire)

    def names(self) -> list[str]:
        return [bank["name"] for bank in self.wire.control("GET", "banks")["banks"]]

    def make(self, name: str) -> None:
        self.wire.control("PUT", f"banks/{name}")

    def find(self, name: str) -> RemoteService | None:
        return RemoteService(Wire(self.wire.url, f"/banks/{name}")) if name in self.names() else None


class RemoteAuthority(Inside):
    """The sandbox CA of the cluster; TPPs are made by the control interface, once for all tests."""

    def __init__(self, wire: Wire, demo: Identity) -> None:
        self._wire = wire
        self._demo = demo
        self._issued: dict[str, Identity] = {"demo": demo}

    def demo(self) -> Identity:
        return self._demo

    def find(self, name: str) -> Identity | None:
        return self._issued.get(name)

    def issue(self, name: str, **more: Any) -> Identity:
        words = {"organization_identifier": "organizationIdentifier"}
        body = {words.get(word, word): list(given) if word == "roles" else given for word, given in more.items()}
        issued = self._wire.control("POST", "tpps", {"name": name, **body})
        self._issued[name] = Identity.from_pem(issued["certificate"], issued["key"])
        return self._issued[name]


@dataclass
class RemoteBanks:
    """The cluster that a session of tests runs against."""

    wire: Wire
    demo: Identity
    ran: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.authority = RemoteAuthority(self.wire, self.demo)

    def registry(self) -> RemoteRegistry:
        return RemoteRegistry(self.wire)

    def begin(self) -> RemoteService:
        """The default bank in its known state, alone, its clock standing on a Monday morning."""
        for bank in self.wire.control("GET", "banks")["banks"]:
            if bank["name"] != "default":
                self.wire.control("DELETE", f"banks/{bank['name']}")
        for snapshot in self.wire.control("GET", "snapshots")["snapshots"]:
            self.wire.control("DELETE", f"snapshots/{snapshot['name']}")
        service = RemoteService(self.wire)
        service.begin_anew(MONDAY)
        service.log.clear()
        return service


class RemoteLiving(Inside):
    """The whole emulator with its console, as the tests of the pages have it."""

    def __init__(self, banks: RemoteBanks, tpp: Callable[[str, Identity], Any]) -> None:
        self.base = BASE
        self.service = banks.begin()
        self.application = self.service
        self.registry = banks.registry()
        self.tpp = tpp(self.base, banks.demo)

    def visitor(self, **headers: str) -> Any:
        from tests.unit.pages.visitor import Visitor

        return Visitor(RemoteRoom(self.service), self.service, headers=headers.items())

    def call(self, method: str, path: str, **options: Any) -> Response:
        sent = self.tpp.prepare(method, path, **options)
        return self.service.handle(Request(sent.method, sent.target, tuple(sent.headers.items()), sent.body))


class RemoteRoom(Inside):
    """All rooms, as one."""

    def __init__(self, service: RemoteService) -> None:
        self._service = service

    def handle(self, _: Any, request: Request) -> Response:
        return self._service.handle(request)
