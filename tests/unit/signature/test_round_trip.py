"""What the client signs the gate accepts, whatever the values; what is altered it refuses; nothing breaks it."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from emulator.api.signature import SignatureRefused, Verified
from emulator.bank.settings import Settings
from emulator.ca import CertificateAuthority
from emulator.client import Identity, signed_headers
from tests.cases import cases
from tests.unit.signature.making import NOW, same_verdict

AUTHORITY = CertificateAuthority(None, clock=lambda: NOW)
PLAIN = Identity.of(AUTHORITY.issue("plain"))
SPECIAL = Identity.of(AUTHORITY.issue("special", flaw="special-characters"))

SETTINGS = Settings()

VALUE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30).map(
    lambda text: text.strip(" \t")
)
TOKEN = st.text(string.ascii_letters + string.digits + "-", min_size=1, max_size=12)
NAMES = st.sampled_from(["X-Request-ID", "PSU-ID", "PSU-Corporate-ID", "TPP-Redirect-URI", "x-accept-fix", "Host"])
HEADERS = st.dictionaries(NAMES, VALUE.filter(bool), max_size=6)
TARGET = st.text(string.ascii_letters + string.digits + "/?&=%+!~*'();:@$,._-", max_size=40).map("/".__add__)
METHOD = st.sampled_from(["GET", "POST", "PUT", "DELETE"])
IDENTITY = st.sampled_from([PLAIN, SPECIAL])
BODY = st.binary(max_size=60)


def gate(method: str, target: str, headers: Any, body: bytes) -> Verified:
    return same_verdict(
        method,
        target,
        headers,
        body,
        digest_required=bool(body),
        settings=SETTINGS,
        instant=NOW.timestamp(),
        trusted_ca=None,
    )


@given(METHOD, TARGET, HEADERS, BODY, IDENTITY, st.sampled_from(["rsa-sha256", "rsa-sha512"]))
def test_what_the_client_signs_is_accepted(
    method: str, target: str, headers: dict[str, str], body: bytes, identity: Identity, algorithm: str
) -> None:
    sent = signed_headers(method, target, identity, headers=headers, body=body, algorithm=algorithm, now=NOW)
    assert gate(method, target, list(sent.items()), body).notes == ()


@given(METHOD, TARGET, HEADERS, BODY, st.data())
def test_whatever_is_altered_afterwards_is_refused(
    method: str, target: str, headers: dict[str, str], body: bytes, data: st.DataObject
) -> None:
    sent = signed_headers(method, target, PLAIN, headers=headers, body=body, now=NOW)
    signed = [name for name in sent if name.lower() not in ("host", "x-accept-fix")]
    place = data.draw(st.sampled_from(["method", "target", "body", *signed]))
    pairs = dict(sent)
    if place == "method":
        method = {"GET": "POST", "POST": "PUT", "PUT": "DELETE", "DELETE": "GET"}[method]
    elif place == "target":
        target += data.draw(TOKEN)
    elif place == "body":
        assume(body)
        body = body[:-1] + bytes([body[-1] ^ 1])
    else:
        other = data.draw(VALUE)
        assume(other != sent[place])
        pairs[place] = other
    with pytest.raises(SignatureRefused) as refused:
        gate(method, target, list(pairs.items()), body)
    assert all(one.text and len(one.text) <= 512 for one in refused.value.messages)
    assert refused.value.diagnosis()["cause"] == str(refused.value)


@given(METHOD, TARGET, HEADERS, BODY, st.integers(0, 10_000), st.integers(1, 255))
def test_no_altered_character_of_the_signature_header_is_accepted(
    method: str, target: str, headers: dict[str, str], body: bytes, position: int, shift: int
) -> None:
    sent = signed_headers(method, target, PLAIN, headers=headers, body=body, now=NOW)
    text = sent["Signature"]
    at = position % len(text)
    altered = text[:at] + chr((ord(text[at]) + shift) % 256) + text[at + 1 :]
    try:
        verified = gate(method, target, list({**sent, "Signature": altered}.items()), body)
    except SignatureRefused:
        return
    # Only a spelling may differ: the case of a parameter's name, or a blank for a blank.
    assert verified.notes or altered.split() == text.split()


ANY = st.text(max_size=40)
RAW_HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["Signature", "Date", "Digest", "TPP-Signature-Certificate", "Host", "PSU-ID"]) | ANY, ANY
    ),
    max_size=10,
)


@given(ANY, ANY, RAW_HEADERS, BODY)
@example("GET", "/", [("Date", "\ud800"), ("Signature", "=?utf-8?B?7aCA?="), ("Digest", "\udfff")], b"")
def test_no_request_breaks_the_gate(method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> None:
    with pytest.raises(SignatureRefused) as refused:
        gate(method, target, headers, body)
    assert refused.value.messages
    assert refused.value.diagnosis()["cause"]


SURROGATES = st.text("aø\ud800\udfff%/?&= ", max_size=20)


@given(METHOD, SURROGATES, st.dictionaries(NAMES, SURROGATES, max_size=4), BODY, st.binary(max_size=10))
def test_no_request_with_a_real_signature_over_something_else_breaks_the_diagnosis(
    method: str, target: str, headers: dict[str, str], body: bytes, tail: bytes
) -> None:
    sent = signed_headers("GET", "/v1/x", PLAIN, headers={}, body=tail, digest=True, now=NOW)
    names = sent["Signature"].split('headers="')[1].split('"')[0]
    listed = " ".join([names, *(name.lower() for name in headers if name != "X-Request-ID")])
    pairs = {**sent, **headers, "Signature": sent["Signature"].replace(f'headers="{names}"', f'headers="{listed}"')}
    with pytest.raises(SignatureRefused) as refused:
        gate(method, target, list(pairs.items()), body)
    for message in refused.value.messages:
        assert f"{message.path}{message.text}".encode()
    assert refused.value.diagnosis()["cause"]


@cases("repeats", [1, 1000])
def test_a_long_list_of_headers_is_read(repeats: int) -> None:
    sent = signed_headers("GET", "/", PLAIN, headers={f"x-{n}": "y" for n in range(repeats)}, now=NOW)
    assert gate("GET", "/", list(sent.items()), b"")
