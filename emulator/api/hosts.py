"""The Host names that a bank answers to; others are refused, to protect browsers from DNS rebinding (CONTRACT 1)."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


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
