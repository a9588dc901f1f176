"""A signing proxy: signs and forwards requests that plain curl or a REST client sends.

Anyone who can reach it acts as the TPP, so it serves programs of this machine only: it listens on the loopback
address, answers to its own host names only, and refuses requests from web pages of other sites. After an SCA the
customer returns to an address that contains a nonce of the request that started the SCA. A return without a known
nonce is refused, because it could make the proxy use another person's session.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import urlsplit

from aiohttp import ClientError, HttpVersion11, web
from multidict import CIMultiDictProxy

from emulator.client.clients import AsyncTppClient
from emulator.httpsig.sendable import Prepared, one_line_each
from emulator.signals import ending_signals
from emulator.terminal import one_line

CALLBACK = "/_proxy/callback/"
HOST = "127.0.0.1"
LOOPBACK = frozenset({"localhost", HOST, "[::1]"})
BODY_SECONDS = 30.0  # for a body to arrive, as at the bank
ANSWER_TIMEOUT = 3700.0  # seconds: longer than the longest scripted delay, since the client has its own limit
FINISH_SECONDS = 2.0  # for requests in progress at shutdown; after twice this time they are cancelled
OPEN_FLOWS = 1000  # the number of requests that may wait for the customer's return
# Belong to one connection, or are set again for the forwarded request (RFC 9110 7.6.1).
_NOT_FORWARDED = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
    *("te", "trailer", "transfer-encoding", "upgrade", "expect", "host", "content-length"),
    *("date", "digest", "signature", "tpp-signature-certificate"),
}
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:]+)(?::\d+)?", re.IGNORECASE)
_NOT_RETURNED = {"connection", "content-length", "keep-alive", "transfer-encoding"}


class _OneLineErrors(logging.Handler):
    """Passes on each error that the HTTP server logs as one line, without its traceback."""

    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        cause = f": {error or type(error).__name__}" if error is not None else ""
        self._log(one_line(" ".join(f"{record.getMessage()}{cause}".split())))


class SigningProxy:
    """Signs and forwards requests; after an SCA it receives the customer, and then sends PSU-ID and session id."""

    def __init__(self, client: AsyncTppClient, *, log: Callable[[str], None]) -> None:
        self._client = client
        self._log = log
        self._port = 0
        self._address = ""
        self._nonces: OrderedDict[str, None] = OrderedDict()  # of requests whose customer has not returned yet

    async def run(self, port: int, ready: Callable[[str], None]) -> None:
        """Serve until a signal ends it; `ready` receives the proxy's address. Raises OSError if the port is in use."""
        errors = logging.Logger("proxy", logging.WARNING)  # of this proxy alone: nothing else writes to it
        errors.addHandler(_OneLineErrors(self._log))
        server = web.Server(self._handle, auto_decompress=False, handler_cancellation=True, logger=errors)
        runner = web.ServerRunner(server, shutdown_timeout=FINISH_SECONDS)
        await runner.setup()
        await web.TCPSite(runner, HOST, port).start()
        self._port = runner.addresses[0][1]
        self._address = f"http://{HOST}:{self._port}"
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in ending_signals():
            loop.add_signal_handler(number, stopped.set)
        ready(self._address)
        try:
            await stopped.wait()
        finally:
            await runner.cleanup()
            await self._client.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if not all(map(self._is_own_host, request.headers.getall("Host", []))):
            # Otherwise a web page whose host name resolves to this machine could act as the TPP (DNS rebinding).
            return _refused(403, "The proxy does not answer to this Host name.", code="FORBIDDEN", path="Host")
        if request.path.startswith(CALLBACK) or request.path == CALLBACK.rstrip("/"):
            return self._receive_customer(request)
        if (header := self._foreign_header(request.headers)) is not None:
            self._log_request(request, f"refused: {header} shows that a web page sent it")
            text = "The proxy does not sign requests of other sites' web pages; send requests from a program."
            return _refused(403, text, code="FORBIDDEN", path=header)
        return await self._forward(request)

    async def _forward(self, request: web.BaseRequest) -> web.StreamResponse:
        lines = [(name, value) for name, value in request.headers.items() if name.lower() not in _NOT_FORWARDED]
        for name, default in (("User-Agent", "bank-emulator-proxy"), ("Accept", "*/*")):
            lines += [] if name in request.headers else [(name, default)]
        if "TPP-Redirect-URI" not in request.headers:
            lines.append(("TPP-Redirect-URI", self._new_return_address()))
        try:
            headers = one_line_each(lines)
            Prepared(request.method, request.raw_path, headers, b"").check()  # first: its errors say what is wrong
            body = await _body(request)
            answer = await self._client.request(request.method, request.raw_path, body=body, headers=headers)
        except (ClientError, OSError, TimeoutError) as error:
            reason = error.strerror if isinstance(error, OSError) else None  # without the number of the error
            cause = reason or str(error) or type(error).__name__  # a TimeoutError has no text
            self._log_request(request, f"no answer: {cause}")
            return _refused(502, f"{self._client.base_url} does not answer: {cause}")
        except web.HTTPException as refused:
            self._log_request(request, f"refused: {refused.text}")
            response = _refused(refused.status, str(refused.text), code="BAD_REQUEST")
            response.force_close()
            return response
        except ValueError as error:
            return _refused(400, str(error), code="BAD_REQUEST")
        self._log_request(request, str(answer.status))
        response = web.Response(status=answer.status, body=answer.body)
        for name, value in answer.headers.pairs:
            if name.lower() not in _NOT_RETURNED:
                response.headers.add(name, value)
        return response

    def _log_request(self, request: web.BaseRequest, outcome: str) -> None:
        self._log(one_line(f"{request.method} {request.raw_path} -> {outcome}"))

    def _is_own_host(self, host: str) -> bool:
        parts = _HOST.fullmatch(host)
        return parts is not None and parts[1].lower() in LOOPBACK

    def _foreign_header(self, headers: CIMultiDictProxy[str]) -> str | None:
        """The header that shows that another site's page sent this request; None for a program or the proxy itself.

        A page on another port of this machine counts as another site. Programs send none of these headers; browsers
        send Origin with every write, and Sec-Fetch-Site (older ones Referer) with other requests.
        """
        if not all(map(self._is_own_origin, headers.getall("Origin", []))):
            return "Origin"
        if not {site.strip().lower() for site in headers.getall("Sec-Fetch-Site", [])} <= {"same-origin", "none"}:
            return "Sec-Fetch-Site"
        return None if all(map(self._is_own_origin, headers.getall("Referer", []))) else "Referer"

    def _is_own_origin(self, address: str) -> bool:
        try:
            parts = urlsplit(address)
            return parts.scheme == "http" and parts.port == self._port and self._is_own_host(parts.netloc)
        except ValueError:
            return False

    def _new_return_address(self) -> str:
        nonce = secrets.token_urlsafe(16)
        self._nonces[nonce] = None
        if len(self._nonces) > OPEN_FLOWS:
            self._nonces.popitem(last=False)
        return f"{self._address}{CALLBACK}{nonce}"

    def _receive_customer(self, request: web.BaseRequest) -> web.Response:
        nonce = request.path.removeprefix(CALLBACK)
        embedded = request.headers.get("Sec-Fetch-Dest", "document") != "document"
        if request.method != "GET" or embedded or nonce not in self._nonces:
            text = "This is not the return address of an open SCA of this proxy, or the customer has already returned."
            self._log_request(request, "refused: no open SCA")
            return web.Response(text=f"{text}\n", status=400)
        query = self._client.remember(request.raw_path)
        if "psu-id" not in query and "code" not in query:
            return web.Response(text="The customer's browser returns here after an SCA.\n", status=400)
        del self._nonces[nonce]
        if "psu-id" not in query:
            return web.Response(text=f"The SCA failed: {query['code']} {query.get('message', '')}\n", status=200)
        self._log(one_line(f"customer {query['psu-id']}: requests are sent with PSU-ID and session id from now on"))
        return web.Response(text="The proxy now sends the customer's PSU-ID and session id. Repeat your request.\n")


async def _body(request: web.BaseRequest) -> bytes:
    """The whole body; raises HTTPException for one over 1 MiB, which no bank takes, and one that does not arrive."""
    if request.headers.get("Expect", "").lower() == "100-continue" and request.version == HttpVersion11:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        text = f"The body did not arrive whole within {BODY_SECONDS:g} seconds."
        raise web.HTTPRequestTimeout(text=text) from None


def _refused(status: int, text: str, *, code: str = "SYSTEM_ERROR", **path: str) -> web.Response:
    body = {"tppMessages": [{"category": "ERROR", "code": code, **path, "text": text}]}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")
