"""Contact information of a TPP: a TPP reads and writes only its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.api.operation import Call, Reply, operation
from emulator.bank.documents import Contact
from emulator.bank.errors import BankError
from emulator.bank.kinds import CONTACT

if TYPE_CHECKING:
    from emulator.api.shapes import sandbox_answers

_PATH = "/v1/tpps/{tppId}/contact-information"
_SHAPE = "emulator.api.shapes.sandbox:ContactInformation"
_ANSWER = "emulator.api.shapes.sandbox_answers:StoredContact"


def _own_id(call: Call) -> str:
    if call.params["tppId"] != call.tpp.id:
        raise BankError("RESOURCE_UNKNOWN", f"The TPP of this request does not have the id {call.params['tppId']}.")
    return call.tpp.id


@operation(
    "GET",
    _PATH,
    {200: _ANSWER},
    column="sandbox",
    tag="Contact information",
)
def get_contact_information(call: Call) -> Reply[sandbox_answers.StoredContact]:
    """The TPP's contact address.

    The registered address, `{email}`; RESOURCE_UNKNOWN if there is none.
    """
    contact = call.bank.documents.get(CONTACT, _own_id(call))
    if contact is None:
        raise BankError("RESOURCE_UNKNOWN", "No contact information has been registered.")
    return Reply(200, {"email": contact["email"]})


@operation(
    "PUT",
    _PATH,
    {200: _ANSWER},
    column="sandbox",
    body=_SHAPE,
    tag="Contact information",
)
def put_contact_information(call: Call) -> Reply[sandbox_answers.StoredContact]:
    """Register the TPP's contact address.

    Register or replace the address, `{email}`.
    """
    contact = Contact(id=_own_id(call), email=call.body["email"])
    call.bank.documents.put(CONTACT, contact)
    return Reply(200, {"email": contact["email"]})
