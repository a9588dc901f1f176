"""`explain`: what the bank itself found of a request of its log, and what is made of a capture."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from emulator.api.log import LARGE_BODY
from emulator.api.service import BankService
from emulator.ca import CertificateAuthority
from emulator.client.clients import Prepared
from emulator.httpsig.dates import format_date
from tests.api.conftest import Run
from tests.api.desk import DeskClient
from tests.known_state import KARI, SEPA


def dated(**ago: float) -> dict[str, str]:
    return {"Date": format_date(datetime.now(UTC) - timedelta(**ago))}


HOLDS: dict[str, Any] = {
    "a body with a masked number": (
        "POST",
        SEPA,
        {"json": {"creditorName": f"for {KARI}"}, "headers": {"X-PSU-IDENTITY": KARI}},
    ),
    "a signed header with a masked number": (
        "GET",
        "/v1/accounts",
        {"headers": {"TPP-Redirect-URI": f"https://a.example/?who={KARI}"}},
    ),
    "a long body": ("POST", SEPA, {"body": b'{"a":"' + b"x" * LARGE_BODY + b'"}'}),
    "a body that is no UTF-8": ("POST", SEPA, {"body": b"\xff\xfe"}),
    "an address that refuses it": ("GET", "/v1/accounts", {"headers": {"TPP-Redirect-URI": None}}),
}


def test_a_signature_that_the_bank_has_accepted_holds(run: Run, tpp: DeskClient, tmp_path: Path) -> None:
    for case in HOLDS:
        method, path, options = HOLDS[case]
        tpp.request(method, path, **options)
        status, out, err = run("explain", "--request", "latest")
        assert (status, err) == (0, ""), case
        assert out.startswith(f"The signature is valid. TPP {tpp.tpp_id}, roles AISP, PISP.\n"), case
        saved = tmp_path / "entry.json"
        saved.write_text(run("requests", "show", "latest", "--output", "json")[1])
        assert run("explain", str(saved)) == (status, out, err), case


@pytest.mark.parametrize("ago", [{"seconds": 1000}, {"seconds": -1000}, {"days": 2000}])
def test_a_date_that_the_bank_has_refused_is_the_cause(run: Run, tpp: DeskClient, ago: dict[str, float]) -> None:
    refused = tpp.get("/v1/accounts", headers=dated(**ago)).json()["tppMessages"]
    status, out, _ = run("explain", "--request", "latest")
    assert status == 1
    problems = [f"  {message['path']}: {message['text']}" for message in refused]
    assert out.splitlines()[: len(problems) + 1] == ["The bank refuses this request:", *problems]


def test_the_settings_are_those_of_the_bank(
    run: Run, service: BankService, tpp: DeskClient, authority: CertificateAuthority
) -> None:
    run("settings", "trust=sandbox-ca", "profile=lenient")
    tpp.get("/v1/accounts", tamper="lower-case-serial")
    assert run("explain", "--request", "latest")[0] == 0
    authority.find("other-ca") or authority.issue("other-ca", flaw="unknown-ca")
    DeskClient(service, authority, name="other-ca").get("/v1/accounts")
    status, out, _ = run("explain", "--request", "latest")
    assert (status, "not issued by the sandbox CA" in out) == (1, True)


def test_the_verdict_as_json_is_that_of_the_log(run: Run, tpp: DeskClient) -> None:
    for tamper in (None, "without-query"):
        tpp.get("/v1/accounts?withBalance=true", tamper=tamper)
        entry = json.loads(run("requests", "show", "--output", "json")[1])
        verdict = json.loads(run("explain", "--request", entry["id"], "--output", "json")[1])
        assert verdict == entry["signature"]


def test_a_request_whose_signature_nobody_looked_at_is_said_so(run: Run, tpp: DeskClient) -> None:
    tpp.get("/v1/nowhere")
    status, out, err = run("explain", "--request", "latest")
    assert (status, out) == (2, "")
    about = r"bank-emulator: request \d+ was answered 404 before its signature was checked: There is no"
    assert re.match(about, err)
    run("rules", "add", json.dumps({"unsigned": True, "then": {"answer": {"status": 503}}}))
    tpp.get("/v1/accounts")
    assert run("explain", "--request", "latest")[0] == 0, "a rule that answers first does not hide the signature"


@pytest.mark.parametrize("more", [["--profile", "lenient"], ["--body", "x"]])
def test_what_a_bank_has_judged_is_not_judged_by_other_measures(run: Run, more: list[str]) -> None:
    status, _, err = run("explain", "--request", "latest", *more)
    assert (status, err.count("\n")) == (2, 1)
    assert "go with a FILE" in err


@pytest.mark.parametrize("command", [["explain", "--request", "latest"], ["requests", "show", "latest"]])
def test_an_empty_log_has_no_latest_request(run: Run, command: list[str]) -> None:
    assert run(*command) == (2, "", "bank-emulator: the request log is empty\n")


def raw(prepared: Prepared) -> bytes:
    lines = [
        f"{prepared.method} {prepared.target} HTTP/1.1",
        *(f"{n}: {v}" for n, v in prepared.headers.items()),
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + prepared.body


def test_a_captured_body_is_judged_byte_for_byte_whatever_its_encoding(
    run: Run, tpp: DeskClient, tmp_path: Path
) -> None:
    file = tmp_path / "capture.txt"
    file.write_bytes(raw(tpp.prepare("POST", SEPA, body='{"creditorName": "Bjørn"}'.encode("latin-1"))))
    status, out, _ = run("explain", str(file))
    assert (status, out.splitlines()[0]) == (0, f"The signature is valid. TPP {tpp.tpp_id}, roles AISP, PISP.")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_capture_is_read_in_the_encodings_that_windows_writes(
    run: Run, tpp: DeskClient, tmp_path: Path, encoding: str
) -> None:
    file = tmp_path / "capture.txt"
    file.write_bytes(
        raw(tpp.prepare("GET", "/v1/accounts", headers={"PSU-User-Agent": "Bjørn"})).decode().encode(encoding)
    )
    assert run("explain", str(file))[0] == 0


def test_a_large_capture_is_read_whole(run: Run, tpp: DeskClient, tmp_path: Path) -> None:
    file = tmp_path / "capture.json"
    sent = tpp.prepare("GET", "/v1/accounts")
    entry = {"method": sent.method, "url": sent.target, "headers": sent.headers}
    file.write_text(json.dumps([{"padding": "x" * 5 * 1024 * 1024}, entry]))
    assert run("explain", str(file))[0] == 0


def test_a_capture_is_judged_with_what_had_to_be_assumed(run: Run, tpp: DeskClient, tmp_path: Path) -> None:
    sent = tpp.prepare("GET", "/v1/accounts", tamper="lower-case-serial")
    file = tmp_path / "capture.txt"
    file.write_text(
        "\n".join(["GET /v1/accounts HTTP/1.1", *(f"{name}: {value}" for name, value in sent.headers.items()), "", ""])
    )
    status, out, _ = run("explain", str(file))
    assert status == 1
    title, settings, moment = out.splitlines()[-3:]
    assert title == "Assumed, because no bank was asked:"
    assert settings == "  The bank has the settings profile=documented, trust=any, date_skew=300."
    assert moment.startswith("  The bank received the request at its Date, 20")
    status, out, _ = run("explain", str(file), "--profile", "lenient")
    assert (status, "profile=lenient, trust=any" in out) == (0, True)
