"""Who may talk to the pages for people: Host names, foreign origins and forged forms (CONTRACT 1, 13)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from urllib.parse import urlsplit

from emulator.api.hosts import HostNames
from emulator.api.messages import Request

_DEFAULT_PORTS = {"http": 80, "https": 443}


def header(request: Request, name: str) -> str | None:
    """The first header called `name` (lower case), or None."""
    return next((value for sent, value in request.headers if sent.lower() == name), None)


class Guard:
    """The checks of the pages: `allowed_hosts` besides the loopback names, `secret` behind every form token."""

    def __init__(self, *, allowed_hosts: Iterable[str], secret: bytes) -> None:
        self._hosts = HostNames(allowed_hosts)
        self._secret = secret

    def knows_host(self, request: Request) -> bool:
        """Whether the request names this bank: a page of another name that resolves here (DNS rebinding) does not."""
        host = header(request, "host")
        return host is not None and self._hosts.include(host, request.base)

    def is_foreign(self, request: Request) -> bool:
        """Whether a browser says that another application's page made this request.

        The pages carry `Referrer-Policy: same-origin`, so their own forms always name their Origin; `null` is foreign.
        """
        if header(request, "sec-fetch-site") == "cross-site":
            return True
        origin = header(request, "origin")
        if origin is None:
            return False
        parts = _origin(origin)
        if parts is None:
            return True
        scheme, place = parts
        host = (header(request, "host") or "").lower()
        return place != _with_port(scheme, host) and parts != _origin(request.base)

    def token(self, purpose: str) -> str:
        """What a form for `purpose` (an SCA's token, a console session) must carry to be believed."""
        return hmac.new(self._secret, purpose.encode(), hashlib.sha256).hexdigest()

    def believes(self, purpose: str, token: str | None) -> bool:
        """Whether a form carries the token that its page was given."""
        return token is not None and hmac.compare_digest(self.token(purpose).encode(), token.encode())


def _with_port(scheme: str, place: str) -> str:
    bare = place.rpartition("]")[2]
    return place if ":" in bare else f"{place}:{_DEFAULT_PORTS.get(scheme, 0)}"


def _origin(text: str) -> tuple[str, str] | None:
    """Scheme and `host:port` of an origin, or None when it is none (`null`)."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.netloc:
        return None
    return parts.scheme, _with_port(parts.scheme, parts.netloc.lower())
