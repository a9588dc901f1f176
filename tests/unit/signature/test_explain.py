"""Explaining captured requests: raw HTTP, `curl -v`, HAR and the request log."""

from __future__ import annotations

import contextlib
import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.signature.explain import CaptureUnreadable, as_text, explain, read_capture
from emulator.bank.settings import Settings
from emulator.httpsig.signing import signing_string
from tests.cases import cases
from tests.unit.signature.making import BODY, NOW, TARGET, Making

PATH = TARGET.partition("?")[0]


def queryless(lines: list[tuple[str, str]]) -> str:
    return signing_string([(name, value.partition("?")[0] if name[0] == "(" else value) for name, value in lines])


def raw(making: Making, newline: str = "\r\n", end: str = "") -> str:
    lines = [f"{making.method} {making.target} HTTP/1.1", *(f"{name}: {value}" for name, value in making.sent())]
    return newline.join([*lines, f"Content-Length: {len(making.body)}", "", ""]) + making.body.decode() + end


def curl(making: Making) -> str:
    sent = [f"> {making.method} {making.target} HTTP/1.1", *(f"> {name}: {value}" for name, value in making.sent())]
    return "\n".join(
        ["*   Trying 127.0.0.1:8080...", "* Connected to 127.0.0.1", *sent, f"> Content-Length: {len(making.body)}",
         "> ", "* upload completely sent off", "< HTTP/1.1 400 Bad Request", "< Content-Length: 3", "< ", "{}"]
    )  # fmt: skip


def har(making: Making) -> str:
    request = {
        "method": making.method,
        "url": "http://127.0.0.1:8080" + making.target,
        "headers": [{"name": name, "value": value} for name, value in making.sent()],
        "postData": {"mimeType": "application/json", "text": making.body.decode()},
    }
    other = {"request": {"method": "GET", "url": "http://x/", "headers": []}}
    return json.dumps({"log": {"entries": [other, {"request": request}, other]}})


def log_entry(making: Making) -> str:
    request = {"method": making.method, "target": making.target, "headers": making.sent(), "body": making.body.decode()}
    return json.dumps({"id": "7", "request": request, "response": {"status": 400, "headers": [], "body": ""}})


def plain_json(making: Making) -> str:
    request = {"method": "post", "url": making.target, "headers": dict(making.sent()), "body": making.body.decode()}
    return json.dumps(request, indent=1)


FORMS: list[Any] = [raw, lambda m: raw(m, "\n", "\n"), har, log_entry, plain_json, lambda m: "\ufeff\n" + raw(m)]


@cases("form", FORMS)
def test_every_form_of_capture_gives_the_request_and_a_good_one_holds(making: Making, form: Any) -> None:
    seen = read_capture(form(making))
    assert (seen.method, seen.target, seen.body) == ("POST", TARGET, BODY)
    assert {name.lower(): value for name, value in making.sent()}.items() <= {
        name.lower(): value for name, value in seen.headers
    }.items()
    explanation = explain(form(making), now=NOW)
    assert explanation["valid"]
    assert explanation["tpp"] == "PSDNO-SBX-1"
    assert as_text(explanation).startswith("The signature is valid. TPP PSDNO-SBX-1, roles AISP, PISP.\n")


@cases("form", [*FORMS, curl])
def test_a_bad_capture_is_explained(making: Making, form: Any) -> None:
    explanation = explain(form(making.but(text=queryless)), now=NOW)
    assert not explanation["valid"]
    assert explanation["mistake"] == "query-left-out"
    lines = as_text(explanation).splitlines()
    assert lines[0] == "The bank refuses this request:"
    assert lines[1].startswith("  Signature: The signature was made over a signing string without the query (")
    assert f"  (request-target): post {TARGET}" in lines
    assert f"  client  (request-target): post {PATH}" in lines
    mark = lines[lines.index(f"  client  (request-target): post {PATH}") + 1]
    assert mark.index("^") == len(f"  client  (request-target): post {PATH}")


def test_curl_does_not_show_the_body_so_the_digest_is_left_alone(making: Making) -> None:
    explanation = explain(curl(making), now=NOW)
    assert explanation["valid"]
    assert explanation["remarks"] == [
        "The capture does not show the body as it was sent, so the Digest was not compared with it."
    ]
    assert explain(curl(making), now=NOW, body=BODY).get("remarks") is None
    wrong = explain(curl(making), now=NOW, body=BODY + b" ")
    assert [message["path"] for message in wrong["messages"]] == ["Digest"]


def test_only_content_length_says_how_long_a_body_is(making: Making) -> None:
    sent = making.with_header("PSU-IP-Port", "8080")
    assert read_capture(raw(sent)).body == BODY


def test_an_old_capture_is_judged_at_its_own_date(making: Making) -> None:
    explanation = explain(raw(making), now=NOW + timedelta(days=30))
    assert explanation["valid"]
    assert explanation["remarks"] == [
        "The request was sent at 2026-03-02 08:00:00 UTC; sent again now, its Date would be refused."
    ]


def test_a_wrong_key_id_shows_both(making: Making) -> None:
    explanation = explain(raw(making.but(key_id="SN=-,CA=CN=x")), now=NOW)
    assert "  sent      SN=-,CA=CN=x" in as_text(explanation).splitlines()
    assert "               ^" in as_text(explanation).splitlines()


def test_what_cannot_be_seen_is_written_out(making: Making) -> None:
    explanation = explain(raw(making.but(text=lambda lines: signing_string(lines).replace("\n", "\r\n"))), now=NOW)
    assert f"  client  (request-target): post {TARGET}\\r" in as_text(explanation).splitlines()
    blank = explain(raw(making.but(text=lambda lines: signing_string(lines) + " ")), now=NOW)
    assert "  client  tpp-redirect-uri: https://tpp.example/callback?a=b%20c·" in as_text(blank).splitlines()


def test_a_line_that_is_not_there_is_said_so(making: Making) -> None:
    explanation = explain(raw(making.but(text=lambda lines: signing_string(lines[:-1]))), now=NOW)
    assert "  client  (no such line)" in as_text(explanation).splitlines()


@cases(
    "method, path, wanted",
    [
        *(("POST", f"{prefix}/v1/signing-baskets", False) for prefix in ("/api-sandbox", "/banks/x", "/psd2/sandbox")),
        *(
            ("POST", f"{prefix}/v1/payments/sepa-credit-transfers", True)
            for prefix in ("", "/api-sandbox", "/banks/x", "/psd2/sandbox")
        ),
        ("POST", "/v1/sandbox/customers", True),
        ("PUT", "/v1/sandbox/accounts/a?x=y", True),
        ("POST", "/v1/signing-baskets", False),
        ("PUT", "/v1/tpps/PSDNO-SBX-demo/contact-information", False),
        ("POST", "/v1/consents", False),
        ("POST", "/v1/sandbox/initialize", False),
        ("POST", "/v1/nowhere", False),
        ("GET", "/v1/sandbox/customers", False),
    ],
)
def test_a_digest_is_missed_where_the_bank_misses_it(making: Making, method: str, path: str, wanted: bool) -> None:
    explanation = explain(raw(making.but(method=method, target=path, digest=None)), now=NOW)
    missed = [message["path"] for message in explanation.get("messages", [])]
    assert missed == (["Digest"] if wanted else [])


def test_a_get_without_body_needs_no_digest(making: Making) -> None:
    get = making.but(method="GET", body=b"", digest=None)
    assert explain(raw(get), now=NOW)["valid"]
    assert explain(raw(making.but(digest=None)), now=NOW)["messages"][0]["path"] == "Digest"


def test_folded_headers_are_joined() -> None:
    seen = read_capture("GET /v1/accounts HTTP/1.1\nX-A: one\n two\nX-B: three\n\n")
    assert seen.headers == (("X-A", "one two"), ("X-B", "three"))


def test_the_last_request_of_a_curl_log_counts() -> None:
    seen = read_capture("> GET /a HTTP/1.1\n> A: 1\n>\n< HTTP/1.1 302\n> GET /b HTTP/2\n> B: 2\n>\n")
    assert (seen.method, seen.target, seen.headers, seen.body) == ("GET", "/b", (("B", "2"),), b"")


@cases(
    "text, reason",
    [
        ("", "a request line such as `GET /v1/accounts HTTP/1.1` was expected, found ''"),
        ("hello", "a request line such as `GET /v1/accounts HTTP/1.1` was expected, found 'hello'"),
        ("{", "it looks like JSON but is not"),
        ("[" * 100_000, "it looks like JSON but is not"),
        ('{"log":{"entries":[]}}', "the JSON does not contain a request with method, url (or target) and headers"),
        ("GET http://[ HTTP/1.1", "the address 'http://[' cannot be read"),
        ("> hello", "after > there is no request line such as `> GET /v1/accounts HTTP/1.1`"),
    ],
)
def test_what_is_no_request_is_refused(text: str, reason: str) -> None:
    with pytest.raises(CaptureUnreadable) as refused:
        explain(text, now=NOW)
    assert str(refused.value).startswith(reason)


@cases("length", ["²", "9" * 5000, "-1", ""])
def test_a_length_that_is_none_cuts_nothing(length: str) -> None:
    assert read_capture(f"POST /a HTTP/1.1\nContent-Length: {length}\n\nabc").body == b"abc"


ANSWER = "HTTP/1.1 401 Unauthorized\r\n\r\n{}"


@cases("behind", ["\r\n", f"\r\n\r\n{ANSWER}", ANSWER])
def test_what_stands_behind_a_body_of_known_length_is_none_of_it(behind: str) -> None:
    assert read_capture(f"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc{behind}").body == b"abc"


@cases("behind", ["", f"\n\n\n{ANSWER}", f"\r\n{ANSWER}"])
def test_the_answer_ends_a_body_of_unknown_length(behind: str) -> None:
    assert read_capture(f"POST /a HTTP/2\nAccept: */*\n\nabc{behind}").body == b"abc"
    assert read_capture(f"GET /a HTTP/1.1\nAccept: */*\n\n{behind}").body == b""


@cases(
    "header, shown",
    [
        ("Content-Length: 3", "\r\n\r\nab"),
        ("Content-Length: 3", "\r\n\r\n"),
        ("Content-Length: 3", ""),
        ("Content-Length: 3", f"\r\n\r\na b c\r\n\r\n{ANSWER}"),
        ("Content-Length: 3", "\r\n\r\nabcd HTTP/"),
        ("Transfer-Encoding: chunked", "\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
    ],
)
def test_a_body_that_is_not_shown_as_it_was_sent_is_unknown(header: str, shown: str) -> None:
    assert read_capture(f"POST /a HTTP/1.1\r\n{header}{shown}").body is None


@cases(
    "captured",
    [
        "> POST /a HTTP/2\n> Content-Type: application/json\n>\n",
        '{"method": "POST", "url": "/a", "headers": {"content-type": "application/json"}}',
        '{"method": "POST", "url": "/a", "headers": {}, "body": {"a": 1}}',
        '{"method": "POST", "url": "/a", "headers": [], "postData": {"mimeType": "text/plain", "params": []}}',
    ],
)
def test_a_body_that_the_capture_leaves_out_is_unknown(captured: str) -> None:
    assert read_capture(captured).body is None


@cases("form", ["GET /a HTTP/1.1\r\n{}\r\n\r\n", "> GET /a HTTP/1.1\n> {}\n"])
def test_a_header_that_is_no_utf_8_is_read_as_the_bank_reads_it(form: str) -> None:
    for sent in ("Bjørn".encode(), "Bjørn".encode("latin-1")):
        captured = form.format("X-Shop: " + sent.decode("utf-8", "surrogateescape"))
        assert read_capture(captured).headers == (("X-Shop", "Bjørn"),)


VERDICT = {"valid": False, "messages": [{"path": "Date", "text": "It is late."}]}
WRONG: list[dict[str, Any]] = [
    {"valid": True},
    {"valid": True, "tpp": "x", "roles": 1},
    {"valid": False},
    {"valid": False, "messages": ["x"]},
    {**VERDICT, "likelySent": "x", "firstDifference": {"line": 1}},
    {**VERDICT, "keyId": {"expected": "x", "sent": "y", "firstDifference": {"column": "z"}}},
]


def test_an_entry_of_the_log_is_told_as_the_bank_judged_it_unless_other_measures_are_given(making: Making) -> None:
    entry = json.dumps({**json.loads(log_entry(making)), "signature": VERDICT})
    explanation = explain(entry, now=NOW)
    assert explanation == VERDICT
    assert as_text(explanation) == "The bank refuses this request:\n  Date: It is late.\n"
    assert explain(entry, now=NOW, body=BODY)["valid"]
    assert explain(entry, now=NOW, settings=Settings())["valid"]


@cases("verdict", WRONG)
def test_a_verdict_that_no_bank_writes_is_refused(making: Making, verdict: dict[str, Any]) -> None:
    entry = json.dumps({**json.loads(log_entry(making)), "signature": verdict})
    with pytest.raises(CaptureUnreadable, match="its member signature does not have the form that a bank writes"):
        as_text(explain(entry, now=NOW))


MEMBERS = st.sampled_from(["log", "entries", "request", "method", "url", "headers", "name", "value"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner),
    max_leaves=10,
)


@given(st.sampled_from(["", "GET / HTTP/1.1\n", "> GET /\n> "]), st.text(max_size=100))
def test_no_text_breaks_the_reading(beginning: str, rest: str) -> None:
    text = beginning + rest
    with contextlib.suppress(CaptureUnreadable):
        assert as_text(explain(text, now=NOW))


@given(JSON, JSON)
def test_no_json_breaks_the_reading(value: Any, headers: Any) -> None:
    for document in (value, {"method": "GET", "url": "/", "headers": headers}, {"request": value}):
        with contextlib.suppress(CaptureUnreadable):
            assert as_text(explain(json.dumps({"log": document}), now=NOW))
