"""The synchronous signed client, on the standard library's http.client."""

from __future__ import annotations

import selectors
import ssl
from collections.abc import Callable
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
    """A signed client: `client.post("/v1/...", json=...)` -> Response. One connection is kept open; not for threads.

    `ca` is the file of the CA that the bank's TLS certificate must come from (default: those of the system),
    `timeout` in seconds. A connection that fails is not tried again: the request may have been carried out.
    Further arguments as for Tpp.
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
        self._connection: HTTPConnection | None = None

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
            answer = connection.getresponse()
            return Response(answer.status, Headers(answer.getheaders()), answer.read())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next request opens one again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _live_connection(self) -> HTTPConnection:
        """The open connection, unless the bank has closed it meanwhile."""
        if self._connection is not None and self._connection.sock is not None:
            # select.select() takes no file beyond the first 1024 of a process
            with selectors.DefaultSelector() as ready:
                ready.register(self._connection.sock, selectors.EVENT_READ)
                ended = ready.select(0)  # nothing was asked, so this is the end of the stream
            if ended:
                self.close()
        if self._connection is None:
            self._connection = self._new_connection()
        return self._connection

    def _new_connection(self) -> HTTPConnection:
        parts = urlsplit(self.origin)
        host = parts.hostname or ""
        if parts.scheme == "http":
            return HTTPConnection(host, parts.port, timeout=self._timeout)
        context = ssl.create_default_context(cafile=str(self._ca) if self._ca is not None else None)
        return HTTPSConnection(host, parts.port, timeout=self._timeout, context=context)
