"""The Host names and Origins of a bank; others are refused, against DNS rebinding and foreign pages."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


_DEFAULT_PORTS = {"http": 80, "https": 443}


def in_url(name: str) -> str:
    """A host name in the form of a URL: IPv6 in brackets."""
    return f"[{name}]" if ":" in name else name


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
