"""Sandbox data: initialize, and customers (sandbox-data.md)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from emulator.api.operation import Call, Reply, operation
from emulator.api.operations.sandbox_accounts import account_shown
from emulator.api.operations.sandbox_agreements import agreement_shown
from emulator.api.query import QueryParameter
from emulator.bank import fixtures
from emulator.bank.accounts import accounts
from emulator.bank.customers import people
from emulator.bank.documents import Customer
from emulator.bank.kinds import AGREEMENT, CUSTOMER
from emulator.bank.sandbox import customers as sandbox_customers
from emulator.bank.sandbox import data as sandbox

if TYPE_CHECKING:
    from emulator.api.shapes import sandbox_answers

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"

INCLUDED = (
    QueryParameter("includeAccounts", "boolean", "Whether to include the customer's accounts", default=False),
    QueryParameter("includeAgreements", "boolean", "Whether to include the customer's own agreements", default=False),
)
_ALL = "/v1/sandbox/customers"
_ONE = "/v1/sandbox/customers/{customerId}"
_operation = partial(operation, column="sandbox", tag="Sandbox")


def customer_shown(call: Call, customer: Customer) -> sandbox_answers.SandboxCustomer:
    """The customer in answers, with its members in the order that clients of hosted sandboxes know."""
    links = {"self": call.link(f"/v1/sandbox/customers/{customer['id']}", "GET", "PUT", "DELETE")}
    shown: sandbox_answers.SandboxCustomer = {
        "customerId": customer["id"],
        "customerNumber": customer["customerNumber"],
        "customerType": customer["type"],
        "customerName": customer["name"],
        "_links": links,
    }
    documents = call.bank.documents
    if call.query.get("includeAccounts"):
        own = accounts.newest_first(people.accounts_owned(call.bank, customer["id"]))
        shown["accounts"] = [account_shown(call, account) for account in own]
    if call.query.get("includeAgreements"):
        owned = accounts.newest_first(documents.find(AGREEMENT, owner=customer["id"]))
        shown["agreements"] = [agreement_shown(call, agreement) for agreement in owned]
    return shown


@_operation("POST", "/v1/sandbox/initialize", {200: f"{_ANSWERS}:SandboxCustomers"})
def initialize_sandbox(call: Call) -> Reply[sandbox_answers.SandboxCustomers]:
    """Restore the known state.

    Returns `{customers}`.
    """
    prepared, call.request.prepared = call.request.prepared, None
    fixtures.initialize(call.bank, prepared)
    return Reply(200, {"customers": [customer_shown(call, c) for c in sandbox.list_documents(call.bank, CUSTOMER)]})


@_operation(
    "POST",
    _ALL,
    {201: f"{_ANSWERS}:SandboxCustomer"},
    gives=("customerId", "customerId"),
    body=f"{_BODY}:PostedCustomer",
)
def create_sandbox_customer(call: Call) -> Reply[sandbox_answers.SandboxCustomer]:
    """Create a customer."""
    return Reply(201, customer_shown(call, sandbox_customers.create_customer(call.bank, call.body)))


@_operation("GET", _ALL, {200: f"{_ANSWERS}:SandboxCustomerList"}, query=INCLUDED)
def list_sandbox_customers(call: Call) -> Reply[sandbox_answers.SandboxCustomerList]:
    """All customers."""
    return Reply(200, [customer_shown(call, c) for c in sandbox.list_documents(call.bank, CUSTOMER)])


@_operation("GET", _ONE, {200: f"{_ANSWERS}:SandboxCustomer"}, query=INCLUDED)
def get_sandbox_customer(call: Call) -> Reply[sandbox_answers.SandboxCustomer]:
    """One customer."""
    return Reply(200, customer_shown(call, sandbox.find_customer(call.bank, call.params["customerId"])))


@_operation("PUT", _ONE, {200: f"{_ANSWERS}:SandboxCustomer"}, body=f"{_BODY}:PostedCustomer")
def update_sandbox_customer(call: Call) -> Reply[sandbox_answers.SandboxCustomer]:
    """Replace a customer."""
    replaced = sandbox_customers.replace_customer(call.bank, call.params["customerId"], call.body)
    return Reply(200, customer_shown(call, replaced))


@_operation("DELETE", _ONE, {204: None})
def delete_sandbox_customer(call: Call) -> Reply[None]:
    """Remove a customer and everything that depends on it."""
    return Reply.after(sandbox_customers.deleting_customer(call.bank, call.params["customerId"]))
