"""The payment products: one file each in this folder, with a `PRODUCT`; a malformed or second one stops the start."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import dataclass
from functools import cache

from emulator.bank.documents import Payment
from emulator.bank.errors import BankError
from emulator.bank.scheme.rules import Check

PAYMENTS = "payments"
PERIODIC = "periodic-payments"
BULK = "bulk-payments"
SERVICES = (PAYMENTS, PERIODIC, BULK)

_NAME = re.compile(r"[a-z][a-z0-9-]{2,80}", re.ASCII)
_CODE = re.compile(r"[A-Z]{4}(-[A-Z]{4}){0,2}", re.ASCII)


class MalformedProduct(ValueError):
    """A file of this folder has no well-formed product; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Product:
    """One payment product of one service.

    `flow`: the name of its flow (`payment/flows`); `body`: the shape of its initiation, by name; `words`,
    `norwegian`: its name for the customer, in English and Norwegian; `checks`: the rules of one payment (of each
    entry of a bulk), all run so that all problems are reported at once; `whole`: the rules of a bulk itself; `issued`,
    `received`: ISO 20022 bank transaction codes; `code`: the bank's own; `verifies_payee`: the setting `payee_check` is
    about it; `known_issue`: SPEC 7's known issue is this product's.
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
    whole: tuple[Check, ...] = ()
    crosses_border: bool = False
    verifies_payee: bool = False
    known_issue: bool = False
    instant_headers: bool = False


def _problem(product: object) -> str | None:
    if not isinstance(product, Product):
        return "has no PRODUCT of the class Product"
    if product.service not in SERVICES:
        return f"names the service {product.service}; there are {', '.join(SERVICES)}"
    if not _NAME.fullmatch(product.name):
        return f"has the name {product.name}, which is not words joined by hyphens"
    if not all(_CODE.fullmatch(code) for code in (product.issued, product.received)):
        return "has a bank transaction code that is not of the form PMNT-ICDT-ESCT"
    if not 1 <= len(product.code) <= 35:
        return "has a code of its own that is not 1 to 35 characters long"
    if not product.body.isidentifier() or not all(callable(check) for check in (*product.checks, *product.whole)):
        return "has a body that is no name, or a check that is no function"
    if product.verifies_payee and product.service == BULK:
        return "verifies the payee of a bulk, which has several"
    return None


def load(folder: list[str], package: str) -> dict[tuple[str, str], Product]:
    """The products of the files in `folder`, by service and name; MalformedProduct names the file at fault."""
    products: dict[tuple[str, str], Product] = {}
    for module in pkgutil.iter_modules(folder):
        product = getattr(importlib.import_module(f"{package}.{module.name}"), "PRODUCT", None)
        wrong = _problem(product)
        if wrong is not None or not isinstance(product, Product):
            raise MalformedProduct(f"The product file {module.name}.py {wrong}.")
        if (product.service, product.name) in products:
            raise MalformedProduct(f"The product file {module.name}.py is a second {product.service}/{product.name}.")
        products[product.service, product.name] = product
    return products


@cache
def table() -> dict[tuple[str, str], Product]:
    """Every product, by service and name."""
    return load(list(__path__), __name__)


def find(service: str, name: str) -> Product:
    """The product under this address; PRODUCT_UNKNOWN (404)."""
    product = table().get((service, name))
    if product is None:
        raise BankError("PRODUCT_UNKNOWN", f"There is no product {name[:100]} in {service}.", "payment-product")
    return product


def of(payment: Payment) -> Product:
    """The product of a payment document."""
    return table()[payment["service"], payment["product"]]
