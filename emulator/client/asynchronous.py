"""The asynchronous signed client; aiohttp is imported when the first request goes out."""

from __future__ import annotations

import errno
import ssl
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from emulator.client.identity import HoldsKey
from emulator.client.response import Headers, Response
from emulator.client.tpp import HeaderChanges, Options, Prepared, Tpp, real_now
from emulator.httpsig.sendable import check_sendable

if TYPE_CHECKING:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientSession


class AsyncTppClient(Tpp):
    """As TppClient, with coroutines and for many requests at once; close it, or use `async with`.

    Raises OSError for a `ca` that cannot be read, and where no answer comes.
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
        self._verify = True if ca is None else ssl.create_default_context(cafile=str(ca))
        self._session: ClientSession | None = None

    async def request(self, method: str, path: str, **options: Unpack[Options]) -> Response:
        """Send a signed request; options as for `prepare`."""
        return await self.send(self.prepare(method, path, **options))

    async def get(self, path: str, **options: Unpack[Options]) -> Response:
        """GET `path`."""
        return await self.request("GET", path, **options)

    async def post(self, path: str, **options: Unpack[Options]) -> Response:
        """POST to `path`."""
        return await self.request("POST", path, **options)

    async def put(self, path: str, **options: Unpack[Options]) -> Response:
        """PUT to `path`."""
        return await self.request("PUT", path, **options)

    async def delete(self, path: str, **options: Unpack[Options]) -> Response:
        """DELETE `path`."""
        return await self.request("DELETE", path, **options)

    async def send(self, prepared: Prepared) -> Response:
        """Send a prepared request as it stands; repeating it repeats its X-Request-ID and signature."""
        from yarl import URL  # comes with aiohttp

        check_sendable(prepared.method, prepared.target, prepared.headers)
        if self._session is None:
            self._session = self._new_session()
        async with self._session.request(
            prepared.method,
            URL(self.origin + prepared.target, encoded=True),
            headers=prepared.headers,
            data=prepared.body or None,
            allow_redirects=False,
        ) as answer:
            pairs = [(name, value) for name, value in answer.headers.items()]
            return Response(answer.status, Headers(pairs), await answer.read())

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _new_session(self) -> ClientSession:
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

        return ClientSession(
            connector=TCPConnector(ssl=self._verify, limit=0),
            timeout=ClientTimeout(total=self._timeout),
            cookie_jar=DummyCookieJar(),  # as the synchronous client: what is sent is what was asked for
            auto_decompress=False,  # a body is given as it came, as by the synchronous client
            skip_auto_headers=("User-Agent", "Accept-Encoding", "Content-Type"),
            middlewares=(_once,),
        )


async def _once(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Send a request a single time: aiohttp itself would repeat a GET, PUT or DELETE whose answer is lost."""
    from aiohttp import ClientConnectorError, ClientOSError, ServerDisconnectedError

    try:
        return await send(request)
    except ClientConnectorError:
        raise
    except (ClientOSError, ServerDisconnectedError) as lost:
        # aiohttp hands this on as a ClientOSError, which is an OSError and a ClientError.
        raise ConnectionResetError(errno.ECONNRESET, "the connection was closed without an answer") from lost
