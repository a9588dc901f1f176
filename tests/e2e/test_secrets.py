"""Keys, identity numbers and the control token stay where they belong: searched for in everything a run tells."""

from __future__ import annotations

import http.cookiejar
import json
import re
import stat
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from urllib.error import HTTPError

import pytest

from emulator.api.description import examples
from emulator.client import Identity, TppClient
from emulator.client.signing import signed_headers
from emulator.control.operations import table
from emulator.web.console.routes import PAGES
from tests.e2e.process import Served, served
from tests.known_state import DOMESTIC, KARI

TOKEN = "a-control-token-that-nobody-may-see"
BODY = examples.bodies(date(2026, 3, 2))["createPayment"]["norwegian-domestic-credit-transfers"]
LINK = re.compile(r'(?:href|action|src)="([^"#]+)"')


@dataclass
class Run:
    """A bank with a token, a past, and all that it has told: answers by address, then its log."""

    bank: Served
    texts: dict[str, bytes] = field(default_factory=dict)
    log: str = ""
    keys: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.browser = urllib.request.build_opener(cookies)
        self.browser.open(f"{self.bank.url}/console/login", urllib.parse.urlencode({"token": TOKEN}).encode())

    def control(self, method: str, path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        request = urllib.request.Request(f"{self.bank.url}/_emulator/{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return bytes(answer.read())
        except HTTPError as refused:
            return refused.read()

    def signed(self, tpp: TppClient, method: str, path: str, names: list[str]) -> None:
        """A request over these headers; whether it is accepted does not matter."""
        sent = {"X-PSU-IDENTITY": KARI, "X-Request-ID": "1", "x-accept-fix": "amount-as-string"}
        headers = signed_headers(method, path, tpp.identity, headers=sent, names=names)
        request = urllib.request.Request(self.bank.url + path, headers=headers, method=method)
        with suppress(HTTPError):
            urllib.request.urlopen(request, timeout=30).close()

    def look(self, path: str) -> bytes:
        try:
            with self.browser.open(self.bank.url + path, timeout=30) as answer:
                text = bytes(answer.read())
        except HTTPError as refused:
            text = refused.read()
        self.texts[path] = text
        return text

    def walk(self) -> None:
        """Console pages, of each kind some that another links to, and every GET of the control interface.

        But for ready scenarios and descriptions of the interface, which are the same in every bank.
        """
        waiting = ["/console", *(f"/console/{place}" for place, _ in PAGES if "{" not in place)]
        while waiting and len(self.texts) < 45:
            path = waiting.pop(0)
            if path in self.texts:
                continue
            links = LINK.findall(self.look(path).decode(errors="replace"))
            waiting += [link for link in links if re.match("/console(?!.*(/events$|/scenarios/))", link)]
        ids = {"{id}": ["latest", *(entry["id"] for entry in self._requests())], "{name}": ["known-state", "one"]}
        for row in table():
            if row.method != "GET" or re.search("/events$|openapi|schema", row.path):
                continue
            parameter = next((name for name in ids if name in row.path), None)
            for value in ids[parameter] if parameter else [""]:
                path = row.path.replace(parameter or "{}", value).lstrip("/")
                self.texts[f"control {path}"] = self.control("GET", path)

    def _requests(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = json.loads(self.control("GET", "requests"))["requests"]
        return entries


def _lived(run: Run) -> None:
    """A TPP is issued, pays, errs, and names a person by its number."""
    issued = json.loads(run.control("POST", "tpps", {"name": "shop", "roles": ["PISP", "AISP"]}))
    state = run.bank.state
    run.keys = [issued["key"], *(path.read_text() for path in state.rglob("*key*.pem"))]
    shop = TppClient(run.bank.url, Identity.from_pem(issued["certificate"], issued["key"]))
    named: dict[str, str | None] = {"X-PSU-IDENTITY": KARI, "PSU-ID": None}
    created = shop.post(DOMESTIC, json=BODY, headers=named)
    assert created.status == 201, created.text
    run.control("POST", f"sca/{created.json()['paymentId']}/approve", {})
    for tamper in ("bit-flipped", "other-key", "reordered", "other-body"):
        assert shop.post(DOMESTIC, json=BODY, headers=named, tamper=tamper).status == 400
    for number in (f"{KARI[:6]} {KARI[6:]}", f"{KARI}x"):
        assert shop.post(DOMESTIC, json=BODY, headers={**named, "X-PSU-IDENTITY": number}).status == 400
    # X-PSU-IDENTITY may be signed like any header, and then stands in the signing string.
    for method, path in (("GET", "/v1/accounts"), ("GET", f"{DOMESTIC}/nothing")):
        for names in (["date", "x-psu-identity"], ["(request-target)", "date", "x-request-id", "x-psu-identity"]):
            run.signed(shop, method, path, names)
    assert shop.get("/v1/accounts").status == 401
    run.control("PUT", "snapshots/one")
    run.control("PUT", "banks/other", {})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    state = tmp_path_factory.mktemp("secrets") / "state"
    with served(state, "--control-token", TOKEN) as bank:
        lived = Run(bank)
        _lived(lived)
        lived.walk()
        bank.process.terminate()
        _, lived.log = bank.process.communicate(timeout=20)
        yield lived


def test_the_walk_sees_the_pages_and_the_operations(run: Run) -> None:
    places = {path.partition("?")[0] for path in run.texts if path.startswith("/console")}
    assert len(places) > 25
    assert sum(path.startswith("/console/requests/") for path in places) >= 8
    assert sum(path.startswith("control requests/") for path in run.texts) >= 8
    assert b"tppMessages" not in run.texts["control tpps"]
    assert "documents in" in run.log


def test_every_file_of_the_state_is_for_its_owner_only(run: Run) -> None:
    files = [path for path in run.bank.state.rglob("*") if path.is_file()]
    assert sum("key" in path.name for path in files) >= 3
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for path in (run.bank.state, *(path for path in run.bank.state.rglob("*") if path.is_dir())):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path


def test_no_private_key_is_told_after_its_issue(run: Run) -> None:
    assert len(run.keys) >= 3
    lines = {line for key in run.keys for line in key.splitlines() if len(line) == 64}
    assert lines
    for where, text in {**run.texts, "the log": run.log.encode()}.items():
        assert b"PRIVATE KEY" not in text, where
        # A few words of explanation on a page are no key: the lines of the base64 are looked for themselves.
        assert not any(line.encode() in text for line in lines), where


def test_the_control_token_is_told_nowhere(run: Run) -> None:
    for where, text in {**run.texts, "the log": run.log.encode()}.items():
        assert TOKEN.encode() not in text, where


def test_identity_numbers_are_masked_in_the_log_and_in_the_logged_requests(run: Run) -> None:
    assert KARI not in run.log
    for where, text in run.texts.items():
        if where.startswith("control requests"):
            assert KARI.encode() not in text, where
            assert f"{KARI[:6]} {KARI[6:]}".encode() not in text, where
        if where.startswith("/console/requests"):
            assert KARI.encode() not in text, where
