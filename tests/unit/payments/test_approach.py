"""What a payment's SCA holds of the headers."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emulator.api.gates import approach_of
from emulator.api.headers import Headers
from emulator.api.messages import Request
from emulator.api.operation import Call, Route
from emulator.api.operations.payments import create_payment
from emulator.bank.authentication import authorisations, sca
from emulator.bank.bank import Bank
from emulator.bank.kinds import KINDS
from emulator.bank.request import AuthenticatedTpp, Script
from emulator.store import memory_store

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


@given(
    sent=st.dictionaries(st.sampled_from(NAMES), SAID),
    outcome=st.sampled_from([None, "reject"]),
    tpp_name=st.sampled_from(["", "demo", "other"]),
    signer=st.sampled_from([None, "14888520059"]),
    agreement=st.sampled_from([None, "agreement-1"]),
)
def test_an_sca_holds_what_the_headers_said(
    sent: dict[str, str], outcome: str | None, tpp_name: str, signer: str | None, agreement: str | None
) -> None:
    bank = Bank(memory_store(KINDS))
    headers = Headers(list(sent.items()))
    request = Request("POST", "/v1/payments/sepa-credit-transfers")
    route = Route.of(create_payment, {"payment-service": "payments", "payment-product": "sepa-credit-transfers"})
    call = Call(bank, request, route, create_payment, route.params, headers, "", "")
    call.tpp, call.script = AuthenticatedTpp("PSDNO-SBX-1", tpp_name, frozenset()), Script(sca=outcome)
    target: dict[str, Any] = {"id": "p", "tpp": call.tpp.id, "context": "PRIVATE", "agreement": agreement}
    created = bank.clock.hold()
    opened = sca.get(bank, authorisations.open_for(bank, approach_of(call), target, "payment", signer=signer))
    assert opened is not None
    optional = {
        "sessionId": sent.get("TPP-Session-ID"),
        "nationalId": signer,
        "identityHint": sent.get("X-PSU-IDENTITY"),
        "method": authorisations.offered_method(sent.get("X-PSU-AuthMethod-Preferred")),
        "agreement": agreement,
        "language": sent.get("PSU-Accept-Language"),
        "outcome": outcome,
    }
    assert opened == {
        "id": opened["id"],
        "tpp": "PSDNO-SBX-1",
        "tppName": sent.get("TPP-Brand-Logging-Information") or tpp_name or "PSDNO-SBX-1",
        "purpose": "payment",
        "target": "p",
        "redirectUri": sent.get("TPP-Redirect-URI", ""),
        "app": sent.get("TPP-Redirect-Preferred") == "false",
        "context": "PRIVATE",
        "status": "started",
        "created": created,
        **{member: value for member, value in optional.items() if value},
    }
