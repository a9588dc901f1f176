"""A shop that lets its customers pay from their account: what a TPP's own code may look like."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from decimal import Decimal

from emulator.client import Response, TppClient

PAYMENTS = "/v1/payments/norwegian-domestic-credit-transfers"
SHOP_ACCOUNT = {"bban": "99911000012", "currency": "NOK"}
ATTEMPTS = 3


class PaymentRefused(Exception):
    """The bank would not take the payment; the text is the bank's."""


@dataclass
class Order:
    """An order and what is known of its payment. `state`: new, waiting, paid or failed."""

    amount: Decimal
    customer_bban: str
    customer_id: str
    number: str = field(default_factory=lambda: str(uuid.uuid4()))
    payment_id: str | None = None
    state: str = "new"


class Shop:
    """Takes payments through a bank; in production with TppClient("https://...", Identity.from_folder("..."))."""

    def __init__(self, bank: TppClient) -> None:
        self._bank = bank

    def pay(self, order: Order) -> str:
        """Create the order's payment; the address at the bank where the customer approves it."""
        answer = self._create(order)
        body = answer.json()
        if answer.status != 201:
            raise PaymentRefused("; ".join(message["text"] for message in body["tppMessages"]))
        order.payment_id, order.state = body["paymentId"], "waiting"
        return str(answer.sca_redirect)

    def _create(self, order: Order) -> Response:
        """One payment, however often the answer is lost: a repeat carries the same X-Request-ID."""
        payment = {
            "instructedAmount": {"amount": f"{order.amount:.2f}", "currency": "NOK"},
            "creditorName": "The shop",
            "creditorAccount": SHOP_ACCOUNT,
            "debtorAccount": {"bban": order.customer_bban, "currency": "NOK"},
            "remittanceInformationUnstructured": f"Order {order.number[:8]}",
        }
        headers = {"X-Request-ID": order.number, "X-PSU-IDENTITY": order.customer_id}
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._bank.post(PAYMENTS, json=payment, headers=headers)
            except OSError:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def refresh(self, order: Order) -> str:
        """Ask the bank how the payment stands; the order's state."""
        status = self._bank.get(f"{PAYMENTS}/{order.payment_id}/status").json()["transactionStatus"]
        order.state = {"ACSC": "paid", "RJCT": "failed", "CANC": "failed"}.get(status, "waiting")
        return order.state
