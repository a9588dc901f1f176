"""The checks before every control operation (CONTRACT 1, 9): token, Host, origin, content type, JSON."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from emulator.api.headers import Headers
from emulator.api.hosts import HostNames
from emulator.api.json_body import LARGEST_BODY, read_json
from emulator.api.messages import Request
from emulator.bank.errors import BankError
from emulator.bank.notification_targets import NOTIFICATION_AGENT

CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
YAML_TYPES = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})


class Gate:
    """Checks that a request may use the control interface; `token`: the required one, None for no check."""

    def __init__(self, *, token: str | None, allowed_hosts: Iterable[str]) -> None:
        self._token = token.encode() if token is not None else None
        self._hosts = HostNames(allowed_hosts)

    def check(self, request: Request, headers: Headers) -> None:
        """Raise FORBIDDEN for a foreign Host (403), and for a missing or wrong token (401)."""
        host = headers.get("host")
        if host is not None and not self._hosts.include(host, request.base):
            # Otherwise a page of a host name that resolves to this machine could read and change everything.
            text = "The control interface does not answer to this Host name; see --allow-host."
            raise BankError("FORBIDDEN", text, "Host", status=403)
        if self._token is not None:
            scheme, _, given = (headers.get("authorization") or "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
                text = "The control interface requires Authorization: Bearer with the --control-token."
                raise BankError("FORBIDDEN", text, "Authorization", status=401)
        origin = headers.get("origin")
        if origin is not None and request.method in CHANGING:
            host_of_page = urlsplit(origin).netloc
            if not host_of_page or not self._hosts.include(host_of_page, request.base):
                raise BankError("FORBIDDEN", "A page of another origin may not change the bank.", "Origin", status=403)
        if headers.get("user-agent", "").startswith(NOTIFICATION_AGENT):
            # --allow-notify may name this machine, and the TPP chooses the address of a notification
            raise BankError("FORBIDDEN", "A notification may not change a bank.", "User-Agent", status=403)
        if headers.get("sec-fetch-site") == "cross-site" and request.method in CHANGING:
            raise BankError(
                "FORBIDDEN", "A page of another site may not change the bank.", "Sec-Fetch-Site", status=403
            )


def is_yaml(headers: Headers) -> bool:
    """Whether the content type of the body is YAML."""
    return media_type(headers) in YAML_TYPES


def media_type(headers: Headers) -> str:
    """The media type of the body, without its parameters."""
    return (headers.get("content-type") or "").partition(";")[0].strip().lower()


def require_json(request: Request, headers: Headers) -> None:
    """Raise 415 for a change whose content type is not JSON: a form on a foreign page could have sent it.

    A request without body and content type (an empty one counts as missing) passes: a form always sends a content
    type, and the Origin of a foreign script is checked elsewhere.
    """
    if not request.body and not headers.get("content-type"):
        return
    if media_type(headers) != "application/json":
        text = "Changes require Content-Type: application/json."
        raise BankError("BAD_REQUEST", text, "Content-Type", status=415)


def json_value(request: Request, headers: Headers) -> Any:
    """The body of a change as a JSON value; an empty one counts as {}. Raises FORMAT_ERROR."""
    if not request.body.strip():
        return {}
    value = _plain(read_json(request.body, headers))
    if b"\\u" in request.body:  # only an escape can write half of a surrogate pair
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BankError("FORMAT_ERROR", "The body contains half of a surrogate pair.") from None
    return value


def _plain(value: Any) -> Any:
    """The value with decimals as floats, as a YAML parser gives them."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


def yaml_text(request: Request) -> str:
    """The body of a change as text; raises FORMAT_ERROR if it is not UTF-8, and 413 above 1 MiB."""
    if len(request.body) > LARGEST_BODY:
        raise BankError("BAD_REQUEST", f"A body has at most {LARGEST_BODY} bytes.", status=413)
    try:
        return request.body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = request.body.count(b"\n", 0, error.start) + 1
        raise BankError("FORMAT_ERROR", f"Line {line}: UTF-8 was expected.") from None
