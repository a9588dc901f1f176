"""Reads and checks requests of browsers: forms, cookies, Host, Origin, form tokens (console.md#who-may-use-it)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from emulator.api.guards import HostNames, is_own_origin
from emulator.api.messages import Request, values_of
from emulator.api.router import split_target
from emulator.bank.formats import composed

FORM_TYPE = "application/x-www-form-urlencoded"
MOST_FIELDS = 10_000  # one for each account that a customer may share

Fields = Mapping[str, list[str]]


def header(request: Request, name: str) -> str | None:
    """The first header called `name` (lower case), or None."""
    return next(iter(values_of(request.headers, name)), None)


class LoginCookie:
    """The cookie of a login to the pages below `path`, as one request sends it and its answer sets it.

    Browsers send cookies to every port of a host, so its name contains the port: two emulators on one machine must not
    log each other out.
    """

    def __init__(self, request: Request, pages: str, *, path: str, same_site: Literal["Strict", "Lax"]) -> None:
        base = urlsplit(request.base)
        self._name = f"bank-emulator-{pages}-{base.port or 0}"
        secure = "; Secure" if base.scheme == "https" else ""
        self._attributes = f"Path={path}; HttpOnly; SameSite={same_site}{secure}"
        sent = (pair.strip().partition("=") for pair in (header(request, "cookie") or "").split(";"))
        self.value = next((value for name, _, value in sent if name == self._name), "")

    def set_to(self, value: str, *, seconds: int | None = None) -> tuple[str, str]:
        """The header that sets the cookie, for a number of seconds or until the browser ends."""
        ending = "" if seconds is None else f"; Max-Age={seconds}"
        return ("Set-Cookie", f"{self._name}={value}; {self._attributes}{ending}")

    def deleted(self) -> tuple[str, str]:
        return self.set_to("", seconds=0)


class FormRefused(Exception):
    """A post whose body is not a readable form: `status` 400 or 415, and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class PageForm:
    """The fields of a form post or of a page's query."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def get(self, name: str, default: str = "") -> str:
        """The last value of a field, without white space around it."""
        values = self._fields.get(name)
        return values[-1].strip() if values else default

    def action(self, *offered: str) -> str:
        """The value of the button that was pressed, or "" without one; FormRefused unless the page has it."""
        action = self.get("action")
        if action not in ("", *offered):
            raise FormRefused(400, f"The page has no button {action[:40]}.")
        return action

    def typed(self, name: str) -> str:
        """The last value of a field with its white space; lines end in LF, as in a file."""
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
        return composed(parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except (UnicodeDecodeError, ValueError):
        raise FormRefused(400, "The form cannot be read.") from None


def read_form(request: Request) -> PageForm:
    """The posted form; raises FormRefused if the body is not a form."""
    kind = (header(request, "content-type") or "").partition(";")[0].strip().lower()
    if kind != FORM_TYPE:
        raise FormRefused(415, f"A form was expected ({FORM_TYPE}).")
    try:
        text = request.body.decode("ascii")
    except UnicodeDecodeError:
        raise FormRefused(400, "The form cannot be read.") from None
    return PageForm(_fields(text))


def read_query(request: Request) -> PageForm:
    """The query of a page's address; raises FormRefused if it cannot be decoded."""
    return PageForm(_fields(split_target(request.target)[1]))


def path_below(request: Request) -> str:
    """The path of a request below its bank's prefix."""
    path, _ = split_target(request.target)
    return path[len(request.prefix) :] if request.prefix else path


def root_of(request: Request) -> str:
    """The path before `/sca`, `/console` and `/static` in links: that of the public address and the bank's prefix."""
    return urlsplit(request.base).path.rstrip("/") + request.prefix


class Guard:
    """Checks Host, Origin and form tokens; `allowed_hosts` besides the loopback names, `secret` signs form tokens."""

    def __init__(self, *, allowed_hosts: Iterable[str], secret: bytes) -> None:
        self._hosts = HostNames(allowed_hosts)
        self._secret = secret

    def knows_host(self, request: Request) -> bool:
        """Whether Host is a name of this bank; under DNS rebinding it is the name of another site."""
        host = header(request, "host")
        return host is not None and self._hosts.include(host, request.base)

    def is_foreign(self, request: Request) -> bool:
        """Whether the request comes from the page of another application, by its Origin and Sec-Fetch-Site headers."""
        if header(request, "sec-fetch-site") == "cross-site":
            return True
        origin = header(request, "origin")
        return origin is not None and not is_own_origin(origin, host=header(request, "host"), base=request.base)

    def token(self, purpose: str) -> str:
        """The form token for `purpose` (an SCA's token, a console session)."""
        return hmac.new(self._secret, purpose.encode(), hashlib.sha256).hexdigest()

    def is_token(self, purpose: str, token: str | None) -> bool:
        return token is not None and hmac.compare_digest(self.token(purpose).encode(), token.encode())
