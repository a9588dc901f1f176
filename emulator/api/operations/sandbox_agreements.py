"""Sandbox data: agreements and engagements (CONTRACT 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.operation import Call, Operation, Reply
from emulator.bank.documents import Agreement, Engagement
from emulator.bank.kinds import AGREEMENT
from emulator.bank.sandbox import agreements as sandbox_agreements
from emulator.bank.sandbox import data as sandbox

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"


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


def create(call: Call) -> Reply:
    """A new agreement."""
    return Reply(201, agreement_shown(call, sandbox_agreements.create_agreement(call.bank, call.body)))


def list_all(call: Call) -> Reply:
    """All agreements."""
    listed = sandbox.list_documents(call.bank, AGREEMENT)
    return Reply(200, [agreement_shown(call, agreement) for agreement in listed])


def get(call: Call) -> Reply:
    """One agreement."""
    return Reply(200, agreement_shown(call, sandbox_agreements.find_agreement(call.bank, _agreement_id(call))))


def delete(call: Call) -> Reply:
    """Remove an agreement, and the consents and sessions under it."""
    sandbox_agreements.delete_agreement(call.bank, _agreement_id(call))
    return Reply(204)


def _agreement_id(call: Call) -> str:
    return call.params["agreementId"]


def create_engagement(call: Call) -> Reply:
    """A further engagement of an agreement."""
    engagement = sandbox_agreements.add_engagement(call.bank, _agreement_id(call), call.body)
    return Reply(201, _engagement_shown(call, _agreement_id(call), engagement))


def list_engagements(call: Call) -> Reply:
    """The engagements of an agreement."""
    agreement = sandbox_agreements.find_agreement(call.bank, _agreement_id(call))
    listed = sandbox_agreements.engagements(call.bank, agreement)
    return Reply(200, [_engagement_shown(call, agreement["id"], engagement) for engagement in listed])


def get_engagement(call: Call) -> Reply:
    """One engagement."""
    engagement = sandbox_agreements.find_engagement(call.bank, _agreement_id(call), call.params["engagementId"])
    return Reply(200, _engagement_shown(call, _agreement_id(call), engagement))


def delete_engagement(call: Call) -> Reply:
    """Remove an engagement."""
    sandbox_agreements.delete_engagement(call.bank, _agreement_id(call), call.params["engagementId"])
    return Reply(204)


_ALL = "/v1/sandbox/agreements"
_ONE = "/v1/sandbox/agreements/{agreementId}"

_row = partial(Operation, column="sandbox", tag="Sandbox")

OPERATIONS = (
    _row(
        id="createSandboxAgreement",
        gives=("agreementId", "agreementId"),
        method="POST",
        path=_ALL,
        summary="Create an agreement",
        handler=create,
        answers={201: f"{_ANSWERS}:SandboxAgreement"},
        body=f"{_BODY}:PostedAgreement",
    ),
    _row(
        id="listSandboxAgreements",
        method="GET",
        path=_ALL,
        summary="All agreements",
        handler=list_all,
        answers={200: f"{_ANSWERS}:SandboxAgreementList"},
    ),
    _row(
        id="getSandboxAgreement",
        method="GET",
        path=_ONE,
        summary="One agreement",
        handler=get,
        answers={200: f"{_ANSWERS}:SandboxAgreement"},
    ),
    _row(
        id="deleteSandboxAgreement",
        method="DELETE",
        path=_ONE,
        summary="Remove an agreement",
        handler=delete,
        answers={204: None},
    ),
    _row(
        id="createSandboxEngagement",
        gives=("engagementId", "engagementId"),
        method="POST",
        path=f"{_ONE}/engagements",
        summary="Add an engagement to an agreement",
        handler=create_engagement,
        answers={201: f"{_ANSWERS}:SandboxEngagement"},
        body=f"{_BODY}:PostedEngagement",
    ),
    _row(
        id="listSandboxEngagements",
        method="GET",
        path=f"{_ONE}/engagements",
        summary="The engagements of an agreement",
        handler=list_engagements,
        answers={200: f"{_ANSWERS}:SandboxEngagementList"},
    ),
    _row(
        id="getSandboxEngagement",
        method="GET",
        path=f"{_ONE}/engagements/{{engagementId}}",
        summary="One engagement",
        handler=get_engagement,
        answers={200: f"{_ANSWERS}:SandboxEngagement"},
    ),
    _row(
        id="deleteSandboxEngagement",
        method="DELETE",
        path=f"{_ONE}/engagements/{{engagementId}}",
        summary="Remove an engagement",
        handler=delete_engagement,
        answers={204: None},
    ),
)
