"""Contact information of a TPP: a TPP reads and writes only its own (SPEC 1, CONTRACT 8)."""

from __future__ import annotations

from emulator.api.operation import Call, Operation, Reply
from emulator.bank.documents import Contact
from emulator.bank.errors import BankError
from emulator.bank.kinds import CONTACT


def _own_id(call: Call) -> str:
    if call.params["tppId"] != call.tpp.id:
        raise BankError("RESOURCE_UNKNOWN", f"The TPP of this request does not have the id {call.params['tppId']}.")
    return call.tpp.id


def get_contact_information(call: Call) -> Reply:
    """The registered address, `{email}`; RESOURCE_UNKNOWN if there is none."""
    contact = call.bank.documents.get(CONTACT, _own_id(call))
    if contact is None:
        raise BankError("RESOURCE_UNKNOWN", "No contact information has been registered.")
    return Reply(200, {"email": contact["email"]})


def put_contact_information(call: Call) -> Reply:
    """Register or replace the address, `{email}`."""
    contact = Contact(id=_own_id(call), email=call.body["email"])
    call.bank.documents.put(CONTACT, contact)
    return Reply(200, {"email": contact["email"]})


_PATH = "/v1/tpps/{tppId}/contact-information"
_SHAPE = "emulator.api.shapes.sandbox:ContactInformation"

OPERATIONS = (
    Operation(
        id="getContactInformation",
        method="GET",
        path=_PATH,
        summary="The TPP's contact address",
        handler=get_contact_information,
        column="sandbox",
        answers={200: _SHAPE},
        tag="Contact information",
    ),
    Operation(
        id="putContactInformation",
        method="PUT",
        path=_PATH,
        summary="Register the TPP's contact address",
        handler=put_contact_information,
        column="sandbox",
        answers={200: _SHAPE},
        body=_SHAPE,
        tag="Contact information",
    ),
)
