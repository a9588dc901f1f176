"""The payment products: each module of this package defines one `Product`; a malformed one stops the start.

The steps to add one, and what of it is written by hand: add-product.md. The body that it names is in
`api/shapes/payments.py`, its rules are in `bank/scheme/rules.py`, its flow is in `bank/payment/flows.py`. When it is
executed (cut-off, banking days) is in `bank/scheme/execution.py`, which knows no product: a rule for one product is a
member of `Product` that its flow passes on. Fee, header column, example, its rows in the manual's tables and its
example answers follow from the members. `tests/api/test_control_ready_scenarios.py` plays every scenario with it, with
a body of its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from emulator.bank.documents import Payment
from emulator.bank.errors import BankError
from emulator.bank.problems import guess
from emulator.bank.scheme.rules import Check
from emulator.discovery import discover

PAYMENTS = "payments"
PERIODIC = "periodic-payments"
BULK = "bulk-payments"
SERVICES = (PAYMENTS, PERIODIC, BULK)

# Accounts of the fixture known-state, for examples.
DEBTOR = {"bban": "99901000014", "currency": "NOK"}
TRANSFER: Mapping[str, Any] = {
    "instructedAmount": {"amount": "250.00", "currency": "NOK"},
    "creditorName": "Even Eksempel",
    "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
    "remittanceInformationUnstructured": "Takk for sist",
}
TRANSFER_IN_EUROPE: Mapping[str, Any] = {
    "endToEndIdentification": "ORDER-2026-0042",
    "instructedAmount": {"amount": "12.50", "currency": "EUR"},
    "creditorName": "Librairie Exemple",
    "creditorAccount": {"iban": "FR8199999000010123456789A00", "currency": "EUR"},
    "debtorAccount": {"iban": "NO8599901000014", "currency": "NOK"},
    "remittanceInformationUnstructured": "Invoice 42",
}


@dataclass(frozen=True, slots=True)
class Product:
    """One payment product of one service.

    `flow`: the name of its flow (`payment/flows.py`); `body`: the name of the shape of its initiation; `words`,
    `norwegian`: its name for the customer, in English and Norwegian; `checks`: the rules of one payment (of each entry
    of a bulk), all of which run, so that all problems are reported at once; `whole`: the rules of a bulk as a whole;
    `issued`, `received`: ISO 20022 bank transaction codes of debtor and creditor; `code`: the bank's own;
    `example`: an initiation that works with the fixture known-state, for the OpenAPI document, the collection and the
    tests; a `timedelta` in it stands for the date so long after today; `crosses_border`: its fee, and the creditor is
    named by IBAN; `verifies_payee`: the setting `payee_check` applies to it; `known_issue`: the known issue applies to
    it (payments.md#known-issue); `instant_headers`: its creation takes the headers of an instant payment (headers.md).
    """

    service: str
    name: str
    flow: str
    body: str
    words: str
    norwegian: str
    checks: tuple[Check, ...]
    issued: str
    received: str
    code: str
    example: Mapping[str, Any]
    whole: tuple[Check, ...] = ()
    crosses_border: bool = False
    verifies_payee: bool = False
    known_issue: bool = False
    instant_headers: bool = False


@cache
def table() -> dict[tuple[str, str], Product]:
    """Every product, by service and name."""
    every = discover(__path__, __name__, Product, names=lambda product: (f"{product.service}/{product.name}",))
    return {(product.service, product.name): product for product in every}


def find(service: str, name: str) -> Product:
    """The product under this address; PRODUCT_UNKNOWN (404)."""
    product = table().get((service, name))
    if product is None:
        meant = guess(name[:100], (other for of, other in table() if of == service))
        text = f"There is no product {name[:100]} in {service}{meant or '.'}"
        raise BankError("PRODUCT_UNKNOWN", text, "payment-product")
    return product


def of(payment: Payment) -> Product:
    return table()[payment["service"], payment["product"]]
