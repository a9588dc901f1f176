"""Sandbox data: agreements and engagements (CONTRACT 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.operation import Call, Reply, operation
from emulator.bank.documents import Agreement, Engagement
from emulator.bank.kinds import AGREEMENT
from emulator.bank.sandbox import agreements as sandbox_agreements
from emulator.bank.sandbox import data as sandbox

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"

_ALL = "/v1/sandbox/agreements"
_ONE = "/v1/sandbox/agreements/{agreementId}"
_operation = partial(operation, column="sandbox", tag="Sandbox")


def agreement_shown(call: Call, agreement: Agreement) -> dict[str, Any]:
    """The agreement in answers."""
    path = f"/v1/sandbox/agreements/{agreement['id']}"
    shown = sandbox_agreements.agreement_view(call.bank, agreement)
    engagements = sandbox_agreements.engagements(call.bank, agreement)
    shown["engagements"] = [_engagement_shown(call, agreement["id"], engagement) for engagement in engagements]
    shown["_links"] = {
        "self": call.link(path, "GET", "DELETE"),
        "engagements": call.link(f"{path}/engagements", "GET", "POST"),
    }
    return shown


def _engagement_shown(call: Call, agreement_id: str, engagement: Engagement) -> dict[str, Any]:
    path = f"/v1/sandbox/agreements/{agreement_id}/engagements/{engagement['id']}"
    verbs = ("GET",) if engagement.get("joined") else ("GET", "DELETE")
    shown = sandbox_agreements.engagement_view(call.bank, engagement)
    return {**shown, "_links": {"self": call.link(path, *verbs)}}


@_operation(
    "POST",
    _ALL,
    {201: f"{_ANSWERS}:SandboxAgreement"},
    gives=("agreementId", "agreementId"),
    body=f"{_BODY}:PostedAgreement",
)
def create_sandbox_agreement(call: Call) -> Reply:
    """Create an agreement."""
    return Reply(201, agreement_shown(call, sandbox_agreements.create_agreement(call.bank, call.body)))


@_operation("GET", _ALL, {200: f"{_ANSWERS}:SandboxAgreementList"})
def list_sandbox_agreements(call: Call) -> Reply:
    """All agreements."""
    listed = sandbox.list_documents(call.bank, AGREEMENT)
    return Reply(200, [agreement_shown(call, agreement) for agreement in listed])


@_operation("GET", _ONE, {200: f"{_ANSWERS}:SandboxAgreement"})
def get_sandbox_agreement(call: Call) -> Reply:
    """One agreement."""
    return Reply(200, agreement_shown(call, sandbox_agreements.find_agreement(call.bank, _agreement_id(call))))


@_operation("DELETE", _ONE, {204: None})
def delete_sandbox_agreement(call: Call) -> Reply:
    """Remove an agreement.

    The consents and sessions under it are removed too.
    """
    sandbox_agreements.delete_agreement(call.bank, _agreement_id(call))
    return Reply(204)


def _agreement_id(call: Call) -> str:
    return call.params["agreementId"]


@_operation(
    "POST",
    f"{_ONE}/engagements",
    {201: f"{_ANSWERS}:SandboxEngagement"},
    gives=("engagementId", "engagementId"),
    body=f"{_BODY}:PostedEngagement",
)
def create_sandbox_engagement(call: Call) -> Reply:
    """Add an engagement to an agreement."""
    engagement = sandbox_agreements.add_engagement(call.bank, _agreement_id(call), call.body)
    return Reply(201, _engagement_shown(call, _agreement_id(call), engagement))


@_operation("GET", f"{_ONE}/engagements", {200: f"{_ANSWERS}:SandboxEngagementList"})
def list_sandbox_engagements(call: Call) -> Reply:
    """The engagements of an agreement."""
    agreement = sandbox_agreements.find_agreement(call.bank, _agreement_id(call))
    listed = sandbox_agreements.engagements(call.bank, agreement)
    return Reply(200, [_engagement_shown(call, agreement["id"], engagement) for engagement in listed])


@_operation("GET", f"{_ONE}/engagements/{{engagementId}}", {200: f"{_ANSWERS}:SandboxEngagement"})
def get_sandbox_engagement(call: Call) -> Reply:
    """One engagement."""
    engagement = sandbox_agreements.find_engagement(call.bank, _agreement_id(call), call.params["engagementId"])
    return Reply(200, _engagement_shown(call, _agreement_id(call), engagement))


@_operation("DELETE", f"{_ONE}/engagements/{{engagementId}}", {204: None})
def delete_sandbox_engagement(call: Call) -> Reply:
    """Remove an engagement."""
    sandbox_agreements.delete_engagement(call.bank, _agreement_id(call), call.params["engagementId"])
    return Reply(204)
