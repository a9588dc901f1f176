"""The synchronous signed client, on the standard library's http.client."""

from __future__ import annotations

import selectors
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack
from urllib.parse import urlsplit

from emulator.client.identity import HoldsKey
from emulator.client.response import Headers, Response
from emulator.client.tpp import HeaderChanges, Options, Prepared, Tpp, real_now
from emulator.httpsig.sendable import check_sendable


class TppClient(Tpp):
    """A signed client: `client.post("/v1/...", json=...)` -> Response, from one thread or several at once.

    Connections are kept open, as many as requests were under way at once; one that fails is not tried again: the
    request may have been carried out. `ca` is the file of the CA that the bank's TLS certificate must come from
    (default: those of the system), `timeout` in seconds. Further arguments as for Tpp.
    """

    def __init__(
        self,
        base_url: str,
        identity: HoldsKey,
        *,
        defaults: HeaderChanges | None = None,
        clock: Callable[[], datetime] = real_now,
        ca: str | Path | None = None,
        timeout: float = 30,
    ) -> None:
        super().__init__(base_url, identity, defaults=defaults, clock=clock)
        self._timeout = timeout
        self._ca = ca
        self._idle: list[HTTPConnection] = []

    def request(self, method: str, path: str, **options: Unpack[Options]) -> Response:
        """Send a signed request; options as for `prepare`."""
        return self.send(self.prepare(method, path, **options))

    def get(self, path: str, **options: Unpack[Options]) -> Response:
        """GET `path`."""
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Unpack[Options]) -> Response:
        """POST to `path`."""
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Unpack[Options]) -> Response:
        """PUT to `path`."""
        return self.request("PUT", path, **options)

    def delete(self, path: str, **options: Unpack[Options]) -> Response:
        """DELETE `path`."""
        return self.request("DELETE", path, **options)

    def send(self, prepared: Prepared) -> Response:
        """Send a prepared request as it stands; repeating it repeats its X-Request-ID and signature."""
        check_sendable(prepared.method, prepared.target, prepared.headers)
        connection = self._live_connection()
        try:
            connection.putrequest(prepared.method, prepared.target, skip_host=True, skip_accept_encoding=True)
            for name, value in prepared.headers.items():
                connection.putheader(name, value.encode())
            if prepared.body or prepared.method in ("POST", "PUT", "PATCH"):
                connection.putheader("Content-Length", str(len(prepared.body)))
            connection.endheaders(prepared.body or None)
            received = connection.getresponse()
            answer = Response(received.status, Headers(received.getheaders()), received.read())
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer

    def close(self) -> None:
        """Close what is open; the next request opens a connection again."""
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _live_connection(self) -> HTTPConnection:
        """A connection for one request: one that is idle, unless the bank has closed it meanwhile."""
        with suppress(IndexError):  # none is left; other threads take from them too
            while not _is_live(connection := self._idle.pop()):
                connection.close()
            return connection
        return self._new_connection()

    def _new_connection(self) -> HTTPConnection:
        parts = urlsplit(self.origin)
        host = parts.hostname or ""
        if parts.scheme == "http":
            return HTTPConnection(host, parts.port, timeout=self._timeout)
        context = ssl.create_default_context(cafile=str(self._ca) if self._ca is not None else None)
        return HTTPSConnection(host, parts.port, timeout=self._timeout, context=context)


def _is_live(connection: HTTPConnection) -> bool:
    if connection.sock is None:  # it opens by itself
        return True
    # select.select() takes no file beyond the first 1024 of a process
    with selectors.DefaultSelector() as ready:
        ready.register(connection.sock, selectors.EVENT_READ)
        return not ready.select(0)  # nothing was asked, so this would be the end of the stream
