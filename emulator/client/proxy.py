"""A signing proxy: what plain curl or a REST client sends is signed and passed on (CONTRACT 11, `proxy`)."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Callable

from aiohttp import ClientError, web

from emulator.client.tpp import AsyncTppClient
from emulator.httpsig.sendable import check_sendable

CALLBACK = "/_proxy/callback"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
LARGEST_BODY = 16 * 1024 * 1024
PATIENCE = 3700.0  # seconds for an answer: beyond the longest scripted delay, for the client has a limit of its own
FINISH_SECONDS = 2.0  # for requests under way when the proxy is told to end; then as long again to be broken off
# Belong to one connection, or are made anew for the request that goes on (RFC 9110 7.6.1).
_NOT_PASSED_ON = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
    *("te", "trailer", "transfer-encoding", "upgrade", "expect", "host", "content-length"),
    *("date", "digest", "signature", "tpp-signature-certificate"),
}
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:]+)(?::\d+)?", re.IGNORECASE)
_NOT_PASSED_BACK = {"connection", "content-length", "keep-alive", "transfer-encoding"}


class SigningProxy:
    """Signs and forwards; it also receives the customer after SCA, and sends PSU-ID and session from then on."""

    def __init__(self, client: AsyncTppClient, *, log: Callable[[str], None]) -> None:
        self._client = client
        self._log = log
        self._hosts = set(LOOPBACK)

    async def run(self, host: str, port: int, ready: Callable[[str], None]) -> None:
        """Serve until SIGINT or SIGTERM; `ready` is told the proxy's address. OSError when the port is taken."""
        server = web.Server(self._handle, auto_decompress=False, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=FINISH_SECONDS)
        await runner.setup()
        application = web.TCPSite(runner, host, port)
        await application.start()
        bound = runner.addresses[0][1]
        address = f"http://{host}:{bound}"
        self._hosts.add(host.lower())
        self._client.redirect_uri = address + CALLBACK
        told = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, told.set)
        ready(address)
        try:
            await told.wait()
        finally:
            await runner.cleanup()
            await self._client.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if not all(map(self._is_own, request.headers.getall("Host", []))):
            # A page of another name that resolves to this machine would otherwise sign and change what it likes.
            return _told(403, "The proxy does not answer to this Host name.", code="FORBIDDEN", path="Host")
        if request.path == CALLBACK:
            return self._welcome(request)
        given = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED_ON}
        for name in ("User-Agent", "Accept"):
            given.setdefault(name, "*/*" if name == "Accept" else "bank-emulator-proxy")
        request._client_max_size = LARGEST_BODY
        try:
            check_sendable(request.method, request.raw_path, given)  # in words, before what cannot be signed is signed
            body = await request.read()
            answer = await self._client.request(request.method, request.raw_path, body=body, headers=given)
        except (ClientError, OSError, TimeoutError) as error:
            cause = str(error) or type(error).__name__  # a TimeoutError says nothing more
            self._log(f"{request.method} {request.raw_path} -> no answer: {cause}")
            return _told(502, f"{self._client.base_url} does not answer: {cause}")
        except web.HTTPRequestEntityTooLarge as error:
            return _told(error.status, f"The body is larger than {LARGEST_BODY} bytes.", code="BAD_REQUEST")
        except ValueError as error:
            return _told(400, str(error), code="BAD_REQUEST")
        self._log(f"{request.method} {request.raw_path} -> {answer.status}")
        response = web.Response(status=answer.status, body=answer.body)
        for name, value in answer.headers.pairs:
            if name.lower() not in _NOT_PASSED_BACK:
                response.headers.add(name, value)
        return response

    def _is_own(self, host: str) -> bool:
        parts = _HOST.fullmatch(host)
        return parts is not None and parts[1].lower() in self._hosts

    def _welcome(self, request: web.BaseRequest) -> web.Response:
        told = self._client.remember(request.raw_path)
        if "psu-id" not in told and "code" not in told:
            return web.Response(text="The customer's browser comes here after an SCA; no SCA sent this.\n", status=400)
        if "psu-id" not in told:
            return web.Response(text=f"The SCA failed: {told['code']} {told.get('message', '')}\n", status=200)
        self._log(f"the customer {told['psu-id']} is known; its requests are sent with PSU-ID and session")
        return web.Response(text="The customer is known to the proxy now. Repeat your request.\n")


def _told(status: int, text: str, *, code: str = "SYSTEM_ERROR", **path: str) -> web.Response:
    body = {"tppMessages": [{"category": "ERROR", "code": code, **path, "text": text}]}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")
