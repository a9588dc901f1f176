"""Who may use the interfaces that have no signature: the control interface, the console and the pages.

The Host names and Origins of a bank: others are refused, against DNS rebinding and foreign pages. And what slows down
who guesses a token.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from time import monotonic
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
WILDCARDS = frozenset({"", "0.0.0.0", "::"})
_DEFAULT_PORTS = {"http": 80, "https": 443}


def in_url(name: str) -> str:
    """A host name in the form of a URL: IPv6 in brackets."""
    return f"[{name}]" if ":" in name else name


def url_host(host: str) -> str:
    """`host` as a URL writes it: IPv6 in brackets; a wildcard as the loopback address (assumed)."""
    if host in WILDCARDS:
        return "[::1]" if host == "::" else "127.0.0.1"
    return in_url(host)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`."""
    return host.lower() == "localhost" or host == "::1" or bool(re.fullmatch(r"127\.\d+\.\d+\.\d+", host))


class HostNames:
    """The loopback names and `allowed`, which may be an IPv6 address."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._names = LOOPBACK_NAMES | {in_url(name).lower() for name in allowed}

    def include(self, host: str, base: str) -> bool:
        """Whether the header `Host: host` names this bank.

        The name in `base`, the base address of links (the listening or the public address), is always included.
        """
        name = _without_port(host)
        return name in self._names or name == _without_port(urlsplit(base).netloc)


def _without_port(host: str) -> str:
    name = host.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def is_own_origin(origin: str, *, host: str | None, base: str) -> bool:
    """Whether an Origin header is that of the bank's own pages: scheme, name and port of the request or of `base`.

    Another port of the same machine is another application. `null` is foreign: the bank's pages have `Referrer-Policy:
    same-origin`, so their forms always send an Origin. A request through a proxy that ends TLS has the scheme of the
    page in its Origin alone.
    """
    parts = _scheme_and_authority(origin)
    if parts is None:
        return False
    scheme, authority = parts
    return authority == _with_port(scheme, (host or "").lower()) or parts == _scheme_and_authority(base)


def _scheme_and_authority(text: str) -> tuple[str, str] | None:
    """Scheme and `host:port` of an origin; None if it is not one (`null`)."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.netloc:
        return None
    return parts.scheme, _with_port(parts.scheme, parts.netloc.lower())


def _with_port(scheme: str, authority: str) -> str:
    after_ipv6 = authority.rpartition("]")[2]
    return authority if ":" in after_ipv6 else f"{authority}:{_DEFAULT_PORTS.get(scheme, 0)}"


_FREE = 5  # wrong tokens in a row without a wait
_LONGEST = 60.0  # seconds
_FORGOTTEN = 900.0  # seconds after the last wrong token
_MOST = 10_000  # addresses


class Attempts:
    """Compares what is given with the tokens, in real time.

    After some wrong tokens in a row an address must wait 1 second, then 2, 4 and so on; meanwhile nothing of it is
    compared, as an answer would tell a guesser something. Requests without an address (in this process) never wait.
    """

    def __init__(self, *tokens: str) -> None:
        self._tokens = [token.encode() for token in tokens]
        self._wrong: dict[str, tuple[int, float]] = {}  # wrong tokens in a row and the time of the last, by address

    def wait(self, address: str | None) -> int:
        """Whole seconds until an address may try again; 0 if it may."""
        wrong, last = self._wrong.get(address or "", (0, 0.0))
        if wrong <= _FREE:
            return 0
        return max(0, round(last + min(2.0 ** (wrong - _FREE - 1), _LONGEST) - monotonic() + 0.499))

    def matches(self, given: str, address: str | None) -> bool:
        """Whether `given` is one of the tokens; only to be asked when there is no `wait`."""
        if any(hmac.compare_digest(given.encode(), token) for token in self._tokens):
            self._wrong.pop(address or "", None)
            return True
        if address is not None:
            now = monotonic()
            wrong, last = self._wrong.pop(address, (0, now))
            self._wrong[address] = (wrong + 1 if now - last < _FORGOTTEN else 1, now)
            if len(self._wrong) > _MOST:
                del self._wrong[next(iter(self._wrong))]  # the one that has tried least recently
        return False
