"""Sandbox data: initialize, customers, their agreements and engagements (sandbox-data.md)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from emulator.api.operation import Call, Reply, operation
from emulator.api.operations.sandbox_accounts import account_shown
from emulator.api.query import QueryParameter
from emulator.bank import fixtures, sandbox
from emulator.bank.accounts import accounts
from emulator.bank.customers import people
from emulator.bank.documents import Agreement, Customer, Engagement
from emulator.bank.kinds import AGREEMENT, CUSTOMER
from emulator.bank.sandbox import agreements as sandbox_agreements
from emulator.bank.sandbox import customers as sandbox_customers

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
_AGREEMENTS = "/v1/sandbox/agreements"
_AGREEMENT = "/v1/sandbox/agreements/{agreementId}"
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


# Agreements


def agreement_shown(call: Call, agreement: Agreement) -> sandbox_answers.SandboxAgreement:
    """The agreement in answers; `owner` is a customerNumber."""
    path = f"/v1/sandbox/agreements/{agreement['id']}"
    shown: sandbox_answers.AgreementMembers = {
        "agreementId": agreement["id"],
        "owner": sandbox.number_of(call.bank, agreement["owner"]),
        "name": agreement["name"],
    }
    if agreement["signatures"] > 1:
        shown["signatures"] = agreement["signatures"]
    engagements = sandbox_agreements.engagements(call.bank, agreement)
    return {
        **shown,
        "engagements": [_engagement_shown(call, agreement["id"], engagement) for engagement in engagements],
        "_links": {
            "self": call.link(path, "GET", "DELETE"),
            "engagements": call.link(f"{path}/engagements", "GET", "POST"),
        },
    }


def _engagement_shown(call: Call, agreement_id: str, engagement: Engagement) -> sandbox_answers.SandboxEngagement:
    path = f"/v1/sandbox/agreements/{agreement_id}/engagements/{engagement['id']}"
    shown: sandbox_answers.EngagementMembers = {
        "engagementId": engagement["id"],
        "customer": sandbox.number_of(call.bank, engagement["customer"]),
        "account": {"iban": engagement["iban"]},
        "roles": engagement["roles"],
    }
    for name in sandbox_agreements.LIMITS:
        if name in engagement:
            shown[name] = engagement[name]
    own = call.link(path) if engagement.get("joined") else call.link(path, "GET", "DELETE")
    return {**shown, "_links": {"self": own}}


@_operation(
    "POST",
    _AGREEMENTS,
    {201: f"{_ANSWERS}:SandboxAgreement"},
    gives=("agreementId", "agreementId"),
    body=f"{_BODY}:PostedAgreement",
)
def create_sandbox_agreement(call: Call) -> Reply[sandbox_answers.SandboxAgreement]:
    """Create an agreement."""
    return Reply(201, agreement_shown(call, sandbox_agreements.create_agreement(call.bank, call.body)))


@_operation("GET", _AGREEMENTS, {200: f"{_ANSWERS}:SandboxAgreementList"})
def list_sandbox_agreements(call: Call) -> Reply[sandbox_answers.SandboxAgreementList]:
    """All agreements."""
    listed = sandbox.list_documents(call.bank, AGREEMENT)
    return Reply(200, [agreement_shown(call, agreement) for agreement in listed])


@_operation("GET", _AGREEMENT, {200: f"{_ANSWERS}:SandboxAgreement"})
def get_sandbox_agreement(call: Call) -> Reply[sandbox_answers.SandboxAgreement]:
    """One agreement."""
    return Reply(200, agreement_shown(call, sandbox_agreements.find_agreement(call.bank, _agreement_id(call))))


@_operation("DELETE", _AGREEMENT, {204: None})
def delete_sandbox_agreement(call: Call) -> Reply[None]:
    """Remove an agreement.

    The consents and sessions under it are removed too.
    """
    sandbox_agreements.delete_agreement(call.bank, _agreement_id(call))
    return Reply(204, None)


def _agreement_id(call: Call) -> str:
    return call.params["agreementId"]


@_operation(
    "POST",
    f"{_AGREEMENT}/engagements",
    {201: f"{_ANSWERS}:SandboxEngagement"},
    gives=("engagementId", "engagementId"),
    body=f"{_BODY}:PostedEngagement",
)
def create_sandbox_engagement(call: Call) -> Reply[sandbox_answers.SandboxEngagement]:
    """Add an engagement to an agreement."""
    engagement = sandbox_agreements.add_engagement(call.bank, _agreement_id(call), call.body)
    return Reply(201, _engagement_shown(call, _agreement_id(call), engagement))


@_operation("GET", f"{_AGREEMENT}/engagements", {200: f"{_ANSWERS}:SandboxEngagementList"})
def list_sandbox_engagements(call: Call) -> Reply[sandbox_answers.SandboxEngagementList]:
    """The engagements of an agreement."""
    agreement = sandbox_agreements.find_agreement(call.bank, _agreement_id(call))
    listed = sandbox_agreements.engagements(call.bank, agreement)
    return Reply(200, [_engagement_shown(call, agreement["id"], engagement) for engagement in listed])


@_operation("GET", f"{_AGREEMENT}/engagements/{{engagementId}}", {200: f"{_ANSWERS}:SandboxEngagement"})
def get_sandbox_engagement(call: Call) -> Reply[sandbox_answers.SandboxEngagement]:
    """One engagement."""
    engagement = sandbox_agreements.find_engagement(call.bank, _agreement_id(call), call.params["engagementId"])
    return Reply(200, _engagement_shown(call, _agreement_id(call), engagement))


@_operation("DELETE", f"{_AGREEMENT}/engagements/{{engagementId}}", {204: None})
def delete_sandbox_engagement(call: Call) -> Reply[None]:
    """Remove an engagement."""
    sandbox_agreements.delete_engagement(call.bank, _agreement_id(call), call.params["engagementId"])
    return Reply(204, None)
