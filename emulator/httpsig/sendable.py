"""A request as it is sent; before that, an address or a header that HTTP cannot carry is refused with a clear text.

Apart from `signing.py`: most commands sign nothing, and without `cryptography` they start in two thirds of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import SplitResult, urlsplit

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

_TARGET = re.compile(r"[!-~]+", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_LINE = re.compile(r"[^\r\n\x00\ud800-\udfff]*")


def address_of(base_url: str) -> SplitResult:
    """The parts of a bank's base address; ValueError for one that no request can be sent to."""
    try:
        parts = urlsplit(base_url)
        host = (parts.hostname or "").encode("idna").decode()  # raises for labels that no name has
        whole = parts.scheme in ("http", "https") and _TARGET.fullmatch(host) and parts.port != 0
        usable = whole and _TARGET.fullmatch(parts.path or "/") and not (parts.query or parts.fragment)
    except ValueError:
        usable = None
    if not usable:
        raise ValueError(f"{base_url} is not the address of a bank, such as http://127.0.0.1:8080")
    return parts


# Lists, which may be sent as several lines (RFC 9110 5.3).
LISTS = frozenset(
    {
        *("accept", "accept-charset", "accept-encoding", "accept-language", "x-accept-fix"),
        *("cache-control", "pragma", "prefer", "if-match", "if-none-match"),
        *("via", "forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "tracestate", "baggage"),
    }
)
Value = TypeVar("Value", str, str | None)


def one_line_each(headers: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """The headers by name, lists joined by commas; ValueError for another one that is there twice, in any spelling."""
    lines: dict[str, tuple[str, Value]] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in lines:
            name, before = lines[lower]
            if lower not in LISTS or not isinstance(before, str) or not isinstance(value, str):
                raise ValueError(f"the header {name} appears more than once")
            value = f"{before}, {value}"
        lines[lower] = name, value
    return dict(lines.values())


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request ready to send: every member exactly as it goes on the wire."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    def check(self) -> None:
        """Raise ValueError for a method, an address or a header that an HTTP request cannot contain."""
        if not _TOKEN.fullmatch(self.method):
            raise ValueError(f"{self.method!r} is not an HTTP method, such as GET")
        if not _TARGET.fullmatch(self.target):
            raise ValueError(f"an address is ASCII without blanks (write %20), not {self.target!r}")
        for name, value in self.headers.items():
            if not _TOKEN.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a header")
            if not _LINE.fullmatch(value):
                raise ValueError(f"the value of the header {name} must be one line of text, not {value!r}")

    def send_over(self, connection: HTTPConnection) -> HTTPResponse:
        """Send it unchanged, with nothing but a Content-Length added; returns the answer, whose body is not read."""
        connection.putrequest(self.method, self.target, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value.encode())
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            connection.putheader("Content-Length", str(len(self.body)))
        connection.endheaders(self.body or None)
        return connection.getresponse()
