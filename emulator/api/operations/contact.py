"""Contact information of a TPP: a TPP reads and writes only its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from emulator.api.headers import SANDBOX
from emulator.api.operation import Call, Reply, operation
from emulator.bank.documents import Contact
from emulator.bank.errors import BankError
from emulator.bank.kinds import CONTACT

if TYPE_CHECKING:
    from emulator.api.shapes import sandbox

_PATH = "/v1/tpps/{tppId}/contact-information"
_operation = partial(
    operation, column=SANDBOX, acts=False, tag="Contact information", manual="sandbox-data#contact-information"
)


def _own_id(call: Call) -> str:
    if call.params["tppId"] != call.tpp.id:
        raise BankError("RESOURCE_UNKNOWN", f"The TPP of this request does not have the id {call.params['tppId']}.")
    return call.tpp.id


@_operation("GET", _PATH)
def get_contact_information(call: Call) -> Reply[sandbox.StoredContact]:
    """The TPP's contact address.

    The registered address, `{email}`; RESOURCE_UNKNOWN if there is none.
    """
    contact = call.bank.documents.get(CONTACT, _own_id(call))
    if contact is None:
        raise BankError("RESOURCE_UNKNOWN", "No contact information has been registered.")
    return Reply(200, {"email": contact["email"]})


@_operation("PUT", _PATH, body="emulator.api.shapes.sandbox:ContactInformation")
def put_contact_information(call: Call) -> Reply[sandbox.StoredContact]:
    """Register the TPP's contact address.

    Register or replace the address, `{email}`.
    """
    contact = Contact(id=_own_id(call), email=call.body["email"])
    call.bank.documents.put(CONTACT, contact)
    return Reply(200, {"email": contact["email"]})
