"""The access of the TPP ends between two requests: its consents, sessions or the reads of the day."""

from __future__ import annotations

from typing import Any, Literal

from emulator.conformance.explore.faults import ChangeFault, FaultKind
from emulator.scenario.start import ACCESS

ENDS = {
    "consent-revoked": {"consents": "revoked"},
    "consent-expired": {"consents": "expired"},
    "session-over": {"sessions": "expired"},
    "quota-used-up": {"quotas": "exhausted"},
}


class AccessEnds(ChangeFault):
    """`ends`: what ends."""

    ends: Literal["consent-revoked", "consent-expired", "session-over", "quota-used-up"]

    def start(self, debtor: str, number: str) -> dict[str, Any]:
        del debtor, number
        return {"change": [ENDS[self.ends]]}

    def described(self) -> str:
        return f"after {self.of} {self.at}: {self.ends.replace('-', ' ')}"


FAULT = FaultKind(
    name="access",
    summary="The access of the TPP ends between two requests: its consents, sessions or the reads of the day.",
    effects=tuple(f"change: {name}" for name in ACCESS),
    form=AccessEnds,
    example={"of": "getTransactions", "at": 1, "ends": "consent-revoked"},
    operations=("getAccounts", "getBalances", "getTransactions", "createPayment"),  # statuses need no access
    weight=2,
)
