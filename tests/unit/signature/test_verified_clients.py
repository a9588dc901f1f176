"""A client that the gate accepted before is looked at less closely, and refused for the same things all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from emulator.api.signature import SignatureRefused, Verified, check
from emulator.bank.settings import Settings
from emulator.ca import CertificateAuthority
from emulator.httpsig.signing import CANDIDATES
from tests.cases import cases
from tests.unit.signature.making import CLIENTS, NOW, Making

LISTED = ("(request-target)", "date", "digest", "x-request-id", "tpp-redirect-uri")


def as_served(client: Making) -> Verified:
    """The verdict as the pipeline asks for it: with the headers it has read already."""
    headers = client.sent()
    return check(
        client.method,
        client.target,
        headers,
        client.body,
        present={name.lower(): value for name, value in headers},
        clients=CLIENTS,
        digest_required=client.wanted,
        settings=client.settings,
        instant=client.now.timestamp(),
        trusted_ca=client.trusted_ca,
    )


def refused(client: Making) -> str:
    with pytest.raises(SignatureRefused) as refusal:
        as_served(client)
    return " ".join(fault.text for fault in refusal.value.messages)


def signature_first(header: str) -> str:
    before, mark, signature = header.rpartition(",signature=")
    return f"{mark[1:]}{signature},{before}"


def test_who_is_familiar_is_told_the_same(making: Making) -> None:
    first, again = as_served(making), as_served(making)
    assert (again.tpp, again.certificate, again.notes) == (first.tpp, first.certificate, ())
    assert again.signing_string == first.signing_string


@pytest.mark.parametrize(("form", "times"), [(str, 1), (signature_first, 3)])
def test_the_long_way_is_for_who_is_not_familiar(
    making: Making, monkeypatch: pytest.MonkeyPatch, form: Callable[[str], str], times: int
) -> None:
    """Whose header ends with the signature, as nearly all do, goes it once."""
    ways: list[str] = []
    gate = import_module("emulator.api.signature.check")
    inspect = gate.inspect
    monkeypatch.setattr(gate, "inspect", lambda *args, **more: ways.append("long") or inspect(*args, **more))
    CLIENTS._clients.clear()
    for _ in range(3):
        as_served(making.but(finish=form))
    assert len(ways) == times


def test_a_header_that_must_be_signed_is_missed_in_the_list_when_it_comes_later(making: Making) -> None:
    fewer = making.with_header("PSU-ID", None).but(names=LISTED)
    as_served(fewer)
    assert "psu-id, which the headers parameter does not list" in refused(making.but(names=LISTED))


@cases("name", [name for name in CANDIDATES if name in LISTED and name not in ("date", "digest")])
def test_a_listed_header_is_missed_when_it_is_left_out_later(making: Making, name: str) -> None:
    as_served(making)
    headers = tuple(pair for pair in making.headers if pair[0].lower() != name)
    listed = " ".join(["(request-target)", *(one for one in CANDIDATES if one in (*LISTED, "psu-id"))])
    assert f"lists {name}, but the request has no such header" in refused(making.but(headers=headers, listed=listed))


def test_a_digest_is_missed_where_one_is_required_now(making: Making) -> None:
    bare = making.but(digest=None, wanted=False)
    as_served(bare)
    assert "The header Digest is required" in refused(bare.but(wanted=True))


def test_the_certificate_is_measured_by_the_authority_that_is_trusted_now(authority: CertificateAuthority) -> None:
    own = Settings(trust="sandbox-ca")
    trusted = Making(authority.issue("trusted"), settings=own, trusted_ca=authority.certificate)
    as_served(trusted)
    other = CertificateAuthority(None, clock=lambda: NOW).certificate
    assert "signed by another key" in refused(trusted.but(trusted_ca=other))


def test_another_settings_is_applied_anew(making: Making) -> None:
    late = making.with_header("Date", "Mon, 02 Mar 2026 07:00:00 GMT")
    as_served(late.but(settings=Settings(date_skew=86_400)))
    assert "behind real time" in refused(late)


def test_a_header_that_ends_otherwise_is_read_anew(making: Making) -> None:
    as_served(making)
    assert refused(making.but(finish=lambda header: header[:-1]))
    assert refused(making.but(finish=lambda header: f"{header[:-1]}x"))
    assert as_served(making.but(finish=lambda header: f"{header},")).tpp.id == "PSDNO-SBX-1"


def test_what_stood_behind_the_signature_is_asked_for_again(making: Making) -> None:
    as_served(making.but(finish=signature_first))
    alone = making.but(key_id=None, algorithm=None, listed=None)
    assert "keyId is missing" in refused(alone)


def test_a_note_on_one_request_is_not_lost_on_a_familiar_client(making: Making) -> None:
    as_served(making)
    old = making.with_header("Date", "Monday, 02-Mar-26 08:00:00 GMT")
    assert as_served(old).notes == as_served(old).notes == ("Date: the obsolete RFC 850 form",)


def test_another_key_behind_the_same_names_does_not_pass(making: Making) -> None:
    as_served(making)
    thiefs = generate_private_key(65537, 2048)  # not that of a certificate: the certificates of a process share 40 keys
    forged = replace(making, sign=lambda _, data: making.sign(thiefs, data))
    assert refused(forged)


def test_a_certificate_that_ends_like_a_familiar_one_is_read_anew(making: Making) -> None:
    as_served(making)
    sent = making.credentials.certificate_header
    middle = len(sent) // 2
    other = "B" if sent[middle] == "A" else "A"
    assert refused(making.but(certificate=sent[:middle] + other + sent[middle + 1 :]))
