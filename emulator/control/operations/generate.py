"""`generate`: made-up customers, accounts and transactions, as many as are asked for (CONTRACT 9.3)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.errors import BankError, counted
from emulator.bank.kinds import CUSTOMER
from emulator.bank.sandbox.generate_plan import SCHEMAS, plan_from
from emulator.control.operation import ControlCall, ControlOperation, object_of
from emulator.store import StoreUnwritable


def _generate(call: ControlCall) -> Response:
    # Most banks are never filled: what makes people up is imported when somebody asks for it.
    from emulator.bank.sandbox.generate import generate

    if not isinstance(call.body.value, dict):
        raise BankError("FORMAT_ERROR", "Expected a mapping.")
    documents = call.bank.documents
    before = documents.count(CUSTOMER)
    try:
        made = generate(call.bank, plan_from(call.body.value))
    except StoreUnwritable as error:
        stay = documents.count(CUSTOMER) - before
        if not stay:
            raise
        call.tell("customers", "generated")
        kept = counted(stay, "customer")
        text = f"The bank cannot write its state at the moment; made before that, and kept: {kept}."
        raise BankError("SYSTEM_ERROR", text, status=503) from error
    call.tell("customers", "generated")
    return json_response(200, made)


OPERATIONS = (
    ControlOperation(
        id="generate",
        method="POST",
        path="/generate",
        summary="Add made-up customers with accounts and transactions; a seed makes them repeat.",
        handler=_generate,
        answers={200: "counts, and the customers with their IBANs and who acts for them."},
        body=object_of(**SCHEMAS),
        example={"customers": 10, "accountsPerCustomer": 2, "transactionsPerAccount": 100, "days": 90, "seed": 7},
    ),
)
