"""A shop that lets its customers pay from their account: what a TPP's own code may look like."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from signer import Signer

PAYMENTS = "/v1/payments/norwegian-domestic-credit-transfers"
SHOP_ACCOUNT = {"bban": "99911000012", "currency": "NOK"}
RETURN_ADDRESS = "https://shop.example/paid"
ATTEMPTS = 3
TIMEOUT = 30  # seconds


class PaymentRefused(Exception):
    """The bank would not take the payment; the text is the bank's."""


@dataclass
class Order:
    """An order and what is known of its payment. `state`: new, waiting, paid or failed."""

    amount: Decimal
    customer_bban: str
    customer_id: str
    number: str = field(default_factory=lambda: str(uuid.uuid4()))
    session: str = field(default_factory=lambda: str(uuid.uuid4()))
    psu_id: str | None = None
    payment_id: str | None = None
    state: str = "new"


class Shop:
    """Takes payments through the bank at `bank_url`; `signer` holds the shop's certificate."""

    def __init__(self, bank_url: str, signer: Signer) -> None:
        self._bank_url = bank_url
        self._signer = signer

    def pay(self, order: Order) -> str:
        """Create the order's payment; the address at the bank where the customer approves it."""
        answer = self._create(order)
        body = answer.json()
        if answer.status_code != 201:
            raise PaymentRefused("; ".join(message["text"] for message in body["tppMessages"]))
        order.payment_id, order.state = body["paymentId"], "waiting"
        return str(body["_links"]["scaRedirect"]["href"])

    def customer_returned(self, order: Order, address: str) -> None:
        """The customer is back from the bank, at `address`: it tells who this is at the bank."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        order.psu_id = query.get("psu-id")
        order.session = query.get("tpp-session-id", order.session)

    def refresh(self, order: Order) -> str:
        """Ask the bank how the payment stands; the order's state."""
        answer = self._send("GET", f"{PAYMENTS}/{order.payment_id}/status", order)
        answer.raise_for_status()
        status = answer.json()["transactionStatus"]
        order.state = {"ACSC": "paid", "RJCT": "failed", "CANC": "failed"}.get(status, "waiting")
        return order.state

    def _create(self, order: Order) -> requests.Response:
        """One payment, however often the answer is lost: a repeat carries the same X-Request-ID."""
        payment = {
            "instructedAmount": {"amount": f"{order.amount:.2f}", "currency": "NOK"},
            "creditorName": "The shop",
            "creditorAccount": SHOP_ACCOUNT,
            "debtorAccount": {"bban": order.customer_bban, "currency": "NOK"},
            "remittanceInformationUnstructured": f"Order {order.number[:8]}",
        }
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._send("POST", PAYMENTS, order, payment, request_id=order.number)
            except requests.ConnectionError:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _send(
        self, method: str, path: str, order: Order, content: Any = None, *, request_id: str | None = None
    ) -> requests.Response:
        body = b"" if content is None else json.dumps(content).encode()
        headers = {
            "X-Request-ID": request_id or str(uuid.uuid4()),
            "TPP-Session-ID": order.session,
            "TPP-Redirect-URI": RETURN_ADDRESS,
            "PSU-IP-Address": "192.0.2.1",
            "x-accept-fix": "amount-as-string",
        }
        if order.psu_id is None:
            headers["X-PSU-IDENTITY"] = order.customer_id
        else:
            headers["PSU-ID"] = order.psu_id
        if body:
            headers["Content-Type"] = "application/json"
        target = urlsplit(self._bank_url).path + path
        signed = self._signer.sign(method, target, headers, body)
        return requests.request(
            method, self._bank_url + path, headers=signed, data=body, timeout=TIMEOUT, allow_redirects=False
        )
