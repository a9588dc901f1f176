"""What an address decides before anything else of a request is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulator.api import query as queries
from emulator.api.headers import MATRIX
from emulator.api.operation import Operation, Params
from emulator.bank import products
from emulator.bank.errors import BankError


@dataclass(frozen=True, slots=True)
class Route:
    """An operation with the decoded path parameters of one address.

    `column`: that of the header matrix; `shape`: what the body must look like, None without a body; `digest`: whether
    it must be hashed; `query`: the values of a request without a query, None where it lacks something.
    `known`: false for a payment product that there is not, of which nothing else is said.
    """

    operation: Operation
    params: Params
    column: str = ""
    shape: str | None = None
    digest: bool = False
    query: Mapping[str, Any] | None = None
    known: bool = True

    @classmethod
    def of(cls, operation: Operation, params: Params) -> Route:
        """Read the operation's row for these parameters."""
        if (
            "payment-product" in params
            and (params["payment-service"], params["payment-product"]) not in products.table()
        ):
            return cls(operation, params, known=False)
        column = operation.column if isinstance(operation.column, str) else operation.column(params)
        shape = operation.body if operation.body is None or isinstance(operation.body, str) else operation.body(params)
        # where SPEC 2.1 marks Digest, and on what writes sandbox data (CONTRACT 3.1)
        digest = MATRIX["Digest"][column] == "R" or operation.path.startswith("/v1/sandbox/")
        return cls(operation, params, column, shape, shape is not None and digest, _defaults(operation))


def _defaults(operation: Operation) -> Mapping[str, Any] | None:
    try:
        return queries.parse(operation.query, "")
    except BankError:
        return None
