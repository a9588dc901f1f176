"""Lies to the pages for people and to the control interface: tokens, forged forms, foreign origins, Host names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

import pytest

from emulator.api.messages import Request
from tests.hostile.attack import Target
from tests.unit.pages.living import Living
from tests.unit.pages.visitor import HOST

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
TOKEN = "5f0f3b0e8a534c2f9d0e6a1f7c2b9e41"


@dataclass(frozen=True)
class PageCase:
    """A request as a browser or a script sends it; OPEN in its path stands for an open SCA, `{csrf}` for its token."""

    name: str
    status: int
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def _origins() -> Iterator[PageCase]:
    origins = {
        "another application": "https://evil.example",
        "nobody": "null",
        "nothing": "",
        "our name as a subdomain": f"http://{HOST.partition(':')[0]}.evil.example",
        "our name before an at sign": f"http://{HOST}@evil.example",
        "our name at another port": "http://127.0.0.1:9",
        "a file": "file://",
        "a script": "javascript:alert(1)",
        "two origins": f"http://{HOST} https://evil.example",
        "half an IPv6 address": "http://[::1",
        "another name of this machine": "http://localhost:8080",
    }
    for name, origin in origins.items():
        for path in ("/sca/OPEN", "/console/clock", "/console/reset"):
            headers = {"Origin": origin, "Content-Type": FORM}
            yield PageCase(f"origin: {name} at {path}", 403, "POST", path, headers, b"csrf={csrf}&action=decline")
    for path in ("/sca/OPEN", "/console/reset"):
        headers = {"Sec-Fetch-Site": "cross-site", "Content-Type": FORM}
        yield PageCase(f"a cross-site form at {path}", 403, "POST", path, headers, b"csrf={csrf}&action=decline")
    headers = {"Sec-Fetch-Site": "cross-site", "Content-Type": JSON}
    yield PageCase("a cross-site script at reset", 403, "POST", "/_emulator/reset", headers, b"{}")


def _forged() -> Iterator[PageCase]:
    own = {"Origin": f"http://{HOST}", "Content-Type": FORM}
    for name, body in {
        "no token": b"action=decline",
        "an empty token": b"csrf=&action=decline",
        "a token of noughts": b"csrf=" + b"0" * 64 + b"&action=decline",
        "a token beyond ASCII": b"csrf=%C3%A5&action=decline",
    }.items():
        yield PageCase(f"form: {name}", 403, "POST", "/sca/OPEN", own, body)
        yield PageCase(f"console form: {name}", 403, "POST", "/console/reset", own, body)
    for name, (status, kind, body) in {
        "JSON for a form": (415, JSON, b'{"action":"decline"}'),
        "plain text for a form": (415, "text/plain", b"action=decline"),
        "no type": (415, "", b"action=decline"),
        "files": (415, "multipart/form-data; boundary=x", b"--x--"),
        "bytes beyond ASCII": (400, FORM, b"csrf=\xff"),
        "escapes that are not UTF-8": (400, FORM, b"csrf=%ff"),
        "100,000 fields": (400, FORM, b"a=1&" * 100_000),
    }.items():
        headers = {**own, "Content-Type": kind}
        yield PageCase(f"form: {name}", status, "POST", "/sca/OPEN", headers, body)
        yield PageCase(f"console form: {name}", status, "POST", "/console/reset", headers, body)
    for step in ("approve", "method", "context", "nothing"):
        # The form of a step that has not been reached is shown the step that has.
        body = f"csrf={{csrf}}&step={step}&account=x&acting=PRIVATE&method=HA2".encode()
        yield PageCase(f"form: straight to {step}", 303, "POST", "/sca/OPEN", own, body)
    for typed in ("", "x", "1" * 12, "1" * 5000, "' OR 1=1--", "<script>alert(1)</script>", "١٤٨٨٨٥٢٠٠٥٩", "\0"):
        body = f"csrf={{csrf}}&step=identity&nationalId={quote(typed)}".encode()
        yield PageCase(f"identity number {typed[:20]!r}", 400, "POST", "/sca/OPEN", own, body)


def _tokens() -> Iterator[PageCase]:
    for name, token in {
        "of nobody": TOKEN,
        "nothing": "",
        "a wildcard": "*",
        "latest": "latest",
        "a climb": "..%2f..%2fconsole",
        "a climb with dots": "../console",
        "NUL": "%00",
        "not UTF-8": "%ff",
        "SQL": "%27%20OR%201=1--",
        "a template": "{{7*7}}",
        "a script": "%3Cscript%3Ealert(1)%3C/script%3E",
        "with a slash behind": "OPEN/",
        "with more behind": "OPENx",
        "in capitals": "OPEN%20",
        "four thousand characters": "x" * 4000,
    }.items():
        yield PageCase(f"SCA token {name}", 404, "GET", f"/sca/{token}")
    yield PageCase(
        "SCA token of nobody, posted", 404, "POST", f"/sca/{TOKEN}", {"Content-Type": FORM}, b"action=decline"
    )
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        yield PageCase(f"{method} on an SCA", 405, method, "/sca/OPEN")
        yield PageCase(f"{method} on the console", 405, method, "/console")
    for path in (
        "/static/../rendering.py",
        "/static/%2e%2e/handler.py",
        "/static//etc/passwd",
        "/static/..%2fhandler.py",
        "/static/C:%5c",
        "/static/%00",
        "/console/nothing",
        "/console/requests/-1",
        "/console/requests/%00",
        f"/console/requests/{'9' * 400}",
        "/console/payments/%27--",
        "/console/scenarios/..%2f..%2fetc",
        "/console/accounts/__class__",
        "/console/../_emulator",
    ):
        yield PageCase(f"page {path[:50]}", 404, "GET", path)


def _hosts() -> Iterator[PageCase]:
    for name in (
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example#localhost",
        "evil.example/localhost",
        "user@evil.example",
        "localhost@evil.example",
        "0.0.0.0",
        "127.0.0.2",
        "2130706433",
        "0x7f000001",
        "127.1",
        "[::ffff:127.0.0.1]",
        "[::]",
        "localhost.",
        "lοcalhost",
        "",
    ):
        for path in ("/sca/OPEN", "/console", "/_emulator/people"):
            yield PageCase(f"Host {name!r} at {path}", 403, "GET", path, {"Host": name})
    yield PageCase(
        "Host of another name, changing",
        403,
        "POST",
        "/_emulator/reset",
        {"Host": "evil.example", "Content-Type": JSON},
        b"{}",
    )


LIES = {"origins": _origins, "forms": _forged, "tokens": _tokens, "hosts": _hosts}


@pytest.mark.parametrize("theme", LIES)
def test_a_lie_to_a_page_is_refused(
    emulator: Living, target: Target, theme: str, caplog: pytest.LogCaptureFixture
) -> None:
    # An SCA that is open throughout: no lie may move it.
    opened = target.fresh().get("/v1/accounts").json()["_links"]["scaRedirect"]["href"].rpartition("/")[2]
    csrf = {console: target.csrf("/console" if console else f"/sca/{opened}").encode() for console in (True, False)}
    for case in LIES[theme]():
        headers = {"Host": HOST, **case.headers}
        body = case.body.replace(b"{csrf}", csrf[case.path.startswith("/console")])
        request = Request(case.method, case.path.replace("OPEN", opened), tuple(headers.items()), body, emulator.base)
        answer = target.refused(case.name, request, caplog)
        assert (case.name, answer.status) == (case.name, case.status), answer.body[:600]
        assert b"<script>alert" not in answer.body, case.name
        assert b"/sca/49" not in answer.body, case.name
