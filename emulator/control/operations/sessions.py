"""`sessions`: create a session and a consent without an SCA, for tests (CONTRACT 9.3)."""

from __future__ import annotations

from typing import NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from emulator.api.certificates import identity
from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.customers import sessions
from emulator.bank.validation import Text200, Text512
from emulator.control.answers import closed
from emulator.control.forms import Who
from emulator.control.operation import AnswerSpec, ControlCall, ControlOperation


class Seed(Who):
    """The customer and the TPP of the session."""

    tpp: Text512 = Field(description="tppId, or the name of an issued TPP.")
    national_id: Text200


@closed
class Session(TypedDict):
    """A session with its consent."""

    psuId: str
    tppSessionId: str
    psuCorporateId: NotRequired[str]
    context: str


def _seed(call: ControlCall[Seed]) -> Response:
    who = call.body
    credentials = call.authority.find(who.tpp)
    tpp = identity(credentials.certificate) if credentials is not None else None
    with call.bank.documents.transaction():
        seeded = sessions.seed(
            call.bank,
            tpp_id=tpp.id if tpp is not None else who.tpp,  # a tppId too, of a TPP with its own certificate
            tpp_name=tpp.name if tpp is not None else None,
            national_id=who.national_id,
            context=who.context,
            agreement=who.agreement,
            accounts=who.accounts,
        )
    corporate = "psuCorporateId" in seeded
    return json_response(200, {**seeded, "context": "CORPORATE" if corporate else "PRIVATE"})


OPERATIONS = (
    ControlOperation(
        id="seedSession",
        method="POST",
        path="/sessions",
        summary="Create a session and a consent without an SCA; accounts omitted: all accounts.",
        handler=_seed,
        answers={200: AnswerSpec("The session.", Session)},
        body=Seed,
        required=True,
        example={"tpp": "demo", "nationalId": "14888520059"},
    ),
)
