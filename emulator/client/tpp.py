"""What both clients share: a TPP's standing headers, what it remembers of its PSU, and the request to send."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict
from urllib.parse import parse_qs, urlsplit

from emulator.client.identity import HoldsKey, Identity
from emulator.client.signing import signed_headers
from emulator.httpsig.sendable import address_of

HeaderChanges = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request ready to go: everything as it will stand on the wire."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Options(TypedDict, total=False):
    """What a request may be given beside method and path; see `Tpp.prepare`."""

    json: Any
    body: bytes | str | None
    headers: HeaderChanges | None
    digest: bool | None
    tamper: str | None


def real_now() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


class Tpp:
    """A TPP at one bank: it signs what it sends and keeps `psu_id`, `session_id`, `psu_corporate_id`, `psu_context`.

    `base_url` may end in a path, such as `http://127.0.0.1:8080/banks/a`. `defaults` are headers for every request;
    one that a request sets to None is left out.
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
        self._prefix = parts.path.rstrip("/")
        self._host = parts.netloc.rpartition("@")[2]
        self._defaults = dict(defaults or {})
        self._clock = clock

    def remember(self, redirect: str) -> dict[str, str]:
        """Take over what the redirect after an SCA tells (SPEC 5.3, items 3 and 4); its query parameters."""
        told = {name: values[-1] for name, values in parse_qs(urlsplit(redirect).query).items()}
        if "psu-id" in told:
            self.psu_id = told["psu-id"]
            self.psu_corporate_id = told.get("psu-corporate-id")
            self.psu_context = told.get("context")
            self.session_id = told.get("tpp-session-id", self.session_id)
        return told

    def forget(self) -> None:
        """Start over without a PSU, under a new session id."""
        self.psu_id = self.psu_corporate_id = self.psu_context = None
        self.session_id = str(uuid.uuid4())

    def prepare(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,  # named as in the HTTP clients that people know
        body: bytes | str | None = None,
        headers: HeaderChanges | None = None,
        digest: bool | None = None,
        tamper: str | None = None,
    ) -> Prepared:
        """The signed request: `path` with its query as it will be sent, or a whole address of this bank.

        `path` goes below the base address, unless it says that one's path itself, as a Location does.
        `json` is sent as compact JSON, `body` as it is. `headers` override: None leaves one out, of what is signed
        too, and a Signature is sent as it is. `digest` and `tamper` as in `signed_headers`.
        """
        content = _content(json, body)
        given = self._headers(headers, has_body=bool(content))
        target = self._target(path)
        sent = signed_headers(
            method, target, self.identity, headers=given, body=content, digest=digest, now=self._clock(), tamper=tamper
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
        """The standing headers (SPEC 2.1), then the defaults, then the request's own; None: without it."""
        standing: dict[str, str | None] = {
            "Host": self._host,
            "Accept": "application/json",
            "Content-Type": "application/json" if has_body else None,
            "x-accept-fix": "amount-as-string",
            "TPP-Session-ID": self.session_id,
            "TPP-Redirect-URI": self.redirect_uri,
            "PSU-IP-Address": "192.0.2.1",
            "PSU-ID": self.psu_id,
            "PSU-Corporate-ID": self.psu_corporate_id,
            "PSU-Context": self.psu_context,
        }
        merged: dict[str, tuple[str, str | None]] = {}
        for source in (standing, self._defaults, changes or {}):
            for name, value in source.items():
                merged[name.lower()] = (name, value)
        return dict(merged.values())


def _content(value: Any, body: bytes | str | None) -> bytes:
    if body is not None:
        return body.encode() if isinstance(body, str) else body
    if value is None:
        return b""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
