"""`sessions`: a customer who has been through SCA already, for seeding tests (CONTRACT 9.3)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.customers import sessions
from emulator.control.choices import WHO, WHO_SCHEMA, chosen_person
from emulator.control.operation import TEXT, ControlCall, ControlOperation, object_of
from emulator.control.tpp_names import tpp_id


def _seed(call: ControlCall) -> Response:
    members = call.body.members(("tpp", *WHO), required=("tpp", "nationalId"))
    tpp = members["tpp"].text(longest=512) if "tpp" in members else None
    who = chosen_person(members)
    call.refuse_mistakes()
    with call.bank.documents.transaction():
        seeded = sessions.seed(
            call.bank,
            tpp_id=tpp_id(call.authority, tpp or ""),
            national_id=who.national_id or "",
            context=who.context,
            agreement=who.agreement,
            accounts=who.accounts,
        )
    corporate = "psuCorporateId" in seeded
    return json_response(200, {**seeded, "context": "CORPORATE" if corporate else "PRIVATE"})


_TPP = {**TEXT, "description": "tppId, or the name of an issued TPP."}

OPERATIONS = (
    ControlOperation(
        id="seedSession",
        method="POST",
        path="/sessions",
        summary="A session and a consent without the pages; accounts left out: all.",
        handler=_seed,
        answers={200: "psuId, tppSessionId, context, and psuCorporateId under an agreement."},
        body=object_of(("tpp", "nationalId"), tpp=_TPP, **WHO_SCHEMA),
        example={"tpp": "demo", "nationalId": "14888520059"},
    ),
)
