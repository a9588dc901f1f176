"""The table of the TPP interface: the operations of every file of this folder. A duplicate stops the start.

An answer is put together here, its form is in `api/shapes`; `python -m tests.docs.answers` records the examples again.
The tests are in `tests/api` (of payments also in `tests/unit/payments`); `test_berlin_group.py` there lists what Berlin
Group clients do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from emulator.api.operation import PATH_VALUES, Operation, Route
from emulator.api.router import Router
from emulator.bank import products
from emulator.bank.errors import BankError
from emulator.bank.problems import unknown
from emulator.bank.products import Product
from emulator.discovery import discover

PRODUCT = "{payment-service}/{payment-product}"


@cache
def table() -> tuple[Operation, ...]:
    """All operations, in the order of the file names."""
    return discover(__path__, __name__, Operation, names=lambda row: (row.id,))


@cache
def router() -> Router[Operation, Route]:
    """The router of the TPP interface, from a method and a path to a route."""
    return Router(table(), Route.of, values=PATH_VALUES)


@dataclass(frozen=True, slots=True)
class OperationVariant:
    """An operation with its operationId in the OpenAPI document, which has one for each payment product."""

    id: str
    row: Operation
    product: Product | None = None

    @property
    def path(self) -> str:
        """Its address, with the payment product."""
        one = self.product
        return self.row.path if one is None else self.row.path.replace(PRODUCT, f"{one.service}/{one.name}")


@cache
def variants() -> Mapping[str, OperationVariant]:
    """Every operation by its operationId in the OpenAPI document, those of payments once for each product."""
    named = []
    for row in table():
        if PRODUCT not in row.path:
            named.append(OperationVariant(row.id, row))
            continue
        for (service, name), product in sorted(products.table().items()):
            words = f"{service.removesuffix('payments')}-{name}".split("-")
            named.append(OperationVariant(row.id + "".join(map(str.capitalize, words)), row, product))
    return {variant.id: variant for variant in named}


def operation_names(row_id: str, params: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the operation of a request: of the table, and of the OpenAPI document for its payment product."""
    return _names(row_id, params.get("payment-service"), params.get("payment-product"))


@lru_cache(maxsize=1024)
def _names(row_id: str, service: str | None, product: str | None) -> tuple[str, ...]:
    own = products.table().get((service or "", product or ""))
    named = (one.id for one in variants().values() if one.row.id == row_id and one.product is own)
    return tuple(dict.fromkeys((row_id, *named)))


def operation_ids() -> tuple[str, ...]:
    """All names of operations: those of the table, and those of the OpenAPI document."""
    return tuple(dict.fromkeys((*(row.id for row in table()), *variants())))


def check_operation(name: str | None) -> None:
    """Raise FORMAT_ERROR for an operationId that does not exist, with a guess."""
    known = operation_ids()
    if name is not None and name not in known:
        raise BankError("FORMAT_ERROR", unknown(name, known, "There is no operation"), "operation")
