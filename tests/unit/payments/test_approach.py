"""What a payment's SCA holds of the headers: what an SCA opened with the same values said one by one holds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emulator.api.headers import Headers
from emulator.api.messages import Request
from emulator.api.operation import NO_QUERY, Call
from emulator.api.operations.payments import OPERATIONS, approach_of
from emulator.api.route import Route
from emulator.bank import approach, sca
from emulator.bank.bank import Bank
from emulator.bank.kinds import KINDS
from emulator.bank.script import Script
from emulator.bank.tpp import Tpp
from emulator.store import Document, memory_store

NAMES = (
    "TPP-Redirect-URI",
    "TPP-Redirect-Preferred",
    "TPP-Session-ID",
    "TPP-Brand-Logging-Information",
    "X-PSU-IDENTITY",
    "X-PSU-AuthMethod-Preferred",
    "PSU-Accept-Language",
)
SAID = st.sampled_from(["", "true", "false", "nb", "HA2", "ANYBRAND_MOBILE", "CARRIER_PIGEON"])


def document(bank: Bank, token: str) -> Document:
    found = sca.get(bank, token)
    assert found is not None
    return {member: value for member, value in found.items() if member != "id"}


@given(
    said=st.dictionaries(st.sampled_from(NAMES), SAID),
    outcome=st.sampled_from([None, "reject"]),
    tpp_name=st.sampled_from(["", "demo", "other"]),
    signer=st.sampled_from([None, "14888520059"]),
    agreement=st.sampled_from([None, "agreement-1"]),
)
def test_an_sca_holds_what_the_headers_said(
    said: dict[str, str], outcome: str | None, tpp_name: str, signer: str | None, agreement: str | None
) -> None:
    bank = Bank(memory_store(KINDS))
    bank.clock.hold()
    headers = Headers(list(said.items()))
    request = Request("POST", "/v1/payments/sepa-credit-transfers")
    row = OPERATIONS[0]
    call = Call(bank, request, Route(row, {}), row, {}, headers, "", NO_QUERY, "")
    call.tpp, call.script = Tpp("PSDNO-SBX-1", tpp_name, frozenset()), Script(sca=outcome)
    target: dict[str, Any] = {"id": "p", "tpp": call.tpp.id, "context": "PRIVATE", "agreement": agreement}
    told = approach.open_for(bank, approach_of(call), target, "payment", signer=signer)
    one_by_one = sca.open_sca(
        bank,
        tpp_id=call.tpp.id,
        purpose="payment",
        target="p",
        national_id=signer,
        context="PRIVATE",
        agreement=agreement,
        redirect_uri=headers.get("tpp-redirect-uri") or "",
        session_id=headers.get("tpp-session-id"),
        identity_hint=headers.get("x-psu-identity"),
        method_hint=headers.get("x-psu-authmethod-preferred"),
        app=headers.get("tpp-redirect-preferred") == "false",
        language=headers.get("psu-accept-language"),
        outcome=outcome,
        tpp_name=headers.get("tpp-brand-logging-information") or tpp_name,
    )
    assert document(bank, told) == document(bank, one_by_one)
