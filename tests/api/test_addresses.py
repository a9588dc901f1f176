"""One bank below several addresses: production's prefix, the default bank's own and those of named banks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.api.messages import Request, Response
from emulator.assemble import assemble
from emulator.ca import CertificateAuthority
from emulator.client.clients import Tpp
from emulator.settings import ServeSettings
from tests.api.desk import BASE

HOST = (("Host", "127.0.0.1:8080"), ("Content-Type", "application/json"))


@pytest.mark.parametrize("prefix", ["", "/api-sandbox", "/banks/x", "/banks/x/api-sandbox"])
def test_what_the_wire_refuses_is_signed_and_stands_in_the_log_of_its_bank(
    authority: CertificateAuthority, prefix: str
) -> None:
    application = assemble(ServeSettings(ephemeral=True, state=Path()), authority=authority)
    bank = prefix.removesuffix("/api-sandbox")
    for target, body in (("/_emulator/banks/x", b"{}"), (f"{bank}/_emulator/settings", b'{"sign_responses":true}')):
        assert application.handle(Request("PUT", target, HOST, body, BASE)).status in (200, 201)
    refusal = Response(413, body=b"{}")
    sent = Request("POST", f"{prefix}/v1/consents?x=y", (("X-Request-ID", "my-id"),), base=BASE)
    application.refused(sent, refusal)
    headers = dict(refusal.headers)
    assert headers["X-Request-ID"] == "my-id"
    assert 'headers="digest x-request-id date"' in headers["Signature"]
    listed = application.handle(Request("GET", f"{bank}/_emulator/requests", HOST, base=BASE))
    assert isinstance(listed, Response)
    [entry] = json.loads(listed.body)["requests"]
    assert (entry["target"], entry["status"]) == (sent.target, 413)
    application.close()


def test_a_bank_that_is_not_there_returns_the_x_request_id(authority: CertificateAuthority) -> None:
    application = assemble(ServeSettings(ephemeral=True, state=Path()), authority=authority)
    answer = application.handle(
        Request("GET", "/banks/none/v1/accounts", (*HOST, ("X-Request-ID", "my-id")), base=BASE)
    )
    assert (answer.status, dict(answer.headers)["X-Request-ID"]) == (404, "my-id")
    refusal = Response(413)
    application.refused(Request("POST", "/banks/none/v1/user", (("X-Request-ID", "my-id"),), base=BASE), refusal)
    assert dict(refusal.headers)["X-Request-ID"] == "my-id"
    application.close()


@pytest.mark.parametrize("target", ["/_emulator/clock", "/banks/x/_emulator/clock", "/health"])
def test_what_the_wire_refuses_of_others_stands_in_no_log(authority: CertificateAuthority, target: str) -> None:
    application = assemble(ServeSettings(ephemeral=True, state=Path()), authority=authority)
    refusal = Response(413)
    application.refused(Request("POST", target, base=BASE), refusal)
    assert (refusal.headers, list(application.default.log.newest())) == ([], [])
    application.close()


@pytest.mark.parametrize("bank", ["", "/banks/x"])
@pytest.mark.parametrize("links", ["relative", "absolute"])
def test_a_bank_answers_below_the_prefix_of_production_too(
    authority: CertificateAuthority, bank: str, links: str
) -> None:
    application = assemble(ServeSettings(ephemeral=True, state=Path(), links=links), authority=authority)

    def asked(method: str, target: str, headers: Any = HOST, body: bytes = b"{}") -> tuple[int, Any]:
        answer = application.handle(Request(method, target, tuple(headers), body, BASE))
        assert isinstance(answer, Response)
        return answer.status, json.loads(answer.body)

    assert asked("PUT", "/_emulator/banks/x")[0] == 201
    tpp = Tpp(f"{BASE}{bank}/api-sandbox", authority.find("demo") or authority.issue("demo"))

    def signed(path: str) -> tuple[int, Any]:
        prepared = tpp.prepare("GET", path)
        return asked("GET", prepared.target, prepared.headers.items(), b"")

    status, refused = signed("/v1/accounts")
    link = refused["_links"]["scaRedirect"]["href"]
    assert (status, link.rpartition("/")[0]) == (401, f"{BASE}{bank}/sca")
    approved = f"{bank}/_emulator/sca/{link.rpartition('/')[2]}/approve"
    tpp.remember(asked("POST", approved, body=b'{"nationalId": "14888520059"}')[1]["redirect"])
    status, listed = signed("/v1/accounts")
    self_link = listed["accounts"][0]["_links"]["self"]["href"]
    assert status == 200
    # a relative link of a named bank would lead to the default bank
    assert self_link.startswith(f"{BASE}{bank}/api-sandbox/v1/" if links == "absolute" or bank else "/v1/")
    assert signed(self_link.removeprefix(tpp.base_url))[0] == 200
    assert asked("GET", f"{bank}/api-sandbox/_emulator/clock", body=b"")[0] == 404
    application.close()


def test_options_names_the_methods_of_what_tells_about_the_bank(authority: CertificateAuthority) -> None:
    application = assemble(ServeSettings(ephemeral=True, state=Path()), authority=authority)
    for path in ("/health", "/ready", "/openapi.json"):
        for method, status in (("OPTIONS", 204), ("POST", 405)):
            answer = application.handle(Request(method, path, HOST, base=BASE))
            assert isinstance(answer, Response), path
            assert (answer.status, dict(answer.headers)["Allow"]) == (status, "GET, HEAD, OPTIONS"), path
    application.close()


@pytest.mark.parametrize("bank", ["", "/banks/x"])
def test_texts_about_addresses_name_those_of_the_bank(authority: CertificateAuthority, bank: str) -> None:
    application = assemble(ServeSettings(ephemeral=True, state=Path()), authority=authority)

    def text(method: str, target: str) -> str:
        answer = application.handle(Request(method, target, HOST, b"{}", BASE))
        assert isinstance(answer, Response)
        return str(json.loads(answer.body)["tppMessages"][0]["text"])

    application.handle(Request("PUT", "/_emulator/banks/x", HOST, b"{}", BASE))
    for place in ("/v1/accounts", "/api-sandbox/v1/accounts", "/_emulator/settings"):
        sent, meant = f"{bank}{place[:-1]}", f"{bank}{place}"
        assert text("GET", sent) == f"There is no address {sent}; did you mean {meant}?"
    for end in ("", "/"):
        assert (
            text("GET", f"{bank}/_emulator{end}")
            == f"There is no address {bank}/_emulator/; see /_emulator/openapi.json."
        )
    assert text("GET", f"{bank}/_emulator/x") == f"There is no address {bank}/_emulator/x; see /_emulator/openapi.json."
    for place in ("/v1/accounts", "/_emulator/settings", "/health"):
        assert text("PATCH", bank + place).startswith(f"{bank}{place} "), "405"
    application.close()
