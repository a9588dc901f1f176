"""Contact information of a TPP: each reads and writes its own only (SPEC 1, CONTRACT 8)."""

from __future__ import annotations

from emulator.api.operation import Call, Operation, Reply
from emulator.bank.customers import contacts
from emulator.bank.errors import BankError


def _own_id(call: Call) -> str:
    if call.params["tppId"] != call.tpp.id:
        raise BankError("RESOURCE_UNKNOWN", f"There is no TPP {call.params['tppId']} that you are.")
    return call.tpp.id


def get_contact_information(call: Call) -> Reply:
    """`{email}`."""
    return Reply(200, {"email": contacts.find(call.bank, _own_id(call))})


def put_contact_information(call: Call) -> Reply:
    """`{email}` registered or replaced."""
    return Reply(200, {"email": contacts.register(call.bank, _own_id(call), call.body["email"])})


_PATH = "/v1/tpps/{tppId}/contact-information"
_SHAPE = "emulator.api.shapes.sandbox:ContactInformation"

OPERATIONS = (
    Operation(
        id="getContactInformation",
        method="GET",
        path=_PATH,
        spec="1",
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
        spec="1",
        summary="Register the TPP's contact address",
        handler=put_contact_information,
        column="sandbox",
        answers={200: _SHAPE},
        body=_SHAPE,
        tag="Contact information",
    ),
)
