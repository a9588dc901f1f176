"""The signing proxy: what comes in goes on as it is, signed, and the answer comes back as it is."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession, web
from multidict import CIMultiDict

from emulator.ca import CertificateAuthority
from emulator.cli import main
from emulator.client import AsyncTppClient
from emulator.client.proxy import SigningProxy, _body
from emulator.httpsig.signing import digest_value

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
PATIENCE = 10.0  # seconds until a test gives up


@asynccontextmanager
async def bank(handler: Handler) -> AsyncIterator[str]:
    """Something that answers in the place of a bank; its address."""
    runner = web.ServerRunner(web.Server(handler, auto_decompress=False, handler_cancellation=True))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def proxy(
    target: str, authority: CertificateAuthority, *, log: Callable[[str], None] = lambda _: None, timeout: float = 60
) -> AsyncIterator[str]:
    """A proxy before `target`; its address."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running_proxy = SigningProxy(AsyncTppClient(target, authority.demo(), timeout=timeout), log=log)
    running = asyncio.ensure_future(running_proxy.run(0, ready.set_result))
    try:
        yield await asyncio.wait_for(ready, PATIENCE)
    finally:
        running.cancel()
        await asyncio.wait((running,), timeout=PATIENCE)
        assert running.done()


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    from emulator.bank.clock import real_now

    return CertificateAuthority(None, clock=real_now)


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
async def test_a_compressed_answer_comes_back_as_it_is(authority: CertificateAuthority, coding: str) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.headers["Accept-Encoding"] == coding
        return web.Response(body=b"not to be opened", headers={"Content-Encoding": coding})

    async with (
        bank(answer) as target,
        proxy(target, authority) as address,
        ClientSession(auto_decompress=False) as http,
        http.get(f"{address}/v1/accounts", headers={"Accept-Encoding": coding}) as got,
    ):
        assert (got.status, got.headers["Content-Encoding"]) == (200, coding)
        assert await got.read() == b"not to be opened"


async def test_a_compressed_body_goes_on_as_it_is(authority: CertificateAuthority) -> None:
    body = gzip.compress(b'{"x": 1}')
    seen: list[Any] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        seen.append((request.headers["Content-Encoding"], request.headers["Digest"], await request.read()))
        return web.Response()

    async with (
        bank(answer) as target,
        proxy(target, authority) as address,
        ClientSession() as http,
        http.post(f"{address}/v1/x", data=body, headers={"Content-Encoding": "gzip"}) as got,
    ):
        assert got.status == 200
    assert seen == [("gzip", digest_value(body), body)]


async def test_a_cookie_is_passed_on_and_not_kept_for_others(authority: CertificateAuthority) -> None:
    seen: list[str | None] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        seen.append(request.headers.get("Cookie"))
        return web.Response(headers={"Set-Cookie": "login=mine; Path=/"})

    async with bank(answer) as target, proxy(target.replace("127.0.0.1", "localhost"), authority) as address:
        for cookies in ({}, {"own": "1"}, {}):
            async with ClientSession(cookies=cookies) as http, http.get(f"{address}/console") as got:
                assert got.headers["Set-Cookie"] == "login=mine; Path=/"
    assert seen == [None, "own=1", None]


async def test_lists_on_several_lines_go_on_as_one_and_in_their_own_spelling(authority: CertificateAuthority) -> None:
    seen: list[list[str]] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        seen.append([value for name in ("Accept", "x-accept-fix") for value in request.headers.getall(name)])
        return web.Response()

    async with bank(answer) as target, proxy(target, authority) as address:
        lines = b"accept: text/csv\r\nX-ACCEPT-FIX: amount-as-string\r\nx-accept-fix: links"
        assert await asked_raw(address, b"GET /v1/x HTTP/1.1\r\n" + lines, b"")
    assert seen == [["text/csv", "amount-as-string, links"]]


async def asked_raw(address: str, head: bytes, body: bytes) -> bytes:
    """All that comes back for these bytes on a connection that is then at its end."""
    reader, writer = await asyncio.open_connection(*address.removeprefix("http://").split(":"))
    writer.write(head + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n" + body)
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    return answer


async def test_a_client_that_waits_with_its_body_is_told_to_go_on(authority: CertificateAuthority) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        assert "Expect" not in request.headers
        return web.Response(body=await request.read())

    async with bank(answer) as target, proxy(target, authority) as address:
        reader, writer = await asyncio.open_connection(*address.removeprefix("http://").split(":"))
        lines = [
            "POST /v1/x HTTP/1.1",
            "Host: localhost",
            "Content-Length: 4",
            "Expect: 100-Continue",
            "Connection: close",
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        async with asyncio.timeout(PATIENCE):
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"body")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    assert (head.split(b"\r\n")[0], body) == (b"HTTP/1.1 200 OK", b"body")


@pytest.mark.parametrize(
    "head, body, status, message_part",
    [
        (b"GET /v1/x HTTP/1.1\r\nPSU-ID: a\r\npsu-id: b", b"", 400, "the header PSU-ID appears more than once"),
        (
            b"GET /v1/x HTTP/1.1\r\nTPP-Redirect-URI: http://x/\xe6",
            b"",
            400,
            "the value of the header TPP-Redirect-URI",
        ),
        (b"GET /v1/x HTTP/1.1\r\nX-Test: \xe6", b"", 400, "the value of the header X-Test must be one line of text"),
        (b"OPTIONS * HTTP/1.1", b"", 400, "must start with /, not '*'"),
        (b"POST /v1/x HTTP/1.1\r\nContent-Length: 1048577", bytes(1048577), 413, "Maximum request body size 1048576"),
    ],
)
async def test_what_the_proxy_itself_refuses_is_told_as_the_bank_does(
    authority: CertificateAuthority, head: bytes, body: bytes, status: int, message_part: str
) -> None:
    async with proxy("http://127.0.0.1:1", authority) as address:
        answer = await asked_raw(address, head, body)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    [message] = json.loads(answer.partition(b"\r\n\r\n")[2])["tppMessages"]
    assert (message["category"], message["code"], message_part in message["text"]) == ("ERROR", "BAD_REQUEST", True)


@pytest.mark.parametrize(
    ("framing", "begun"),
    [("Transfer-Encoding: chunked", "zz\r\nabc\r\n"), ("Content-Length: 10", "abc")],
    ids=["malformed", "stops"],
)
async def test_a_body_that_breaks_off_after_its_head_is_refused_in_time(
    authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch, framing: str, begun: str
) -> None:
    monkeypatch.setattr("emulator.client.proxy.BODY_SECONDS", 0.2)
    read = asyncio.Event()

    async def wait(request: web.BaseRequest) -> bytes:
        read.set()
        return await _body(request)

    monkeypatch.setattr("emulator.client.proxy._body", wait)
    async with proxy("http://127.0.0.1:1", authority) as address, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(*address.removeprefix("http://").split(":"))
        writer.write(f"POST /v1/x HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n".encode())
        await read.wait()
        writer.write(begun.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readuntil(b"}]}")
        writer.close()
    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body)["tppMessages"][0]["text"] == "The body did not arrive whole within 0.2 seconds."


async def test_an_answer_that_takes_too_long_is_told_with_its_cause(authority: CertificateAuthority) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    lines: list[str] = []
    async with (
        bank(answer) as target,
        proxy(target, authority, log=lines.append, timeout=0.01) as address,
        ClientSession() as http,
        http.get(f"{address}/v1/accounts") as got,
    ):
        assert got.status == 502
        assert (await got.json())["tppMessages"][0]["text"] == f"{target} does not answer: TimeoutError"
    assert lines == ["GET /v1/accounts -> no answer: TimeoutError"]


async def test_a_client_that_gives_up_ends_the_request_at_the_bank(authority: CertificateAuthority) -> None:
    asked, given_up = asyncio.Event(), asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        raise AssertionError

    async with bank(answer) as target, proxy(target, authority) as address, ClientSession() as http:
        asking = asyncio.ensure_future(http.get(f"{address}/v1/accounts"))
        await asyncio.wait_for(asked.wait(), PATIENCE)
        asking.cancel()
        await asyncio.wait_for(given_up.wait(), PATIENCE)


async def test_the_end_does_not_wait_for_an_answer_that_does_not_come(
    authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.client.proxy.FINISH_SECONDS", 0.01)
    asked = asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with bank(answer) as target, ClientSession() as http:
        async with proxy(target, authority) as address:
            asking = asyncio.ensure_future(http.get(f"{address}/v1/accounts"))
            await asyncio.wait_for(asked.wait(), PATIENCE)
        with pytest.raises(ClientError):
            await asking


def test_the_command_goes_on_where_nobody_can_read_that_it_is_ready(
    authority: CertificateAuthority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(self: SigningProxy, port: int, ready: Callable[[str], None]) -> None:
        ready(f"http://127.0.0.1:{port}")

    (tmp_path / "certificate.pem").write_text(authority.demo().certificate_pem)
    (tmp_path / "key.pem").write_bytes(authority.demo().key_pem)
    signer = ["--certificate", str(tmp_path / "certificate.pem"), "--key", str(tmp_path / "key.pem")]
    monkeypatch.setattr(SigningProxy, "run", run)
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as unread, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", unread)
        assert main.run(["proxy", "--quiet", *signer]) == 0
    assert capsys.readouterr().err == ""


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://[::1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Referer": "https://evil.example/page"},
]


async def test_nothing_is_signed_for_the_page_of_another_site(authority: CertificateAuthority) -> None:
    seen: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        seen.append(request.path)
        return web.Response()

    async with bank(answer) as target, proxy(target, authority) as address, ClientSession() as http:
        methods = (("POST", "/v1/payments/x"), ("GET", "/v1/accounts"), ("HEAD", "/health"))
        for (method, path), headers in product(methods, FOREIGN):
            async with http.request(method, address + path, data=b"x", headers=headers) as refused:
                assert refused.status == 403, (method, headers)
                if method != "HEAD":
                    [message] = (await refused.json())["tppMessages"]
                    assert (message["code"], message["path"]) == ("FORBIDDEN", next(iter(headers)))
        assert seen == []
        own = {"Origin": address, "Referer": f"{address}/x", "Sec-Fetch-Site": "same-origin"}
        for (method, path), allowed in product(methods, ({}, own, {"Sec-Fetch-Site": "none"})):
            async with http.request(method, address + path, headers=allowed) as signed:
                assert signed.status == 200, (method, allowed)
        assert len(seen) == 9


async def test_the_customer_returns_once_and_only_from_a_flow_that_began_here(authority: CertificateAuthority) -> None:
    seen: list[CIMultiDict[str]] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        seen.append(CIMultiDict(request.headers))
        return web.Response()

    async with bank(answer) as target, proxy(target, authority) as address, ClientSession() as http:

        async def get(url: str, **headers: str) -> tuple[int, str]:
            async with http.get(url, headers=headers) as got:
                return got.status, await got.text()

        fixed = "?psu-id=11111111-1111-4111-8111-111111111111&tpp-session-id=22222222-2222-4222-8222-222222222222"
        for path in ("/_proxy/callback", "/_proxy/callback/", "/_proxy/callback/guessed", "/_proxy/callback/guessed/x"):
            assert (await get(f"{address}{path}{fixed}"))[0] == 400
        await get(f"{address}/v1/accounts")
        await get(f"{address}/v1/accounts")
        first, second = (headers["TPP-Redirect-URI"] for headers in seen)
        assert first != second
        assert "PSU-ID" not in seen[-1]
        assert first.startswith(f"{address}/_proxy/callback/")
        assert (await get(f"{first}{fixed}", **{"Sec-Fetch-Dest": "image"}))[0] == 400
        assert (await get(first))[0] == 400
        assert (await get(f"{first}{fixed}", **{"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"}))[
            0
        ] == 200
        assert (await get(f"{first}{fixed}"))[0] == 400, "once"
        assert (await get(f"{second}?code=SCA_INVALID&message=declined")) == (
            200,
            "The SCA failed: SCA_INVALID declined\n",
        )
        await get(f"{address}/v1/accounts")
        assert seen[-1]["PSU-ID"] == "11111111-1111-4111-8111-111111111111"
        await get(f"{address}/v1/accounts", **{"TPP-Redirect-URI": "https://own.example/back"})
        assert seen[-1].getall("TPP-Redirect-URI") == ["https://own.example/back"]


async def test_control_characters_of_a_client_do_not_reach_the_terminal(authority: CertificateAuthority) -> None:
    lines: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response()

    async with bank(answer) as target, proxy(target, authority, log=lines.append) as address:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(b"GET /v1/\xc2\x9b31mred HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
    assert all(line.isprintable() for line in lines)


async def test_a_malformed_request_is_one_line_of_the_log_and_no_traceback(
    authority: CertificateAuthority, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response()

    async with bank(answer) as target, proxy(target, authority, log=lines.append) as address:
        got = await asked_raw(address, b"GET /v1/x HTTP/1.1\r\nHost: localhost", b"")  # `asked_raw` adds another Host
    assert got.split(maxsplit=2)[1] == b"400"
    assert lines == ["Error handling request from 127.0.0.1: 400, message: Duplicate 'Host' header found."]
    assert caplog.text == ""
