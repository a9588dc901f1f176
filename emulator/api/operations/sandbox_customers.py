"""Sandbox data: initialize, and customers (CONTRACT 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.operation import Call, Operation, Reply
from emulator.api.operations.sandbox_accounts import account_shown
from emulator.api.operations.sandbox_agreements import agreement_shown
from emulator.api.query import QueryParameter
from emulator.bank import fixtures
from emulator.bank.accounts import accounts
from emulator.bank.documents import Customer
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CUSTOMER
from emulator.bank.sandbox import customers as sandbox_customers
from emulator.bank.sandbox import data as sandbox

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"


def customer_shown(call: Call, customer: Customer) -> dict[str, Any]:
    """The customer in answers, with its members in this order (CONTRACT 8)."""
    links = {"self": call.link(f"/v1/sandbox/customers/{customer['id']}", "GET", "PUT", "DELETE")}
    shown: dict[str, Any] = {
        "customerId": customer["id"],
        "customerNumber": customer["customerNumber"],
        "customerType": customer["type"],
        "customerName": customer["name"],
        "_links": links,
    }
    documents = call.bank.documents
    if call.query.get("includeAccounts"):
        own = accounts.newest_first(documents.find(ACCOUNT, customerId=customer["id"]))
        shown["accounts"] = [account_shown(call, account) for account in own]
    if call.query.get("includeAgreements"):
        owned = accounts.newest_first(documents.find(AGREEMENT, owner=customer["id"]))
        shown["agreements"] = [agreement_shown(call, agreement) for agreement in owned]
    return shown


def initialize(call: Call) -> Reply:
    """Restore the known state; returns `{customers}`."""
    prepared, call.request.prepared = call.request.prepared, None
    fixtures.initialize(call.bank, prepared)
    return Reply(200, {"customers": [customer_shown(call, c) for c in sandbox.list_documents(call.bank, CUSTOMER)]})


def create(call: Call) -> Reply:
    """Create a customer."""
    return Reply(201, customer_shown(call, sandbox_customers.create_customer(call.bank, call.body)))


def list_all(call: Call) -> Reply:
    """All customers."""
    return Reply(200, [customer_shown(call, c) for c in sandbox.list_documents(call.bank, CUSTOMER)])


def get(call: Call) -> Reply:
    """One customer."""
    return Reply(200, customer_shown(call, sandbox.find_customer(call.bank, call.params["customerId"])))


def update(call: Call) -> Reply:
    """Replace a customer."""
    replaced = sandbox_customers.replace_customer(call.bank, call.params["customerId"], call.body)
    return Reply(200, customer_shown(call, replaced))


def delete(call: Call) -> Reply:
    """Remove a customer and everything that depends on it."""
    return Reply.after(sandbox_customers.deleting_customer(call.bank, call.params["customerId"]))


INCLUDED = (
    QueryParameter("includeAccounts", "boolean", "Whether to include the customer's accounts", default=False),
    QueryParameter("includeAgreements", "boolean", "Whether to include the customer's own agreements", default=False),
)

_ALL = "/v1/sandbox/customers"
_ONE = "/v1/sandbox/customers/{customerId}"

_row = partial(Operation, column="sandbox", tag="Sandbox")

OPERATIONS = (
    _row(
        id="initializeSandbox",
        method="POST",
        path="/v1/sandbox/initialize",
        summary="Restore the known state",
        handler=initialize,
        answers={200: f"{_ANSWERS}:SandboxCustomers"},
    ),
    _row(
        id="createSandboxCustomer",
        gives=("customerId", "customerId"),
        method="POST",
        path=_ALL,
        summary="Create a customer",
        handler=create,
        answers={201: f"{_ANSWERS}:SandboxCustomer"},
        body=f"{_BODY}:PostedCustomer",
    ),
    _row(
        id="listSandboxCustomers",
        method="GET",
        path=_ALL,
        summary="All customers",
        handler=list_all,
        answers={200: f"{_ANSWERS}:SandboxCustomerList"},
        query=INCLUDED,
    ),
    _row(
        id="getSandboxCustomer",
        method="GET",
        path=_ONE,
        summary="One customer",
        handler=get,
        answers={200: f"{_ANSWERS}:SandboxCustomer"},
        query=INCLUDED,
    ),
    _row(
        id="updateSandboxCustomer",
        method="PUT",
        path=_ONE,
        summary="Replace a customer",
        handler=update,
        answers={200: f"{_ANSWERS}:SandboxCustomer"},
        body=f"{_BODY}:PostedCustomer",
    ),
    _row(
        id="deleteSandboxCustomer",
        method="DELETE",
        path=_ONE,
        summary="Remove a customer and everything that depends on it",
        handler=delete,
        answers={204: None},
    ),
)
