"""The requests of a TPP at one bank, signed and ready to send: its headers and its PSU's ids."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypedDict
from urllib.parse import parse_qs, urlsplit

from emulator.client.signing import HoldsKey, Identity, real_now, signed_headers
from emulator.httpsig.sendable import Prepared, address_of, one_line_each

HeaderChanges = Mapping[str, str | None]


class TppOptions(TypedDict, total=False):
    """The options of a TPP; see `Tpp`."""

    defaults: HeaderChanges | None
    clock: Callable[[], datetime]


class Options(TypedDict, total=False):
    """The options of a request besides method and path; see `Tpp.prepare`."""

    json: Any
    body: bytes | str | None
    headers: HeaderChanges | None
    digest: bool | None
    tamper: str | None


class Tpp:
    """A TPP at one bank: signs requests and stores `psu_id`, `session_id`, `psu_corporate_id` and `psu_context`.

    `base_url` may end in a path, such as `http://127.0.0.1:8080/banks/a`. `defaults` are headers of every request; a
    request leaves one out by setting it to None.
    """

    def __init__(
        self,
        base_url: str,
        identity: HoldsKey,
        *,
        defaults: HeaderChanges | None = None,
        clock: Callable[[], datetime] = real_now,
    ) -> None:
        parts = address_of(base_url)
        self.base_url = base_url.rstrip("/")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.identity = Identity.of(identity)
        self.psu_id: str | None = None
        self.psu_corporate_id: str | None = None
        self.psu_context: str | None = None
        self.session_id = str(uuid.uuid4())
        self.redirect_uri = "https://tpp.example/callback"
        self.notification_uri: str | None = None  # TPP-Notification-URI, if the bank sends notifications
        self._prefix = parts.path.rstrip("/")
        self._host = parts.netloc.rpartition("@")[2]
        self._defaults = dict(defaults or {})
        self._clock = clock

    def remember(self, redirect: str) -> dict[str, str]:
        """Store PSU-ID and session id from the redirect after an SCA; returns its query parameters."""
        parameters = {name: values[-1] for name, values in parse_qs(urlsplit(redirect).query).items()}
        if "psu-id" in parameters:
            self.psu_id = parameters["psu-id"]
            self.psu_corporate_id = parameters.get("psu-corporate-id")
            self.psu_context = parameters.get("context")
            self.session_id = parameters.get("tpp-session-id", self.session_id)
        return parameters

    def use_session(self, session: Mapping[str, str]) -> None:
        """Act for the PSU of a session that `POST /_emulator/sessions` has created without an SCA."""
        self.psu_id, self.session_id = session["psuId"], session["tppSessionId"]
        self.psu_corporate_id = session.get("psuCorporateId")
        self.psu_context = session["context"]

    def forget(self) -> None:
        """Forget the PSU and take a new session id."""
        self.psu_id = self.psu_corporate_id = self.psu_context = None
        self.session_id = str(uuid.uuid4())

    def prepare(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,  # the name that other HTTP clients use
        body: bytes | str | None = None,
        headers: HeaderChanges | None = None,
        digest: bool | None = None,
        tamper: str | None = None,
    ) -> Prepared:
        """The signed request: `path` with its query as it will be sent, or a whole address of this bank.

        `path` is appended to the base address, unless it already starts with that address's path, as a Location does.
        `json` is sent as compact JSON, `body` unchanged. `headers` override the defaults: a value of None removes a
        header, from the signature too, and a Signature is sent unchanged. `digest` and `tamper` as in
        `signed_headers`.
        """
        content = _content(json, body)
        target = self._target(path)
        sent = signed_headers(
            method,
            target,
            self.identity,
            headers=self._headers(headers, has_body=bool(content)),
            body=content,
            digest=digest,
            now=self._clock(),
            tamper=tamper,
        )
        return Prepared(method.upper(), target, sent, content)

    def _target(self, path: str) -> str:
        if path.startswith(self.origin + "/"):
            return path[len(self.origin) :].partition("#")[0]
        if not path.startswith("/"):
            raise ValueError(f"a path of {self.base_url} must start with /, not {path!r}")
        below = path if path.startswith(f"{self._prefix}/") else self._prefix + path
        return below.partition("#")[0]

    def _headers(self, changes: HeaderChanges | None, *, has_body: bool) -> dict[str, str | None]:
        """The built-in headers, overridden by the defaults and then by the request's own; None means not sent."""
        built_in: dict[str, str | None] = {
            "Host": self._host,
            "Accept": "application/json",
            "Content-Type": "application/json" if has_body else None,
            "x-accept-fix": "amount-as-string",
            "TPP-Session-ID": self.session_id,
            "TPP-Redirect-URI": self.redirect_uri,
            "TPP-Notification-URI": self.notification_uri,
            "PSU-IP-Address": "192.0.2.1",
            "PSU-ID": self.psu_id,
            "PSU-Corporate-ID": self.psu_corporate_id,
            "PSU-Context": self.psu_context,
        }
        merged: dict[str, tuple[str, str | None]] = {}
        for source in (built_in, self._defaults, changes or {}):
            for name, value in one_line_each(source.items()).items():
                merged[name.lower()] = (name, value)
        return dict(merged.values())


def _content(value: Any, body: bytes | str | None) -> bytes:
    if body is not None:
        return body.encode() if isinstance(body, str) else body
    if value is None:
        return b""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
