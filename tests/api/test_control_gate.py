"""Who may use the control interface, and in which form."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import Any

import jsonschema
import pytest

from emulator.api import guards
from emulator.api.description import resolved
from emulator.api.headers import Headers
from emulator.api.messages import Request, Response, Unfinished, finished
from emulator.api.service import BankService
from emulator.assemble import assemble
from emulator.assemble.registry import BankRegistry
from emulator.bank.notification_targets import NOTIFICATION_AGENT
from emulator.bank.settings import TAKES, Settings
from emulator.bank.validation import json_schema
from emulator.ca import CertificateAuthority
from emulator.control import Control, interface
from emulator.control.operations import document as control_document
from emulator.control.operations import table
from emulator.settings import ServeSettings
from tests.api.control_desk import JSON, ControlDesk
from tests.api.shapes import check_document

FLAGS = pytest.mark.inside  # a bank with flags of its own


@pytest.fixture
def desk(registry: BankRegistry, service: BankService, authority: CertificateAuthority) -> ControlDesk:
    return ControlDesk(Control(registry, authority, allowed_hosts=["bank.example", "fd00::2"]), service)


@pytest.fixture
def guarded(registry: BankRegistry, service: BankService, authority: CertificateAuthority) -> ControlDesk:
    return ControlDesk(Control(registry, authority, token="s3cret"), service)


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080"),
        *(pytest.param(name, marks=FLAGS) for name in ("bank.example:443", "[fd00::2]", "[FD00::2]:8080")),
    ],
)
def test_it_answers_to_its_names(desk: ControlDesk, host: str) -> None:
    assert desk.raw("GET", "/clock", ("Host", host)).status == 200


def test_it_answers_to_the_name_of_the_public_address(desk: ControlDesk) -> None:
    def status(host: str, base: str) -> int:
        request = Request("GET", "/_emulator/clock", (("Host", host),), base=base)
        return finished(desk.control.handle(desk.service, request)).status

    assert status("pay.example:8443", "http://pay.example:8443/prefix") == 200
    assert status("pay.example:8443", "http://127.0.0.1:8080") == 403


@FLAGS
def test_a_token_is_demanded_where_there_is_one(guarded: ControlDesk) -> None:
    refused = guarded.raw("GET", "/clock")
    assert refused.status == 401
    assert ("WWW-Authenticate", "Bearer") in refused.headers
    for wrong in ("Bearer other", "Bearer", "Basic s3cret", "s3cret", "Bearer s3cret2", "Bearer \xe5"):
        assert guarded.raw("GET", "/clock", ("Authorization", wrong)).status == 401
    for right in ("Bearer s3cret", "bearer s3cret"):
        assert guarded.raw("GET", "/clock", ("Authorization", right)).status == 200


@FLAGS
def test_the_token_is_asked_for_before_anything_is_told(guarded: ControlDesk) -> None:
    assert guarded.raw("GET", "/nothing").status == 401
    assert guarded.raw("PATCH", "/clock").status == 401


def test_a_change_needs_json(desk: ControlDesk) -> None:
    before = desk.service.bank.documents.dump()
    for row in table():
        if row.method in ("POST", "PUT"):
            path = row.path.replace("{id}", "latest").replace("{name}", "one")
            for content_type in (None, "text/plain", "application/x-www-form-urlencoded"):
                headers = [("Content-Type", content_type)] if content_type else []
                response = desk.raw(row.method, path, *headers, body=b"{}")
                assert response.status == 415, row.id
                assert json.loads(response.body)["tppMessages"][0]["path"] == "Content-Type"
            assert desk.service.bank.documents.dump() == before, row.id


def test_a_delete_without_a_body_needs_no_content_type(desk: ControlDesk) -> None:
    assert desk.raw("DELETE", "/rules").status == 204
    assert desk.raw("DELETE", "/rules", ("Content-Type", "text/plain"), body=b"x").status == 415


def test_another_sites_page_may_change_nothing(desk: ControlDesk) -> None:
    assert desk.raw("POST", "/reset", JSON, ("Sec-Fetch-Site", "cross-site"), body=b"{}").status == 403


def test_a_notification_may_change_nothing(desk: ControlDesk) -> None:
    """A TPP chooses where notifications go, and --allow-notify may name this machine."""
    assert desk.raw("POST", "/reset", JSON, ("User-Agent", f"{NOTIFICATION_AGENT}/1.0"), body=b"{}").status == 403


def test_text_that_cannot_be_kept_is_refused(desk: ControlDesk) -> None:
    for body in ({"tpp": "\ud800", "nationalId": "14888520059"}, {"a": [{"\udfff": 1}]}):
        for path in ("/sessions", "/settings", "/rules"):
            refused = desk.ask("PUT" if path == "/settings" else "POST", path, body)
            assert (refused.status, refused.errors()) == (400, [("FORMAT_ERROR", None)]), body
            assert "half of a surrogate pair" in refused.texts(), body


def test_a_number_that_no_document_holds_is_refused_with_its_place(desk: ControlDesk) -> None:
    for number in ("18446744073709551616", "-9223372036854775809", "1e400"):
        for path, body, at in (
            ("/rules", '{"then": {"answer": {"json": {"n": [%s]}}}}', "then.answer.json.n[0]"),
            ("/rules", '{"when": {"operation": %s}, "then": {"delay": "1s"}}', "when.operation"),
            (
                "/scenario",
                '{"scenario": "x", "story": [{"clock": "advance 1s", "expect": {"json": %s}}]}',
                "story[0].expect.json",
            ),
            ("/requests/count", '{"match": {"body": {"lt": %s}}}', "match.body.lt"),
        ):
            refused = desk.raw("POST", path, JSON, body=(body % number).encode())
            messages = json.loads(refused.body)["tppMessages"]
            assert (refused.status, [(entry["code"], entry["path"]) for entry in messages]) == (
                400,
                [("FORMAT_ERROR", at)],
            ), body
            bounds = (
                "Whole numbers are from -9223372036854775808 to 9223372036854775807; what is text stands in quotes."
            )
            assert messages[0]["text"] == ("This number is too large." if "e" in number else bounds), number


def test_an_operation_without_a_body_takes_none(desk: ControlDesk) -> None:
    assert desk.ask("POST", "/consents/x/revoke", {"a": 1}).errors() == [("FORMAT_ERROR", None)]


def test_head_is_answered_where_get_is_and_options_names_the_methods(desk: ControlDesk) -> None:
    assert desk.raw("HEAD", "/clock").status == 200
    assert desk.raw("HEAD", "/events").body == b""
    options = desk.raw("OPTIONS", "/clock")
    assert (options.status, options.body) == (204, b"")
    assert ("Allow", "GET, HEAD, OPTIONS, PUT") in options.headers


def test_every_operation_is_in_the_openapi_document_which_is_valid(desk: ControlDesk) -> None:
    document = desk.get("/openapi.json")
    check_document(document)
    named = {operation["operationId"] for path in document["paths"].values() for operation in path.values()}
    assert named == {row.id for row in table()}
    assert document["servers"] == [{"url": "http://127.0.0.1:8080"}]
    assert control_document("a")["paths"] is control_document("b")["paths"], "generated once"
    assert '{"type": "array"}' not in json.dumps(document), "client generators want to know of what"


def test_the_openapi_document_takes_its_own_examples() -> None:
    for row in table():
        if row.example is not None:
            assert row.body is not None, row.id
            assert jsonschema.Draft202012Validator(json_schema(resolved(row.body))).is_valid(row.example), row.id


def test_what_the_openapi_document_takes_of_a_body_the_bank_takes(desk: ControlDesk) -> None:
    for path, body in (
        *(("/settings", {name: value}) for name, value in Settings().as_document().items()),
        *(("/settings", {name: "x"}) for name in TAKES),
        ("/settings", {"calender": "norway"}),
        ("/settings", {"progression": {"polls": 3}}),
        *(("/generate", {name: 0, "seed": 1}) for name in ("customers", "accountsPerCustomer", "days")),
        ("/generate", {"customers": 1, "transactionsPerAccount": 0, "seed": 0}),
        ("/generate", {"customers": 1, "transactionsPerAccount": 0, "seed": None}),
        ("/generate", {"customers": 1, "accountsPerCustomer": 101, "transactionsPerAccount": 0}),
        ("/generate", {"customers": 1, "transactionsPerAccount": 0, "seed": 2**63}),
        ("/clock", {}),
        ("/clock", {"mode": "frozen"}),
        ("/scenario", {}),
        ("/scenario", {"name": "insufficient-funds"}),
        ("/scenario", {"scenario": "mine"}),
    ):
        (row,) = (row for row in table() if row.path == path and row.body is not None)
        taken = jsonschema.Draft202012Validator(json_schema(resolved(row.body))).is_valid(body)
        assert (desk.ask(row.method, path, body).status == 200) is taken, (path, body)


def test_every_body_is_marked_and_every_answer_has_a_schema(desk: ControlDesk) -> None:
    for path in desk.get("/openapi.json")["paths"].values():
        for operation in path.values():
            if "requestBody" in operation:
                assert isinstance(operation["requestBody"]["required"], bool), operation["operationId"]
            for status, answer in operation["responses"].items():
                content = answer.get("content", {})
                assert status == "204" or "$ref" in answer or all("$ref" in one["schema"] for one in content.values())
                assert status == "204" or "$ref" in answer or content, operation["operationId"]


def test_an_empty_body_counts_as_an_empty_object(desk: ControlDesk) -> None:
    for path in ("/reset", "/clock/advance", "/rules", "/scenario", "/requests/count"):
        empty, spelt = desk.raw("POST", path), desk.raw("POST", path, JSON, body=b"{}")
        assert (empty.status, empty.body) == (spelt.status, spelt.body), path


def test_a_page_of_another_origin_may_change_nothing(desk: ControlDesk) -> None:
    for origin in (
        *("https://evil.example", "null", "file://", "", "http://[oops"),
        *("http://localhost", "http://localhost:3000", "https://localhost:3000", "http://127.0.0.1:8081"),
        "http://bank.example:8080",  # one of the bank's names, but not the one that is asked
    ):
        host = ("Host", "localhost:8080")
        assert desk.raw("POST", "/reset", host, ("Origin", origin)).status == 403, origin
        assert desk.raw("POST", "/reset", host, ("Origin", "http://localhost:8080")).status == 200, origin


def test_an_address_that_gives_wrong_tokens_must_wait_ever_longer(
    guarded: ControlDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 1000.0
    monkeypatch.setattr(guards, "monotonic", lambda: seconds)

    def asked(token: str, peer: str | None = "192.0.2.1") -> tuple[int, str | None]:
        request = Request("GET", "/_emulator/clock", (("Authorization", f"Bearer {token}"),), peer=peer)
        answer = finished(guarded.control.handle(guarded.service, request))
        return answer.status, dict(answer.headers).get("Retry-After")

    assert [asked("wrong") for _ in range(7)] == [(401, None)] * 6 + [(429, "1")]
    assert asked("s3cret") == (429, "1")
    assert asked("s3cret", "192.0.2.2") == (200, None)
    assert asked("s3cret", None) == (200, None)
    waits = []
    for _ in range(8):
        seconds += 61
        assert asked("wrong") == (401, None)
        waits.append(asked("wrong")[1])
    assert waits == ["2", "4", "8", "16", "32", "60", "60", "60"]
    seconds += 61
    assert asked("s3cret") == (200, None)
    assert asked("wrong") == (401, None)
    assert asked("s3cret") == (200, None)


@pytest.mark.parametrize(
    "path", ["/_emulator/clock", "/_emulator/nothing", "/_emulator/openapi.json", "/console", "/console/requests"]
)
def test_without_a_token_nobody_learns_which_banks_there_are(authority: CertificateAuthority, path: str) -> None:
    settings = ServeSettings(ephemeral=True, state=Path(), control_token="s3cret")
    application = assemble(settings, authority=authority)
    token = ("Authorization", "Bearer s3cret")
    created = application.handle(
        Request("PUT", "/_emulator/banks/there", (JSON, token), b"{}", base="http://127.0.0.1:80")
    )
    assert created.status == 201

    def asked(bank: str, *headers: tuple[str, str]) -> tuple[int, bytes]:
        request = Request("GET", f"/banks/{bank}{path}", (("Host", "127.0.0.1"), *headers), base="http://127.0.0.1:80")
        answer = application.handle(request)
        assert isinstance(answer, Response)
        return answer.status, answer.body.replace(bank.encode(), b"BANK")

    for wrong in ((), (("Authorization", "Bearer other"),)):
        assert asked("there", *wrong) == asked("not-there", *wrong)
        assert asked("there", *wrong)[0] == 401
    assert asked("not-there", token)[0] == (401 if path.startswith("/console") else 404)
    application.close()


def test_a_large_body_is_read_beside_other_requests(desk: ControlDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = Event()
    read = interface.read_json

    def slow(body: bytes, headers: Headers) -> Any:
        assert go_on.wait(20)
        return read(body, headers)

    monkeypatch.setattr(interface, "read_json", slow)
    body = json.dumps({"match": {"body": {"creditorName": "x" * 70_000}}}).encode()
    answer = desk.control.handle(desk.service, Request("POST", "/_emulator/requests/count", (JSON,), body))
    assert isinstance(answer, Unfinished)
    assert answer.awaits is not None  # others have their turns until it is there
    go_on.set()
    assert finished(answer).status in (200, 400)
