"""The client of a bank, for stories, commands and plans of checks: one in this process, or a running one over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult

from emulator.api.messages import Request, Response, Stream
from emulator.failure import Failed, Refused
from emulator.httpsig.sendable import Prepared, address_of

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

BASE = "http://127.0.0.1:8080"
CONTROL = "/_emulator"
EVENTS = "text/event-stream"  # has no end, so only its head is read
TIMEOUT = 3700.0  # seconds: a scripted delay lasts at most an hour


class TransportFailed(Failed):
    """The bank cannot be reached, or the request cannot be sent; the argument is a sentence."""


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """An answer; `lost`: the connection was closed without one; `seconds`: how long it took."""

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    lost: bool = False
    seconds: float = 0.0

    def json(self) -> Any:
        """The JSON value of the body; None if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def messages(self) -> list[dict[str, Any]]:
        """Its tppMessages; none if it is not from a bank."""
        value = self.json()
        messages = value.get("tppMessages") if isinstance(value, dict) else None
        if not isinstance(messages, list):
            return []
        return messages if all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in messages) else []


class Transport:
    """A bank at `base`, such as http://127.0.0.1:8080/banks/a; `token`: of its control interface."""

    def __init__(self, base: str, *, token: str | None = None) -> None:
        self.base = base.rstrip("/")
        self._parts = _address(self.base)
        self._token = token

    def send(self, prepared: Prepared) -> ReceivedAnswer:
        """Send a request as it stands; raises TransportFailed."""
        try:
            prepared.check()
        except ValueError as error:
            raise TransportFailed(f"The request cannot be sent: {error}.") from None
        return self._sent(prepared)

    def control(self, method: str, path: str, body: Any = None) -> ReceivedAnswer:
        """Send a request to the control interface; `path` follows /_emulator and starts with a slash."""
        headers = {**self._control_headers(), "Content-Type": "application/json"}
        return self.send(Prepared(method, self._parts.path + CONTROL + path, headers, _content(body)))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the answer of the control interface; raises Failed, and Refused if the bank answers 400."""
        return self._value(self.control(method, path, body))

    def _value(self, answer: ReceivedAnswer) -> Any:
        if answer.lost:
            raise TransportFailed(f"{self.base} closed the connection without an answer")
        value = answer.json()
        if answer.status == 204:
            return value
        if not isinstance(value, dict):
            raise _not_a_bank(self.base)
        if answer.status < 400:
            return _Answer(self.base, value)
        messages = answer.messages()
        text = "; ".join(f"{one['path']}: {one['text']}" if one.get("path") else one["text"] for one in messages)
        if messages and answer.status == 400:
            raise Refused(text, messages)
        hint = ""
        if messages and answer.status == 401:
            hint = f" (BANK_EMULATOR_CONTROL_TOKEN {'is not set' if self._token is None else 'is a different token'})"
        raise TransportFailed(f"{text or f'the bank answered {answer.status}'}{hint}")

    def _control_headers(self) -> dict[str, str]:
        authorization = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        return {"Host": self._parts.netloc.rpartition("@")[2], **authorization}

    def _sent(self, prepared: Prepared) -> ReceivedAnswer:
        raise NotImplementedError


class _Answer(dict[str, Any]):
    """The JSON object of an answer; TransportFailed for a member that it does not have: no bank has sent it."""

    def __init__(self, base: str, members: dict[str, Any]) -> None:
        super().__init__(members)
        self._base = base

    def __missing__(self, _name: str) -> None:
        raise _not_a_bank(self._base)


def _not_a_bank(base: str) -> TransportFailed:
    return TransportFailed(f"{base} does not answer as a bank does: is it another program?")


class InProcess(Transport):
    """A bank in this process; `handle` answers /v1 and /_emulator. Delays are reported, not waited for."""

    def __init__(self, handle: Callable[[Request], Response | Stream]) -> None:
        super().__init__(BASE)
        self._handle = handle

    def _sent(self, prepared: Prepared) -> ReceivedAnswer:
        headers = tuple(prepared.headers.items())
        response = self._handle(Request(prepared.method, prepared.target, headers, prepared.body, BASE))
        if isinstance(response, Stream):
            return ReceivedAnswer(response.status, tuple(response.headers))
        delivery = response.delivery
        if delivery.disconnect is not None:
            return ReceivedAnswer(lost=True, seconds=delivery.delay)
        return ReceivedAnswer(response.status, tuple(response.headers), response.body, seconds=delivery.delay)


def _address(base: str) -> SplitResult:
    try:
        return address_of(base)
    except ValueError as error:
        raise TransportFailed(f"{error}.") from None


def _content(body: Any) -> bytes:
    """Compact JSON in UTF-8, so that a scenario that fits into a file also fits into a request."""
    if body is None:
        return b""
    # half of a surrogate pair becomes a JSON escape, which is what backslashreplace writes
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")


def connection_to(base: str, *, ca: str | None = None, timeout: float | None = None) -> HTTPConnection:
    """An open connection; with TLS the CA is that of the file `ca`, or those of the system. Raises TransportFailed."""
    # Imported on use: `serve` needs no HTTP client.
    import ssl
    from http.client import HTTPConnection, HTTPSConnection

    address = _address(base)
    host = address.hostname or ""
    if address.scheme == "https":
        try:
            context = ssl.create_default_context(cafile=ca)
        except OSError as error:
            raise TransportFailed(f"{ca} cannot be read as a CA: {error.strerror or error}.") from None
        connection: HTTPConnection = HTTPSConnection(host, address.port, timeout=timeout, context=context)
    else:
        connection = HTTPConnection(host, address.port, timeout=timeout)
    try:
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        text = f"{base} is not trusted: {error.verify_message}; --ca names the CA of its certificate."
        raise TransportFailed(text) from None
    except ssl.SSLError as error:
        raise TransportFailed(f"{base} does not speak TLS ({error.reason}): is it http?") from None
    except OSError as error:
        cause = error.strerror or error
        raise TransportFailed(f"{base} does not answer: {cause}. Is `bank-emulator serve` running?") from None
    return connection


class Running(Transport):
    """A running bank; `ca`: see `connection_to`."""

    def __init__(self, base: str, *, token: str | None = None, ca: str | None = None, timeout: float = TIMEOUT) -> None:
        super().__init__(base, token=token)
        self._ca = ca
        self._timeout = timeout

    def _sent(self, prepared: Prepared) -> ReceivedAnswer:
        from http.client import HTTPException

        # A connection per request, so that a scripted disconnect does not affect other requests.
        connection = connection_to(self.base, ca=self._ca, timeout=self._timeout)
        began = time.monotonic()
        with closing(connection), _reaching(self.base):
            try:
                answer = prepared.send_over(connection)
                content = b"" if _is_endless(answer) else answer.read()
                took = time.monotonic() - began
                return ReceivedAnswer(answer.status, tuple(answer.getheaders()), content, seconds=took)
            except (HTTPException, ConnectionError):
                return ReceivedAnswer(lost=True, seconds=time.monotonic() - began)
            except TimeoutError:
                raise TransportFailed(f"{self.base} has not answered within {self._timeout:g} s.") from None

    def events(self) -> Iterator[dict[str, Any]]:
        """The events of the bank from now on, until it stops; raises Failed."""
        with _reaching(self.base):
            connection = connection_to(self.base, ca=self._ca)
            connection.request("GET", f"{self._parts.path}{CONTROL}/events", headers=self._control_headers())
            answer = connection.getresponse()
            if not _is_endless(answer):
                self._value(ReceivedAnswer(answer.status, body=answer.read()))
                raise _not_a_bank(self.base)

        def stream() -> Iterator[dict[str, Any]]:
            with closing(connection), _reaching(self.base):
                while line := answer.readline():
                    if line.startswith(b"data: "):
                        yield self._value(ReceivedAnswer(200, body=line[6:]))

        return stream()


def _is_endless(answer: HTTPResponse) -> bool:
    return (answer.getheader("Content-Type") or "").startswith(EVENTS)


@contextmanager
def _reaching(base: str) -> Iterator[None]:
    """The block in which the bank at `base` is spoken to; raises TransportFailed if it does not answer."""
    from http.client import HTTPException

    try:
        yield
    except (OSError, HTTPException) as error:
        cause = getattr(error, "strerror", None) or error
        raise TransportFailed(f"{base} does not answer: {cause}") from error
