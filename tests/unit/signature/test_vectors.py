"""Signatures that other programs made (see tests/vectors/README.md)."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from emulator.api.signature import SignatureRefused, Verified, check
from emulator.api.signature.check import collect, inspect
from emulator.api.signature.rules import Terms, verifies
from emulator.bank.settings import Settings
from emulator.httpsig.signing import parse
from tests.cases import cases

FOLDER = Path(__file__).parents[2] / "vectors"
PEM = "TPP-Signature-Certificate: PEM text in place of base64 DER on one line"
IDENTIFIER = "keyId: the attribute type organizationIdentifier in the issuer"
REVERSED = "keyId: the issuer is in the certificate's order, RFC 2253 reverses it"
TOOL_ORDER = "keyId: the issuer is in the order CN, O, OU, L, ST, C, not in that of RFC 2253"
UNLISTED = (
    "The request has x-request-id, psu-id, tpp-redirect-uri, which the headers parameter does not list "
    "(without a headers parameter only date is signed)."
)

ACCEPTED: dict[str, tuple[str, ...]] = {
    "get": (),
    "post with digest and query": (),
    "sha-512": (),
    "pem with blanks": (PEM,),
    "pem without line breaks": (PEM,),
    "rfc2253 with hexadecimal escapes": (IDENTIFIER,),
    "unknown type as oid with der": (),
    "letters beyond ascii, wrapped": (IDENTIFIER,),
    "certificate order": (IDENTIFIER, REVERSED),
    "certificate order with blanks": ("keyId: blanks around , or = in the issuer", IDENTIFIER, REVERSED),
    "serial without leading zero": (IDENTIFIER,),
    "multi-valued name": ("keyId: the attribute type emailAddress in the issuer",),
    "4096 bits": (),
    "tool order": (TOOL_ORDER,),
    "no headers parameter": (),
    "all candidates": (),
    "request target and digest": (),
    "rsa-sha512": (),
    "opaque parameter": ("Signature: unknown parameter opaque ignored",),
}
REFUSED = {
    "lower-case serial": [
        "The KeyID is not matching the certificate: the serial number is in lower case, it must be upper-case "
        "hexadecimal; expected SN=5A3F00C1D2E4,CA=CN=Example Seal,O=Example TPP,C=NO"
    ],
    "no headers parameter but candidates sent": [UNLISTED],
    "rsa-sha1": ['The algorithm "rsa-sha1" is not accepted (SHA-1 can be forged); use rsa-sha256.'],
    "scheme in front": [
        "The header Signature cannot be read: it begins with the word Signature, as Authorization does; leave the "
        "word out."
    ],
    "created of a later draft": ["The headers parameter lists (created), which draft 10 does not know."],
}


def vectors() -> list[dict[str, Any]]:
    return [
        vector for name in ("openssl.json", "npm.json") for vector in json.loads((FOLDER / name).read_text())["vectors"]
    ]


def verified(vector: dict[str, Any], profile: str = "documented") -> Verified:
    return check(
        vector["method"],
        vector["target"],
        [(name, value) for name, value in vector["headers"]],
        vector["body"].encode(),
        digest_required=bool(vector["body"]),
        settings=Settings(profile),
        instant=datetime.fromisoformat(vector["now"]).timestamp(),
        trusted_ca=None,
    )


def test_every_vector_has_an_expected_outcome() -> None:
    assert {vector["name"] for vector in vectors()} == set(ACCEPTED) | set(REFUSED)


@cases("vector", [v for v in vectors() if v["name"] in ACCEPTED])
def test_a_signature_of_another_program_is_accepted(vector: dict[str, Any]) -> None:
    outcome = verified(vector)
    assert outcome.notes == ACCEPTED[vector["name"]]
    assert outcome.signing_string == vector["signingString"]


@cases("vector", [v for v in vectors() if v["name"] in REFUSED])
def test_a_signature_of_another_program_is_refused_with_the_reason(vector: dict[str, Any]) -> None:
    with pytest.raises(SignatureRefused) as refused:
        verified(vector)
    assert [(one.code, one.path) for one in refused.value.messages] == [("BAD_REQUEST", "Signature")]
    assert [one.text for one in refused.value.messages] == REFUSED[vector["name"]]


def test_the_lenient_profile_takes_a_serial_in_lower_case() -> None:
    vector = next(v for v in vectors() if v["name"] == "lower-case serial")
    assert verified(vector, "lenient").notes == ("keyId: the serial number is in lower case",)


@cases("vector", [v for v in vectors() if v["name"] in ACCEPTED])
def test_any_other_target_or_body_is_refused(vector: dict[str, Any]) -> None:
    changed = []
    if "(request-target)" in vector["signingString"]:
        changed.append({**vector, "target": vector["target"] + "x"})
    if vector["body"]:
        changed.append({**vector, "body": vector["body"] + " "})
    headers = [(name, "other" if name == "X-Request-ID" else value) for name, value in vector["headers"]]
    if headers != [tuple(pair) for pair in vector["headers"]]:
        changed.append({**vector, "headers": headers})
    for other in changed:
        with pytest.raises(SignatureRefused):
            verified(other)


def draft10() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / "draft10.json").read_text())
    return document


@cases("vector", draft10()["vectors"])
def test_the_drafts_own_examples_give_its_signing_strings_and_verify(vector: dict[str, Any]) -> None:
    """Below the key settings: the draft's key has 1024 bits and no certificate."""
    draft = draft10()
    headers = [(name, value) for name, value in draft["headers"]] + [("Signature", vector["signature"])]
    presented = collect(draft["method"], draft["target"], headers, draft["body"].encode())
    instant = datetime.fromisoformat("2014-01-05T21:31:45+00:00").timestamp()
    assert not inspect(presented, Terms(True, Settings(), instant, None))
    # No certificate, and C.1 and C.2 leave out the digest, which this bank wants; nothing else is wrong.
    assert {fault.path for fault in presented.faults} <= {"TPP-Signature-Certificate", "Signature"}
    assert presented.signing_string == vector["signingString"]
    key = load_pem_public_key(draft["publicKey"].encode())
    assert isinstance(key, RSAPublicKey)
    raw = base64.b64decode(parse(vector["signature"]).signature or "")
    assert verifies(key, raw, vector["signingString"].encode(), "SHA-256")
    assert not verifies(key, raw, vector["signingString"].encode() + b"\n", "SHA-256")
