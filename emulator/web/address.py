"""Where this bank is reached: the base of absolute links for each request."""

from __future__ import annotations

import re

from emulator.api.hosts import LOOPBACK_NAMES, in_url

WILDCARDS = frozenset({"", "0.0.0.0", "::"})

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?", re.IGNORECASE)
_LAST_PORT = 65535
_CACHED = 256


def url_host(host: str) -> str:
    """`host` as a URL writes it: IPv6 in brackets; a wildcard as the loopback address (assumed)."""
    if host in WILDCARDS:
        return "[::1]" if host == "::" else "127.0.0.1"
    return in_url(host)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`."""
    return host.lower() == "localhost" or host == "::1" or bool(re.fullmatch(r"127\.\d+\.\d+\.\d+", host))


class Base:
    """The base of links in answers of one listener, depending on the Host header of the request.

    It is the public address if one is set; else the scheme and the Host header, if that is an allowed name (a loopback
    name, the listening address, `--allow-host`); else the listening address.
    """

    def __init__(self, *, scheme: str, host: str, port: int, public_url: str | None, allowed: tuple[str, ...]) -> None:
        self._scheme = scheme
        self.listening = f"{scheme}://{url_host(host)}:{port}"
        self._public = public_url.rstrip("/") if public_url else None
        self._allowed = LOOPBACK_NAMES | {url_host(host).lower()} | {url_host(name).lower() for name in allowed}
        self._known: dict[str | None, str] = {}

    def of(self, host: str | None) -> str:
        """The base of links, `http://host:port`, for a request whose Host header is `host`."""
        base = self._known.get(host)
        if base is None:
            base = self._base_for(host)
            if len(self._known) < _CACHED:
                self._known[host] = base
        return base

    def _base_for(self, host: str | None) -> str:
        if self._public is not None:
            return self._public
        if host is None:
            return self.listening
        parts = _HOST.fullmatch(host)
        if parts is None or parts[1].lower() not in self._allowed or int(parts[2] or 0) > _LAST_PORT:
            return self.listening
        return f"{self._scheme}://{host}"
