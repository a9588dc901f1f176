"""A TPP at one bank: its requests, signed and ready to send, and clients that send them, synchronous or not.

aiohttp is imported when an asynchronous client sends its first request.
"""

from __future__ import annotations

import errno
import json
import selectors
import ssl
import uuid
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypedDict, TypeVar, Unpack
from urllib.parse import parse_qs, urlsplit

from emulator.client.signing import HoldsKey, Identity, real_now, signed_headers
from emulator.httpsig.sendable import Prepared, address_of, one_line_each

if TYPE_CHECKING:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientSession


HeaderChanges = Mapping[str, str | None]


class TppOptions(TypedDict, total=False):
    """The options of a TPP; see `Tpp`."""

    defaults: HeaderChanges | None
    clock: Callable[[], datetime]


class Options(TypedDict, total=False):
    """The options of a request besides method and path; see `Tpp.prepare`."""

    json: Any
    body: bytes | str | None
    headers: HeaderChanges | None
    digest: bool | None
    tamper: str | None


class Tpp:
    """A TPP at one bank: signs requests and stores `psu_id`, `session_id`, `psu_corporate_id` and `psu_context`.

    `base_url` may end in a path, such as `http://127.0.0.1:8080/banks/a`. `defaults` are headers of every request; a
    request leaves one out by setting it to None.
    """

    def __init__(
        self,
        base_url: str,
        identity: HoldsKey,
        *,
        defaults: HeaderChanges | None = None,
        clock: Callable[[], datetime] = real_now,
    ) -> None:
        parts = address_of(base_url)
        self.base_url = base_url.rstrip("/")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.identity = Identity.of(identity)
        self.psu_id: str | None = None
        self.psu_corporate_id: str | None = None
        self.psu_context: str | None = None
        self.session_id = str(uuid.uuid4())
        self.redirect_uri = "https://tpp.example/callback"
        self.notification_uri: str | None = None  # TPP-Notification-URI, if the bank sends notifications
        self._prefix = parts.path.rstrip("/")
        self._host = parts.netloc.rpartition("@")[2]
        self._defaults = dict(defaults or {})
        self._clock = clock

    def remember(self, redirect: str) -> dict[str, str]:
        """Store PSU-ID and session id from the redirect after an SCA; returns its query parameters."""
        parameters = {name: values[-1] for name, values in parse_qs(urlsplit(redirect).query).items()}
        if "psu-id" in parameters:
            self.psu_id = parameters["psu-id"]
            self.psu_corporate_id = parameters.get("psu-corporate-id")
            self.psu_context = parameters.get("context")
            self.session_id = parameters.get("tpp-session-id", self.session_id)
        return parameters

    def use_session(self, session: Mapping[str, str]) -> None:
        """Act for the PSU of a session that `POST /_emulator/sessions` has created without an SCA."""
        self.psu_id, self.session_id = session["psuId"], session["tppSessionId"]
        self.psu_corporate_id = session.get("psuCorporateId")
        self.psu_context = session["context"]

    def forget(self) -> None:
        """Forget the PSU and take a new session id."""
        self.psu_id = self.psu_corporate_id = self.psu_context = None
        self.session_id = str(uuid.uuid4())

    def prepare(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,  # the name that other HTTP clients use
        body: bytes | str | None = None,
        headers: HeaderChanges | None = None,
        digest: bool | None = None,
        tamper: str | None = None,
    ) -> Prepared:
        """The signed request: `path` with its query as it will be sent, or a whole address of this bank.

        `path` is appended to the base address, unless it already starts with that address's path, as a Location does.
        `json` is sent as compact JSON, `body` unchanged. `headers` override the defaults: a value of None removes a
        header, from the signature too, and a Signature is sent unchanged. `digest` and `tamper` as in
        `signed_headers`.
        """
        content = _content(json, body)
        target = self._target(path)
        sent = signed_headers(
            method,
            target,
            self.identity,
            headers=self._headers(headers, has_body=bool(content)),
            body=content,
            digest=digest,
            now=self._clock(),
            tamper=tamper,
        )
        return Prepared(method.upper(), target, sent, content)

    def _target(self, path: str) -> str:
        if path.startswith(self.origin + "/"):
            return path[len(self.origin) :].partition("#")[0]
        if not path.startswith("/"):
            raise ValueError(f"a path of {self.base_url} must start with /, not {path!r}")
        below = path if path.startswith(f"{self._prefix}/") else self._prefix + path
        return below.partition("#")[0]

    def _headers(self, changes: HeaderChanges | None, *, has_body: bool) -> dict[str, str | None]:
        """The built-in headers, overridden by the defaults and then by the request's own; None means not sent."""
        built_in: dict[str, str | None] = {
            "Host": self._host,
            "Accept": "application/json",
            "Content-Type": "application/json" if has_body else None,
            "x-accept-fix": "amount-as-string",
            "TPP-Session-ID": self.session_id,
            "TPP-Redirect-URI": self.redirect_uri,
            "TPP-Notification-URI": self.notification_uri,
            "PSU-IP-Address": "192.0.2.1",
            "PSU-ID": self.psu_id,
            "PSU-Corporate-ID": self.psu_corporate_id,
            "PSU-Context": self.psu_context,
        }
        merged: dict[str, tuple[str, str | None]] = {}
        for source in (built_in, self._defaults, changes or {}):
            for name, value in one_line_each(source.items()).items():
                merged[name.lower()] = (name, value)
        return dict(merged.values())


def _content(value: Any, body: bytes | str | None) -> bytes:
    if body is not None:
        return body.encode() if isinstance(body, str) else body
    if value is None:
        return b""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class ResponseHeaders(Mapping[str, str]):
    """The headers of an answer; names in any case, values of a repeated name joined by a comma."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)
        self._values: dict[str, str] = {}
        for name, value in self.pairs:
            lower = name.lower()
            self._values[lower] = f"{self._values[lower]}, {value}" if lower in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"ResponseHeaders({list(self.pairs)!r})"


@dataclass(frozen=True, slots=True)
class TppResponse:
    """Status, headers and the raw body of an answer."""

    status: int
    headers: ResponseHeaders = field(repr=False)  # not shown by a failing test, which cuts long output in the middle
    body: bytes

    @property
    def status_code(self) -> int:
        """The status, under the name that other HTTP clients use."""
        return self.status

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as a JSON value; raise ValueError when it is not JSON, or nested too deeply."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the body is nested too deeply") from None

    def link(self, name: str) -> str | None:
        """The href of `_links.<name>`, or None."""
        try:
            href = self.json()["_links"][name]["href"]
        except (ValueError, KeyError, TypeError):
            return None
        return href if isinstance(href, str) else None

    @property
    def sca_redirect(self) -> str | None:
        """The address to send the PSU's browser to, if SCA is required."""
        return self.link("scaRedirect")


Answer = TypeVar("Answer")  # a TppResponse, or a coroutine that returns one


class SendingOptions(TppOptions, total=False):
    """The options of a client; see `SendingTpp`."""

    ca: str | Path | None
    timeout: float


class SendingTpp(Tpp, Generic[Answer]):
    """A TPP that sends its requests: a method for each HTTP method; a subclass implements `send`.

    `ca` is the file of the CA that must have issued the bank's TLS certificate (default: the system's CAs), `timeout`
    is in seconds. Other arguments as for Tpp. Raises OSError for a `ca` that cannot be read.
    """

    def __init__(
        self,
        base_url: str,
        identity: HoldsKey,
        *,
        ca: str | Path | None = None,
        timeout: float = 30,
        **options: Unpack[TppOptions],
    ) -> None:
        super().__init__(base_url, identity, **options)
        self._timeout = timeout
        self._trusted = None if ca is None else ssl.create_default_context(cafile=str(ca))

    @abstractmethod
    def send(self, prepared: Prepared) -> Answer:
        """Send a prepared request as it stands; repeating it repeats its X-Request-ID and signature."""

    def request(self, method: str, path: str, **options: Unpack[Options]) -> Answer:
        """Send a signed request; options as for `prepare`."""
        return self.send(self.prepare(method, path, **options))

    def get(self, path: str, **options: Unpack[Options]) -> Answer:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Unpack[Options]) -> Answer:
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Unpack[Options]) -> Answer:
        return self.request("PUT", path, **options)

    def delete(self, path: str, **options: Unpack[Options]) -> Answer:
        return self.request("DELETE", path, **options)


class TppClient(SendingTpp[TppResponse]):
    """A signing client: `client.post("/v1/...", json=...)` -> TppResponse, safe to use from several threads.

    Connections stay open, as many as there were concurrent requests. A failed request is not repeated, because the
    bank may have executed it.
    """

    def __init__(self, base_url: str, identity: HoldsKey, **options: Unpack[SendingOptions]) -> None:
        super().__init__(base_url, identity, **options)
        self._idle: list[HTTPConnection] = []

    def send(self, prepared: Prepared) -> TppResponse:
        prepared.check()
        connection = self._live_connection()
        try:
            received = prepared.send_over(connection)
            answer = TppResponse(received.status, ResponseHeaders(received.getheaders()), received.read())
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer

    def close(self) -> None:
        """Close all idle connections; the next request opens a new one."""
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _live_connection(self) -> HTTPConnection:
        """A connection for one request: an idle one that the bank has not closed, or a new one."""
        with suppress(IndexError):  # none is left; other threads use the same list
            while not _is_live(connection := self._idle.pop()):
                connection.close()
            return connection
        return self._new_connection()

    def _new_connection(self) -> HTTPConnection:
        parts = urlsplit(self.origin)
        host = parts.hostname or ""
        if parts.scheme == "http":
            return HTTPConnection(host, parts.port, timeout=self._timeout)
        context = self._trusted or ssl.create_default_context()
        return HTTPSConnection(host, parts.port, timeout=self._timeout, context=context)


def _is_live(connection: HTTPConnection) -> bool:
    if connection.sock is None:  # http.client connects it when it is used
        return True
    # Not select.select(), which only accepts file descriptors below 1024.
    with selectors.DefaultSelector() as ready:
        ready.register(connection.sock, selectors.EVENT_READ)
        return not ready.select(0)  # no request is open, so readable means that the bank closed the connection


class AsyncTppClient(SendingTpp[Coroutine[Any, Any, TppResponse]]):
    """As TppClient, with coroutines, for many concurrent requests; close it, or use `async with`.

    Raises OSError when there is no answer.
    """

    def __init__(self, base_url: str, identity: HoldsKey, **options: Unpack[SendingOptions]) -> None:
        super().__init__(base_url, identity, **options)
        self._session: ClientSession | None = None

    async def request(self, method: str, path: str, **options: Unpack[Options]) -> TppResponse:
        """As `TppClient.request`; signed when the coroutine runs, as the bank refuses an old Date."""
        return await self.send(self.prepare(method, path, **options))

    async def send(self, prepared: Prepared) -> TppResponse:
        from yarl import URL  # comes with aiohttp

        prepared.check()
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
            return TppResponse(answer.status, ResponseHeaders(pairs), await answer.read())

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _new_session(self) -> ClientSession:
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

        return ClientSession(
            connector=TCPConnector(ssl=self._trusted or True, limit=0),
            timeout=ClientTimeout(total=self._timeout),
            cookie_jar=DummyCookieJar(),  # no header is added that was not requested, as in the synchronous client
            auto_decompress=False,  # the body is returned as received, as by the synchronous client
            skip_auto_headers=("User-Agent", "Accept-Encoding", "Content-Type"),
            middlewares=(_once,),
        )


async def _once(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Send a request once: aiohttp would repeat a GET, PUT or DELETE whose answer is lost."""
    from aiohttp import ClientConnectorError, ClientOSError, ServerDisconnectedError

    try:
        return await send(request)
    except ClientConnectorError:
        raise
    except (ClientOSError, ServerDisconnectedError) as lost:
        # aiohttp raises this as a ClientOSError, which is both an OSError and a ClientError.
        raise ConnectionResetError(errno.ECONNRESET, "the connection was closed without an answer") from lost
