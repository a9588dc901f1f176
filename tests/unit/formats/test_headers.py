"""The header matrix and the format of each header (headers.md)."""

from __future__ import annotations

import re
from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from emulator.api.headers import (
    BASKET_GET,
    BASKET_POST,
    COLUMNS,
    DETAILS,
    FORMATS,
    INSTANT_POST,
    SANDBOX,
    TRANSFER_POST,
    Headers,
    check_headers,
)
from tests.cases import cases

UUID = "99391c7e-ad88-49ec-a2ad-99ddcb1f7721"
GOOD = {
    "x-accept-fix": "amount-as-string, longer-names",
    "X-Request-ID": UUID,
    "TPP-Session-ID": "session 1",
    "TPP-Redirect-URI": "https://tpp.example/callback?state=1",
    "Digest": "SHA-256=...",
    "TPP-Signature-Certificate": "MII...",
    "Signature": 'keyId="..."',
    "PSU-ID": UUID,
    "PSU-IP-Address": "192.0.2.1",
}
REQUIRED_EVERYWHERE = {"X-Request-ID", "TPP-Signature-Certificate", "Signature"}
REQUIRED = {
    BASKET_POST: {
        *REQUIRED_EVERYWHERE,
        "x-accept-fix",
        "TPP-Session-ID",
        "TPP-Redirect-URI",
        "PSU-ID",
        "PSU-IP-Address",
    },
    DETAILS: {*REQUIRED_EVERYWHERE, "x-accept-fix", "TPP-Session-ID", "TPP-Redirect-URI"},
    SANDBOX: REQUIRED_EVERYWHERE,
}
REQUIRED[BASKET_GET] = REQUIRED[BASKET_POST]
REQUIRED[INSTANT_POST] = REQUIRED[TRANSFER_POST] = REQUIRED[BASKET_POST] | {"Digest"}


def refusals(sent: dict[str, str], column: str, *more: tuple[str, str], **options) -> list[tuple[str, str | None]]:
    headers = Headers([*sent.items(), *more])
    return [(message.code, message.path) for message in check_headers(headers, column, **options)]


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in GOOD.items() if name not in names}


@cases("column", COLUMNS)
def test_every_required_header_that_is_missing_is_named_at_once(column):
    assert set(refusals({}, column)) == {("HTTP_HEADER_REQUIRED", name) for name in REQUIRED[column]}
    assert refusals(GOOD, column) == []


def test_lenient_demands_only_what_the_operation_needs():
    assert refusals({}, TRANSFER_POST, profile="lenient") == []
    needs = frozenset({"tpp-redirect-uri"})
    assert refusals({}, SANDBOX, profile="lenient", needs=needs) == [("HTTP_HEADER_REQUIRED", "TPP-Redirect-URI")]
    assert refusals({"tpp-redirect-uri": "https://tpp.example"}, SANDBOX, profile="lenient", needs=needs) == []


@cases("column", [BASKET_POST, BASKET_GET, INSTANT_POST, TRANSFER_POST])
def test_the_identity_number_stands_in_for_the_psu_id_on_payment_and_basket_operations(column):
    assert refusals({**without("PSU-ID"), "X-PSU-IDENTITY": "14888520059"}, column) == []


@cases("column", [BASKET_POST, BASKET_GET, INSTANT_POST, TRANSFER_POST, DETAILS])
@cases("profile", ["documented", "lenient"])
def test_the_corporate_context_names_its_agreement_once_the_psu_is_known(column, profile):
    corporate = {**GOOD, "PSU-Context": "CORPORATE"}
    assert refusals(corporate, column, profile=profile) == [("HTTP_HEADER_REQUIRED", "PSU-Corporate-ID")]
    assert refusals({**corporate, "PSU-Corporate-ID": UUID}, column, profile=profile) == []
    unknown = {**corporate, "X-PSU-IDENTITY": "14888520059"}
    del unknown["PSU-ID"]
    if column in (INSTANT_POST, TRANSFER_POST):
        assert refusals(unknown, column, profile=profile) == []


def test_a_header_sent_twice_is_refused_and_lists_are_joined():
    assert refusals(GOOD, DETAILS, ("psu-id", UUID)) == [("FORMAT_ERROR", "PSU-ID")]
    assert refusals(GOOD, DETAILS, ("psu-id", UUID), ("PSU-ID", UUID)) == [("FORMAT_ERROR", "PSU-ID")]
    assert refusals(GOOD, DETAILS, ("Accept", "text/html"), ("accept", "application/json"), ("X-Other", "1")) == []
    assert refusals(GOOD, DETAILS, ("X-Other", "1"), ("X-Other", "2")) == []
    headers = Headers([("x-accept-fix", " longer-names "), ("X-Accept-Fix", "amount-as-string")])
    assert headers.get("x-accept-fix") == "longer-names,amount-as-string"
    assert Headers([("PSU-ID", "first"), ("PSU-ID", "second")]).get("psu-id") == "first"


def test_all_mistakes_are_told_at_once_with_a_sentence_each():
    sent = {**without("X-Request-ID"), "PSU-ID": "not-a-uuid", "PSU-IP-Port": "65536"}
    messages = check_headers(Headers(sent.items()), DETAILS)
    assert [message.text for message in messages] == [
        "The header X-Request-ID is required.",
        'The header PSU-ID must be a UUID such as 0b5c1e5e-6e0c-4b52-9a51-2c2a51b0d6a8; received "not-a-uuid".',
        'The header PSU-IP-Port must be a port from 1 to 65535; received "65536".',
    ]


ACCEPTED = {
    "X-Request-ID": ["a", "~" * 128, "99391c7e ad88"],
    "TPP-Redirect-URI": [
        "https://tpp.example",
        "http://localhost:3000/cb",
        "http://127.0.0.1:8080/cb?x=%C3%A5&y=a/b?c",
        "http://[::1]:8080/cb",
        "tpp-app://done",
        "com.example.tpp:/oauth/done",
        "tpp-app:///done?x=1",
    ],
    "TPP-Redirect-Preferred": ["true", "false"],
    "TPP-Brand-Logging-Information": ["", "Brand Æ", "=?utf-8?B?w4Y=?="],
    "x-accept-fix": ["", "unknown-fix", " , "],
    "PSU-ID": [UUID, UUID.upper(), "00000000-0000-0000-0000-000000000000"],
    "X-PSU-IDENTITY": ["14888520059", "12345678"],
    "X-PSU-AuthMethod-Preferred": ["ENGANGSKODEAPP_BIOMETRI", "HA2", "BRAND_MOBILE", "BRANDID"],
    "PSU-Context": ["PRIVATE", "CORPORATE"],
    "PSU-IP-Address": ["192.0.2.1", "0.0.0.0", "::1", "2001:db8::1", "::ffff:192.0.2.1"],
    "PSU-IP-Port": ["1", "443", "65535"],
    "PSU-User-Agent": ["Mozilla/5.0 (x)", "", "a\tb"],
    "PSU-HTTP-Method": ["GET", "POST", "PUT", "PATCH", "DELETE"],
    "PSU-Device-ID": [UUID],
    "PSU-Geo-Location": ["GEO:59.913,10.752", "GEO:-90;180", "GEO:0,0", "GEO:52.506931;13.144558"],
}
REFUSED = {
    "X-Request-ID": ["", "~" * 129, "æ", "a\tb", "a\x7f"],
    "TPP-Session-ID": ["", "x" * 129],
    "TPP-Redirect-URI": [
        "",
        "/callback",
        "tpp.example/callback",
        "https:",
        "https://",
        "https:///callback",
        "https://user@tpp.example/",
        "https://user:secret@tpp.example/",
        "https://tpp.example/#fragment",
        "https://tpp.example/#",
        "https://tpp.example:99999/",
        "https://tpp.example:0/",
        "https://tpp.example/a b",
        "https://tpp.example/å",
        "https://tpp.example/%zz",
        "https://tpp.example\\@evil.example/",
        'https://tpp.example/"><script>',
        "javascript:alert(1)",
        "JavaScript://tpp.example/%0aalert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "mailto:a@b.example",
        "tpp-app:",
        "tpp-app://user@done",
        "https://tpp.example/" + "a" * 2048,
    ],
    "TPP-Redirect-Preferred": ["", "TRUE", "yes", "1", "False"],
    "PSU-ID": [
        "",
        UUID[:-1],
        UUID + "0",
        f"{{{UUID}}}",
        f"urn:uuid:{UUID}",
        UUID.replace("-", ""),
        "g" + UUID[1:],
        UUID + "\n",
    ],
    "X-PSU-IDENTITY": ["", "1234567", "123456789012", "1488852005x", "１４８８８５２００５９"],
    "X-PSU-AuthMethod-Preferred": ["", "ha2", "BankID", "BRAND_MOBIL", "_MOBILE", "ID", "HA2 "],
    "PSU-Corporate-ID": ["", "agreement-1"],
    "PSU-Context": ["", "private", "BUSINESS"],
    "PSU-IP-Address": [
        "",
        "192.0.2",
        "192.0.2.256",
        "192.0.2.01",
        "[::1]",
        "fe80::1%eth0",
        "192.0.2.1:80",
        "localhost",
    ],
    "PSU-IP-Port": ["", "0", "65536", "08", "-1", "4 43", "٤٤٣"],
    "TPP-Brand-Logging-Information": ["Brand \x85", "Brand \ud83d", "Brand 😀"],
    "PSU-User-Agent": ["a\x00b", "a\nb", "😀"],
    "PSU-HTTP-Method": ["", "get", "HEAD", "OPTIONS"],
    "PSU-Device-ID": ["", "device"],
    "PSU-Geo-Location": [
        "",
        "59.9,10.7",
        "geo:59.9,10.7",
        "GEO:91,0",
        "GEO:0,181",
        "GEO:59.9",
        "GEO:59.9, 10.7",
        "GEO:nan,0",
    ],
}


@cases("name, value", [(name, value) for name, values in ACCEPTED.items() for value in values])
def test_well_formed_values_are_accepted(name, value):
    assert FORMATS[name].check(value) is None


@cases(
    "value, expected",
    [
        ("https://tpp.example/#done", "an address without a fragment"),
        ("https://user@tpp.example/", "an address without user info"),
        ("javascript:alert(1)", "an http, https or app address, not one that a browser runs or reads from"),
        ("/callback", "an absolute address such as https://tpp.example/callback"),
        ("https:///callback", "a web address with a host, and a port only in digits"),
        ("https://tpp.example:/callback", "a web address with a host, and a port only in digits"),
        ("https://tpp.example:99999/callback", "a web address with a port from 1 to 65535"),
    ],
)
def test_a_refused_redirect_address_is_told_why(value, expected):
    assert FORMATS["TPP-Redirect-URI"].check(value) == expected


@cases(
    "value, expected",
    [
        ("Pay 😀", "text without a character outside the basic multilingual plane, such as an emoji (U+1F600)"),
        ("Pay \x07", "text without a control character (U+0007)"),
    ],
)
def test_a_text_that_the_banks_systems_cannot_process_is_told_why(value, expected):
    """Such a request is rejected, wherever the character stands."""
    assert FORMATS["TPP-Brand-Logging-Information"].check(value) == expected


@cases("name", FORMATS)
def test_a_malformed_value_is_a_format_error_under_the_name_of_its_header(name):
    assert refusals({**without(name), name.lower(): "\x00"}, SANDBOX) == [("FORMAT_ERROR", name)]


@given(st.text(alphabet="0123456789abcdef.:%[]/ ", max_size=30))
def test_an_accepted_address_is_an_ip_address_in_plain_form(text):
    if FORMATS["PSU-IP-Address"].check(text) is None:
        assert ip_address(text)
        assert "%" not in text


@given(st.from_regex(r"[a-zA-Z]{1,12}:(//)?[ -~]{0,40}", fullmatch=True))
def test_an_accepted_redirect_address_is_absolute_and_holds_nothing_that_splits_a_header(text):
    if FORMATS["TPP-Redirect-URI"].check(text) is None:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+", text)
        assert "#" not in text
        assert "\\" not in text
        assert not text.lower().startswith(("javascript:", "data:"))
