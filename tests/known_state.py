"""The known state as tests name it: its people, and a payment from Kari to Even; and the addresses of payments."""

from __future__ import annotations

from typing import Any

KARI, EVEN, SIRI, TOR = "14888520059", "03817910172", "21909220006", "09877410142"  # Siri and Tor act for firms

STRAKS = "/v1/payments/instant-norwegian-domestic-credit-transfers-straks"
DOMESTIC = "/v1/payments/norwegian-domestic-credit-transfers"
SEPA = "/v1/payments/sepa-credit-transfers"
CROSS_BORDER = "/v1/payments/cross-border-credit-transfers"
PERIODIC = "/v1/periodic-payments/norwegian-domestic-credit-transfers"
BULK = "/v1/bulk-payments/norwegian-domestic-credit-transfers"

PAYMENT: dict[str, Any] = {
    "instructedAmount": {"amount": "10.00", "currency": "NOK"},
    "creditorName": "Even Eksempel",
    "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
    "debtorAccount": {"bban": "99901000014", "currency": "NOK"},
}
