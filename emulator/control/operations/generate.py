"""`generate`: add generated customers, accounts and transactions (CONTRACT 9.3)."""

from __future__ import annotations

from typing_extensions import TypedDict

from emulator.api.messages import Steps
from emulator.api.render import json_response
from emulator.bank.errors import BankError, counted
from emulator.bank.kinds import CUSTOMER
from emulator.bank.sandbox import patterns
from emulator.bank.sandbox.generate import DataPlan, generate_in_pieces
from emulator.bank.threads import in_thread
from emulator.control.answers import closed
from emulator.control.operation import AnswerSpec, ControlCall, ControlOperation
from emulator.store import StoreUnwritable


@closed
class Counts(TypedDict):
    """How many customers, accounts and transactions were generated."""

    customers: int
    accounts: int
    transactions: int


@closed
class GeneratedCustomer(TypedDict):
    """A generated customer; `nationalId` is that of the person who acts for it."""

    customerId: str
    customerNumber: str
    customerType: str
    customerName: str
    nationalId: str
    accounts: list[str]


@closed
class Generated(TypedDict):
    """The generated customers, and counts."""

    counts: Counts
    customers: list[GeneratedCustomer]


def _generate(call: ControlCall[DataPlan]) -> Steps:
    yield from in_thread(patterns.norwegian_names)
    documents = call.bank.documents
    before = documents.count(CUSTOMER)
    try:
        generated = yield from generate_in_pieces(call.bank, call.body)
    except StoreUnwritable as error:
        stored = documents.count(CUSTOMER) - before
        if stored <= 0:
            raise
        call.publish("customers", "generated")
        text = f"The bank cannot store more at the moment; generated and stored before: {counted(stored, 'customer')}."
        raise BankError("SYSTEM_ERROR", text, status=503) from error
    call.publish("customers", "generated")
    return json_response(200, generated)


OPERATIONS = (
    ControlOperation(
        id="generate",
        method="POST",
        path="/generate",
        summary="Add generated customers with accounts and transactions; a seed makes them repeat.",
        handler=_generate,
        answers={
            200: AnswerSpec("Counts, and the customers with their IBANs and the persons who act for them.", Generated)
        },
        body=DataPlan,
        example={"customers": 10, "accountsPerCustomer": 2, "transactionsPerAccount": 100, "days": 90, "seed": 7},
    ),
)
