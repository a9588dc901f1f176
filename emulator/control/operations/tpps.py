"""`tpps` and `certificate`: who may sign, and what the bank signs with (CONTRACT 9.7, 13)."""

from __future__ import annotations

from typing import Any

from emulator.api.certificates import identity
from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.errors import BankError
from emulator.ca import FLAWS, Credentials, IssueRefused, TppExists, TppNameRefused
from emulator.control.operation import LIMIT, TEXT, ControlCall, ControlOperation, object_of

ROLES = ("PISP", "AISP")


def _shown(credentials: Credentials) -> dict[str, Any]:
    tpp = identity(credentials.certificate)
    return {
        "tppId": tpp.id,
        "name": credentials.name,
        "roles": [role for role in ROLES if role in tpp.roles],
        "organizationIdentifier": tpp.id,
        "certificate": credentials.certificate_pem,
    }


def _list(call: ControlCall) -> Response:
    return json_response(
        200, {"tpps": [_shown(credentials) for credentials in call.authority.tpps()[: call.query["limit"]]]}
    )


def _issue(call: ControlCall) -> Response:
    known = ("name", "subject", "roles", "organizationIdentifier", "flaw", "replace")
    members = call.body.members(known, required=("name",))
    name = members["name"].text(longest=63) if "name" in members else None
    subject = members["subject"].text(longest=63) if "subject" in members else None
    roles: tuple[str, ...] = ROLES
    if "roles" in members:
        chosen = [item.one_of(ROLES, "role") for item in members["roles"].items(least=1)]
        roles = tuple(dict.fromkeys(role for role in chosen if role is not None))
    identifier = members["organizationIdentifier"].text(longest=256) if "organizationIdentifier" in members else None
    flaw = members["flaw"].one_of(FLAWS, "flaw") if "flaw" in members else None
    replace = bool(members["replace"].boolean()) if "replace" in members else False
    call.refuse_mistakes()
    try:
        issued = call.authority.issue(
            name or "",
            subject=subject,
            roles=roles,
            organization_identifier=identifier,
            flaw=flaw,
            replace=replace,
        )
    except TppExists:
        raise BankError("CONFLICT", f"There is a TPP {name} already; replace: true issues it anew.", "name") from None
    except IssueRefused as refused:
        at_fault = refused.member if isinstance(refused, TppNameRefused) else "organizationIdentifier"
        raise BankError("FORMAT_ERROR", str(refused), at_fault) from None
    call.tell_all("tpps", issued.name, "issued")
    ca = call.authority.certificate_pem
    return json_response(201, {**_shown(issued), "key": issued.key_pem.decode(), "caCertificate": ca})


def _certificate(call: ControlCall) -> Response:
    return json_response(200, {"certificate": call.authority.answer_credentials().certificate_pem})


OPERATIONS = (
    ControlOperation(
        id="listTpps",
        method="GET",
        path="/tpps",
        summary="The TPPs that the sandbox CA has issued certificates to, newest first.",
        handler=_list,
        answers={200: "The TPPs, without their keys."},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="issueTpp",
        method="POST",
        path="/tpps",
        summary="A new TPP with its certificate and key, wrong on purpose where a flaw is named.",
        handler=_issue,
        answers={201: "Certificate, key and CA certificate in PEM; the key only here.", 409: "The name is taken."},
        body=object_of(
            ("name",),
            name=TEXT,
            subject={**TEXT, "description": "What the certificate calls it; left out: name."},
            roles={"type": "array", "items": {"enum": list(ROLES)}, "minItems": 1},
            organizationIdentifier=TEXT,
            flaw={"enum": list(FLAWS)},
            replace={"type": "boolean", "description": "Issue a name anew that is taken."},
        ),
        example={"name": "acme", "roles": ["PISP", "AISP"]},
    ),
    ControlOperation(
        id="getBankCertificate",
        method="GET",
        path="/certificate",
        summary="The certificate that answers are signed with when sign_responses is on.",
        handler=_certificate,
        answers={200: "The certificate in PEM."},
    ),
)
