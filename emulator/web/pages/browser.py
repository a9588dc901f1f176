"""What a browser sends to the pages, and whether it may: forms, Host, Origin, form tokens (CONTRACT 1, 13)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qs, urlsplit

from emulator.api.hosts import HostNames
from emulator.api.messages import Request
from emulator.api.router import split_target

FORM_TYPE = "application/x-www-form-urlencoded"
MOST_FIELDS = 10_000  # one for each account that a customer may share
_DEFAULT_PORTS = {"http": 80, "https": 443}

Fields = Mapping[str, list[str]]


def header(request: Request, name: str) -> str | None:
    """The first header called `name` (lower case), or None."""
    return next((value for sent, value in request.headers if sent.lower() == name), None)


def cookie(request: Request, name: str) -> str | None:
    """The value of the cookie called `name`, or None."""
    for pair in (header(request, "cookie") or "").split(";"):
        sent, _, value = pair.strip().partition("=")
        if sent == name:
            return value
    return None


class FormRefused(Exception):
    """A post that is no form of ours: `status` 400 or 415, and why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Form:
    """The fields of a form post or of a page's query."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def get(self, name: str, default: str = "") -> str:
        """The last value of a field, without outer blanks."""
        values = self._fields.get(name)
        return values[-1].strip() if values else default

    def typed(self, name: str) -> str:
        """The last value of a field with its blanks, its lines ended as in a file."""
        return "".join(self.all(name)[-1:]).replace("\r\n", "\n").rstrip("\n") + "\n"

    def all(self, name: str) -> list[str]:
        """Every value of a field (checkboxes)."""
        return list(self._fields.get(name, ()))

    def pairs(self) -> list[tuple[str, str]]:
        """Every field with each of its values, in order."""
        return [(name, value) for name, values in self._fields.items() for value in values]

    def __contains__(self, name: str) -> bool:
        return name in self._fields


def _fields(text: str) -> Fields:
    try:
        return parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise FormRefused(400, "The form cannot be read.") from None


def read_form(request: Request) -> Form:
    """The posted form; FormRefused when the body is none."""
    kind = (header(request, "content-type") or "").partition(";")[0].strip().lower()
    if kind != FORM_TYPE:
        raise FormRefused(415, f"A form was expected ({FORM_TYPE}).")
    try:
        text = request.body.decode("ascii")
    except UnicodeDecodeError:
        raise FormRefused(400, "The form cannot be read.") from None
    return Form(_fields(text))


def read_query(request: Request) -> Form:
    """The query of a page's address; FormRefused when it is unreadable."""
    return Form(_fields(split_target(request.target)[1]))


def path_below(request: Request) -> str:
    """The path of a request below its bank's prefix."""
    path, _ = split_target(request.target)
    return path[len(request.prefix) :] if request.prefix else path


def root_of(request: Request) -> str:
    """What stands before `/sca`, `/console` and `/static` in links: the public address's own path and the prefix."""
    return urlsplit(request.base).path.rstrip("/") + request.prefix


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
