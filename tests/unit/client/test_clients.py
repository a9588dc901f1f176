"""The signed clients, over a real port: what they send is what the bank's gate accepts."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self, get_type_hints
from uuid import UUID

import pytest
from cryptography.hazmat.primitives import serialization

from emulator.api.signature import SignatureRefused, check
from emulator.api.signature.rules import verifies
from emulator.bank.settings import Settings
from emulator.ca import CertificateAuthority, Credentials
from emulator.client import TAMPERINGS, AsyncTppClient, Identity, TppClient, sign, signed_headers
from emulator.client.clients import ResponseHeaders, TppResponse
from emulator.httpsig.keyid import key_id_for
from emulator.httpsig.signing import digest_value, parse, signature_header, signing_string
from tests.cases import cases


def now() -> datetime:
    return datetime.now(UTC)


class Gate(BaseHTTPRequestHandler):
    """Answers with what arrived, and with what the bank's gate says of it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        sent = [(name, value.encode("latin-1").decode()) for name, value in self.headers.items()]
        answer: dict[str, Any] = {"method": self.command, "target": self.path, "headers": sent, "body": body.decode()}
        try:
            verified = check(
                self.command, self.path, sent, body,
                digest_required=bool(body), settings=Settings(), instant=now().timestamp(), trusted_ca=None,
            )  # fmt: skip
            answer |= {"tpp": verified.tpp.id, "notes": verified.notes}
        except SignatureRefused as refused:
            answer["messages"] = [(one.code, one.path, one.text) for one in refused.messages]
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Twice", "1")
        self.send_header("X-Twice", "2")
        if "close" in self.path:
            self.send_header("X-Silent", "closes without saying so")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        self.handle_any()

    def do_POST(self) -> None:
        self.handle_any()

    def do_PUT(self) -> None:
        self.handle_any()

    def do_DELETE(self) -> None:
        self.handle_any()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority(None, clock=now)


@pytest.fixture(scope="module")
def credentials(authority: CertificateAuthority) -> Credentials:
    return authority.issue("client", organization_identifier="PSDNO-SBX-3")


@contextmanager
def serving(handler: type[Gate]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}"
        finally:
            listening.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(Gate) as address:
        yield address


@pytest.fixture
def client(server: str, credentials: Credentials) -> Iterator[TppClient]:
    with TppClient(server, credentials) as tpp:
        yield tpp


def headers_of(answer: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.json()["headers"]}


def test_a_signed_request_arrives_with_its_required_headers(client: TppClient) -> None:
    answer = client.post("/v1/payments/sepa-credit-transfers?allowLogicalDuplicate=true", json={"a": "ø"})
    body = answer.json()
    assert answer.status == 200
    assert (body["tpp"], body["notes"], body["body"]) == ("PSDNO-SBX-3", [], '{"a":"ø"}')
    assert body["target"] == "/v1/payments/sepa-credit-transfers?allowLogicalDuplicate=true"
    sent = headers_of(answer)
    assert sent["digest"] == digest_value('{"a":"ø"}'.encode())
    assert {"x-accept-fix", "tpp-session-id", "tpp-redirect-uri", "psu-ip-address", "x-request-id", "date"} <= set(sent)
    assert "psu-id" not in sent
    assert len(body["headers"]) == len(sent)


@cases("method", ["get", "post", "put", "delete"])
def test_every_method_is_signed(client: TppClient, method: str) -> None:
    answer = getattr(client, method)("/v1/x")
    assert (answer.json()["method"], answer.json()["tpp"]) == (method.upper(), "PSDNO-SBX-3")
    assert "digest" not in headers_of(answer)


def test_headers_may_be_given_overridden_and_left_out(client: TppClient) -> None:
    answer = client.get("/v1/x", headers={"psu-ip-address": None, "X-Request-ID": "mine", "TPP-Session-ID": "s"})
    sent = headers_of(answer)
    assert answer.json()["tpp"]
    assert "psu-ip-address" not in sent
    assert (sent["x-request-id"], sent["tpp-session-id"]) == ("mine", "s")
    assert headers_of(client.get("/v1/x", headers={"Date": None})).get("date") is None
    assert headers_of(client.get("/v1/x", headers={"x-request-id": None})).get("x-request-id") is None


@cases("name", ["X-Request-ID", "digest", "Date", "PSU-ID", "TPP-Signature-Certificate"])
def test_a_header_that_is_left_out_is_not_signed(client: TppClient, name: str) -> None:
    client.psu_id = "aa0bcd2b-0d9d-4a5b-8c0b-7a3f0c4c1e2f"
    sent = client.prepare("POST", "/v1/x", body="{}", headers={name: None}).headers
    signed = (parse(sent["Signature"]).headers or "").split()
    assert name.lower() not in {*signed, *map(str.lower, sent)}
    assert {"x-request-id", "digest", "date", "psu-id"} - {name.lower()} <= set(signed)


@cases("name", ["Signature", "signature"])
def test_a_signature_that_is_given_is_sent_as_it_is(client: TppClient, name: str) -> None:
    sent = client.prepare("GET", "/v1/x", headers={name: 'keyId="mine"'}).headers
    assert {sent[header] for header in sent if header.lower() == "signature"} == {'keyId="mine"'}
    assert {"Date", "X-Request-ID", "TPP-Signature-Certificate"} <= set(sent)
    assert name not in client.prepare("GET", "/v1/x", headers={name: None}).headers
    with pytest.raises(ValueError, match="tamper"):
        client.prepare("GET", "/v1/x", headers={name: "mine"}, tamper="old-date")


def test_defaults_hold_for_every_request(server: str, credentials: Credentials) -> None:
    with TppClient(server, credentials, defaults={"PSU-Context": "PRIVATE", "x-accept-fix": None}) as tpp:
        sent = headers_of(tpp.get("/v1/x"))
    assert sent["psu-context"] == "PRIVATE"
    assert "x-accept-fix" not in sent


def test_a_base_address_may_end_in_a_path(server: str, credentials: Credentials) -> None:
    with TppClient(f"{server}/banks/a/", credentials) as tpp:
        assert tpp.get("/v1/x").json()["target"] == "/banks/a/v1/x"
        assert tpp.get(f"{server}/banks/a/v1/y?z=%20#f").json()["target"] == "/banks/a/v1/y?z=%20"
        assert tpp.get("/v1/x").json()["tpp"]


def test_a_path_that_begins_with_that_of_the_base_address_is_whole(server: str, credentials: Credentials) -> None:
    """As the Location of what was made in a named bank says it; links leave the base address out."""
    with TppClient(f"{server}/banks/a", credentials) as tpp:
        assert tpp.get("/banks/a/v1/x?y=1#z").json()["target"] == "/banks/a/v1/x?y=1"
        assert tpp.get("/banks/ab/v1/x").json()["target"] == "/banks/a/banks/ab/v1/x"


@cases(
    "address",
    [
        *(
            "127.0.0.1:8080",
            "ftp://x",
            "http://",
            "",
            "http://x:99999",
            "http://[x",
            "http://a..b",
            f"http://{'a' * 64}",
        ),
        *("http://a b", "http://x/banks/a b", "http://x/banks/ø", "http://x/?y=1", "http://x/#y"),
    ],
)
def test_a_base_address_of_another_form_is_refused(credentials: Credentials, address: str) -> None:
    with pytest.raises(ValueError, match="is not the address of a bank"):
        TppClient(address, credentials)


def test_a_relative_path_is_refused(client: TppClient) -> None:
    with pytest.raises(ValueError, match="must start with /"):
        client.get("v1/x")


UNSENDABLE: list[tuple[str, str, dict[str, str], str]] = [
    *(
        ("GET", path, {}, "an address is ASCII without blanks")
        for path in ("/v1/a b", "/v1/ø", "/v1/a\nb", "/v1/a?x=\t")
    ),
    *(
        ("GET", "/v1/x", {"X-Test": value}, "the value of the header X-Test must be one line of text")
        for value in ("a\r\nb: c", "\ud800")
    ),
    ("GET", "/v1/x", {"X Test": "a"}, "'X Test' is not the name of a header"),
    ("GET", "/v1/x", {"PSU-ID": "a", "psu-id": "b"}, "the header PSU-ID appears more than once"),
    *((method, "/v1/x", {}, "is not an HTTP method, such as GET") for method in ("", "GE T", "GÉT", "GET\r\n")),
]


async def test_what_no_request_can_carry_is_refused_by_both_clients(client: TppClient) -> None:
    async with AsyncTppClient(client.base_url, client.identity) as asynchronous:
        for method, path, headers, message in UNSENDABLE:
            with pytest.raises(ValueError, match=message):
                client.request(method, path, headers=headers)
            with pytest.raises(ValueError, match=message):
                await asynchronous.request(method, path, headers=headers)


def test_what_an_sca_tells_is_remembered(client: TppClient) -> None:
    query = client.remember(
        "https://tpp.example/callback?keep=1&psu-id=P&psu-corporate-id=C&tpp-session-id=S&context=CORPORATE"
    )
    assert query == {
        "keep": "1", "psu-id": "P", "psu-corporate-id": "C", "tpp-session-id": "S", "context": "CORPORATE"
    }  # fmt: skip
    sent = headers_of(client.get("/v1/x"))
    assert (sent["psu-id"], sent["psu-corporate-id"], sent["tpp-session-id"], sent["psu-context"]) == (
        "P", "C", "S", "CORPORATE"
    )  # fmt: skip
    client.remember("https://tpp.example/callback?status=401&code=SCA_INVALID")
    assert client.psu_id == "P"
    client.forget()
    sent = headers_of(client.get("/v1/x"))
    assert "psu-id" not in sent
    assert sent["tpp-session-id"] != "S"


def test_a_prepared_request_can_be_sent_twice(client: TppClient) -> None:
    prepared = client.prepare("POST", "/v1/x", json={})
    assert client.send(prepared).json() == client.send(prepared).json()


def test_a_connection_that_the_bank_closed_is_opened_again(client: TppClient) -> None:
    for _ in range(3):
        assert client.get("/v1/close").json()["tpp"]
        if (socket := client._idle[0].sock) is not None:
            socket.recv(1)  # wait for the end of the stream
            assert client.get("/v1/x").json()["tpp"]


def test_several_threads_may_ask_at_once(credentials: Credentials) -> None:
    """Two customers pay at the same moment: neither waits for the other, and each gets its own answer."""
    together = threading.Barrier(2, timeout=30)

    class Meeting(Gate):
        def do_GET(self) -> None:
            together.wait()
            self.handle_any()

    with serving(Meeting) as address, TppClient(address, credentials) as shared, ThreadPoolExecutor(2) as threads:
        for _ in range(3):
            answers = threads.map(shared.get, ["/v1/a", "/v1/b"])
            assert [answer.json()["target"] for answer in answers] == ["/v1/a", "/v1/b"]


def test_a_process_may_have_many_files_open(client: TppClient) -> None:
    open_files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, most), most))
    taken: list[int] = []
    try:
        while not taken or taken[-1] < 1024:
            taken.append(os.dup(0))
        assert client.get("/v1/x").json()["tpp"] == client.get("/v1/x").json()["tpp"]
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, most))


def test_an_answer_reads_like_those_of_other_libraries(client: TppClient) -> None:
    answer = client.get("/v1/x")
    assert answer.headers["x-twice"] == answer.headers["X-TWICE"] == "1, 2"
    assert "X-Twice" in answer.headers
    assert answer.headers.get("absent") is None
    assert json.loads(answer.text) == answer.json()
    assert answer.sca_redirect is None
    assert answer.status_code == answer.status


def test_an_answer_shows_first_what_the_bank_said() -> None:
    refused = TppResponse(400, ResponseHeaders([("Content-Type", "application/json")]), b'{"tppMessages":[]}')
    assert repr(refused) == """TppResponse(status=400, body=b'{"tppMessages":[]}')"""


def test_an_answer_that_is_nested_too_deeply_is_not_read() -> None:
    answer = TppResponse(200, ResponseHeaders([]), b"[" * 50_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        answer.json()
    assert answer.sca_redirect is None


@cases("tamper", TAMPERINGS)
def test_every_tampering_is_refused_by_name(client: TppClient, tamper: str) -> None:
    expected = {
        "no-signature": ("HTTP_HEADER_REQUIRED", "Signature", "is required"),
        "no-certificate": ("HTTP_HEADER_REQUIRED", "TPP-Signature-Certificate", "is required"),
        "no-date": ("HTTP_HEADER_REQUIRED", "Date", "is required"),
        "no-digest": ("HTTP_HEADER_REQUIRED", "Digest", "is required"),
        "unlisted": ("BAD_REQUEST", "Signature", "The request has x-request-id"),
        "leading-word": ("BAD_REQUEST", "Signature", "begins with the word Signature"),
        "algorithm": ("BAD_REQUEST", "Signature", "hs2019"),
        "other-serial": ("BAD_REQUEST", "Signature", "The KeyID is not matching"),
        "lower-case-serial": ("BAD_REQUEST", "Signature", "in lower case"),
        "other-key": ("BAD_REQUEST", "Signature", "another key"),
        "bit-flipped": ("BAD_REQUEST", "Signature", "another key"),
        "old-date": ("BAD_REQUEST", "Date", " s behind real time"),
        "other-date": ("BAD_REQUEST", "Signature", "a date 1 s earlier"),
        "other-body": ("BAD_REQUEST", "Digest", "does not match the body"),
        "reordered": ("BAD_REQUEST", "Signature", "in the reverse of the order listed"),
        "without-query": ("BAD_REQUEST", "Signature", "without the query"),
    }
    code, path, text = client.post("/v1/x?y=1", json={"a": 1}, tamper=tamper).json()["messages"][0]
    assert (code, path) == expected[tamper][:2]
    assert expected[tamper][2] in text


def test_tampering_works_with_a_wrapped_signature(server: str, authority: CertificateAuthority) -> None:
    special = authority.issue("wrapped", flaw="special-characters")
    with TppClient(server, special) as tpp:
        assert tpp.get("/v1/x").json()["notes"] == []
        for tamper in TAMPERINGS.keys() - {"no-digest"}:
            assert tpp.post("/v1/x?y=1", json={}, tamper=tamper).json()["messages"], tamper


def test_an_unknown_tampering_is_refused(client: TppClient) -> None:
    with pytest.raises(ValueError, match="the tamperings are no-signature, "):
        client.get("/v1/x", tamper="nothing")


async def test_the_asynchronous_client_does_the_same(server: str, credentials: Credentials) -> None:
    async with AsyncTppClient(f"{server}/banks/a", credentials) as tpp:
        answer = await tpp.post("/v1/x%2Fy%41?z=%20+&b=a,b%7E", json={"a": "ø"})
        body = answer.json()
        assert (body["tpp"], body["notes"]) == ("PSDNO-SBX-3", [])
        assert body["target"] == "/banks/a/v1/x%2Fy%41?z=%20+&b=a,b%7E"
        assert (await tpp.get("/v1/x", headers={"PSU-IP-Address": None})).json()["tpp"]
        assert (await tpp.put("/v1/x", body=b"x")).json()["body"] == "x"
        assert (await tpp.delete("/v1/x", tamper="other-key")).json()["messages"]
        assert answer.headers["x-twice"] == "1, 2"
    assert (await tpp.get("/v1/x")).status == 200
    await tpp.close()


async def test_an_asynchronous_request_is_signed_when_it_runs(server: str, credentials: Credentials) -> None:
    async with AsyncTppClient(server, credentials) as tpp:
        request = tpp.get("/v1/x", tamper="nothing")
        with pytest.raises(ValueError, match="the tamperings are"):
            await request


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_a_request_whose_answer_is_lost_is_sent_once_by_both_clients(
    credentials: Credentials, method: str
) -> None:
    """As after a scripted `disconnect`: the bank may have carried it out, so whether to repeat it is not theirs."""
    asked = 0

    async def lose(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        writer.close()

    async with await asyncio.start_server(lose, "127.0.0.1", 0) as bank:
        address = f"http://127.0.0.1:{bank.sockets[0].getsockname()[1]}"
        async with AsyncTppClient(address, credentials) as client:
            with pytest.raises(OSError, match="without an answer"):
                await client.request(method, "/v1/x")
        assert asked == 1
        with TppClient(address, credentials) as one, pytest.raises(OSError):
            await asyncio.to_thread(one.request, method, "/v1/x")
        assert asked == 2


def test_sign_gives_the_headers_for_any_library(credentials: Credentials, tmp_path: Path) -> None:
    (tmp_path / "certificate.pem").write_text(credentials.certificate_pem)
    (tmp_path / "key.pem").write_bytes(credentials.key_pem)
    for certificate, key in (
        (credentials.certificate_pem, credentials.key_pem),
        (tmp_path / "certificate.pem", str(tmp_path / "key.pem")),
    ):
        headers = sign(
            "post",
            "https://bank.example/v1/x?y=1#z",
            certificate=certificate,
            key=key,
            body='{"a":1}',
            headers={"PSU-ID": "p"},
        )
        verified = check(
            "POST", "/v1/x?y=1", list(headers.items()), b'{"a":1}',
            digest_required=True, settings=Settings(), instant=now().timestamp(), trusted_ca=None,
        )  # fmt: skip
        assert verified.signing_string.split("\n")[0] == "(request-target): post /v1/x?y=1"
    assert Identity.from_folder(tmp_path).key_id == Identity.of(credentials).key_id


def test_a_key_that_is_not_the_certificates_is_refused(
    credentials: Credentials, authority: CertificateAuthority
) -> None:
    other = authority.issue("other")
    with pytest.raises(ValueError, match="does not belong to the certificate"):
        Identity.from_pem(credentials.certificate_pem, other.key_pem)


def test_what_is_no_pem_text_is_refused_by_its_name(credentials: Credentials, tmp_path: Path) -> None:
    der = tmp_path / "certificate.der"
    der.write_bytes(credentials.certificate.public_bytes(serialization.Encoding.DER))
    for certificate in (der, str(der), der.read_bytes()):
        with pytest.raises(ValueError, match="the certificate is not PEM text: it has no line -----BEGIN"):
            Identity.from_pem(certificate, credentials.key_pem)
    with pytest.raises(ValueError, match="the key is not PEM text"):
        Identity.from_pem(credentials.certificate_pem, credentials.key_pem.decode().encode("utf-16"))


def test_an_encrypted_key_needs_its_password(credentials: Credentials) -> None:
    encryption = serialization.BestAvailableEncryption(b"secret")
    pkcs8 = serialization.PrivateFormat.PKCS8
    locked = credentials.key.private_bytes(serialization.Encoding.PEM, pkcs8, encryption)
    assert Identity.from_pem(credentials.certificate_pem, locked, password="secret").header
    with pytest.raises(ValueError, match="Password was not given"):
        Identity.from_pem(credentials.certificate_pem, locked)
    with pytest.raises(ValueError, match="Password was given but"):
        Identity.from_pem(credentials.certificate_pem, credentials.key_pem, password="secret")


def test_names_digest_and_algorithm_can_be_chosen(credentials: Credentials) -> None:
    headers = signed_headers(
        "GET", "/", credentials, names=["x-request-id", "date"], digest=True, algorithm="rsa-sha512"
    )
    assert 'algorithm="rsa-sha512",headers="x-request-id date",' in headers["Signature"]
    assert headers["Digest"] == digest_value(b"")
    assert "Digest" not in signed_headers("POST", "/", credentials, body="x", digest=False)


def test_a_choice_that_cannot_be_signed_with_is_refused_in_words(credentials: Credentials) -> None:
    with pytest.raises(ValueError, match="there is no algorithm 'rsa-sha1'; the algorithms are rsa-sha256, rsa-sha512"):
        signed_headers("GET", "/", credentials, algorithm="rsa-sha1")
    with pytest.raises(ValueError, match="the headers to sign include digest, Date, which the request does not have"):
        signed_headers("GET", "/", credentials, names=["(request-target)", "digest", "Date"])


@cases("name, value", [("PSU-IP-Port", 443), ("X-Request-ID", UUID(int=1))])
def test_a_header_that_is_no_text_is_refused_by_name(client: TppClient, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"the value of the header {name} must be a str, not "):
        client.get("/v1/accounts", headers={name: value})


def test_the_bank_can_sign_its_answers_in_the_same_way(credentials: Credentials) -> None:
    """Digest, x-request-id and date of an answer, signed by `httpsig.signer`."""
    lines = [("digest", digest_value(b"{}")), ("x-request-id", "7"), ("date", "Mon, 02 Mar 2026 08:00:00 GMT")]
    header = parse(signature_header(lines, key_id=key_id_for(credentials.certificate), key=credentials.key))
    assert (header.algorithm, header.headers) == ("rsa-sha256", "digest x-request-id date")
    raw = base64.b64decode(header.signature or "")
    assert verifies(credentials.key.public_key(), raw, signing_string(lines).encode(), "SHA-256")


@pytest.mark.parametrize("kind", [TppClient, AsyncTppClient])
def test_a_ca_that_cannot_be_read_is_refused_at_once(kind: Any, credentials: Credentials, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        kind("https://127.0.0.1:1", credentials, ca=tmp_path / "ca.pem")


@cases("enter", [TppClient.__enter__, AsyncTppClient.__aenter__])
def test_to_a_type_checker_a_with_block_gives_what_it_was_given_such_as_a_client_of_a_test(enter: Any) -> None:
    assert get_type_hints(enter)["return"] is Self
