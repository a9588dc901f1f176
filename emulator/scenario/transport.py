"""How a story reaches a bank: one in this process without a socket, or a running one over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult

from emulator.api.messages import Request, Response, Stream
from emulator.httpsig.sendable import address_of, check_sendable

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from emulator.client.tpp import Prepared

BASE = "http://127.0.0.1:8080"
CONTROL = "/_emulator"
EVENTS = "text/event-stream"  # has no end, so only its head is read
TIMEOUT = 3700.0  # seconds: a scripted delay lasts at most an hour


class TransportFailed(Exception):
    """The bank cannot be reached, the request cannot be sent, or is refused; the argument is a sentence."""


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
        return messages if isinstance(messages, list) and all(map(_has_text, messages)) else []

    def refusal(self) -> str:
        """The texts of its tppMessages in one line; the beginning of the body if it has none."""
        return " ".join(one["text"] for one in self.messages()) or self.body[:200].decode("utf-8", "replace")


def _has_text(message: Any) -> bool:
    return isinstance(message, dict) and isinstance(message.get("text"), str)


class Transport:
    """A bank to play on, at `base`, such as http://127.0.0.1:8080/banks/a; `token`: of its control interface."""

    def __init__(self, base: str, *, token: str | None = None) -> None:
        self.base = base.rstrip("/")
        self._parts = _address(self.base)
        self._token = token

    def send(self, prepared: Prepared) -> ReceivedAnswer:
        """Send a signed request."""
        return self._sent(prepared.method, prepared.target, prepared.headers, prepared.body)

    def control(self, method: str, path: str, body: Any = None) -> ReceivedAnswer:
        """Send a request to the control interface; `path` follows /_emulator and starts with a slash."""
        try:
            check_sendable(method, path, {})
        except ValueError as error:
            raise TransportFailed(f"The request cannot be sent: {error}.") from None
        headers = {"Host": self._parts.netloc.rpartition("@")[2], "Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        return self._sent(method, self._parts.path + CONTROL + path, headers, _content(body))

    def _sent(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> ReceivedAnswer:
        raise NotImplementedError


def asked(bank: Transport, method: str, path: str, body: Any = None) -> Any:
    """The JSON of the answer of the control interface; raises TransportFailed if it refuses the request."""
    answer = bank.control(method, path, body)
    if answer.lost or answer.status >= 400:
        answered = f"{method} /_emulator{path} answered {answer.status or 'nothing'}"
        raise TransportFailed(f"{answered}: {answer.refusal()}")
    return answer.json()


class InProcess(Transport):
    """A bank in this process; `handle` answers /v1 and /_emulator. Delays are reported, not waited for."""

    def __init__(self, handle: Callable[[Request], Response | Stream]) -> None:
        super().__init__(BASE)
        self._handle = handle

    def _sent(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> ReceivedAnswer:
        response = self._handle(Request(method, target, tuple(headers.items()), body, BASE))
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

    def _sent(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> ReceivedAnswer:
        from http.client import HTTPException

        # A connection per request, so that a scripted disconnect does not affect other requests.
        connection = connection_to(self.base, ca=self._ca, timeout=self._timeout)
        began = time.monotonic()
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value.encode())
            if body or method in ("POST", "PUT"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            endless = (answer.getheader("Content-Type") or "").startswith(EVENTS)
            content = b"" if endless else answer.read()
            return ReceivedAnswer(answer.status, tuple(answer.getheaders()), content, seconds=time.monotonic() - began)
        except (HTTPException, ConnectionError):
            return ReceivedAnswer(lost=True, seconds=time.monotonic() - began)
        except TimeoutError:
            raise TransportFailed(f"{self.base} has not answered within {self._timeout:g} s.") from None
        finally:
            connection.close()
