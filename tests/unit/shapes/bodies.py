"""Bodies that are right, and changing one member of them."""

from __future__ import annotations

import json
from typing import Any

from emulator.api.json_body import validate
from emulator.bank.errors import BankError

DROPPED = object()

_AMOUNT = {"amount": "100.00", "currency": "NOK"}
_ADDRESS = {"street": "Storgata", "buildingNumber": "1B", "postalCode": "0155", "city": "Oslo", "country": "NO"}
_DOMESTIC = {
    "instructedAmount": _AMOUNT,
    "creditorName": "Prøvebakeriet AS",
    "creditorAccount": {"bban": "9991 10.00012", "currency": "NOK"},
}
_DEBTOR = {"bban": "99901000014", "currency": "NOK"}

INSTANT = {
    **_DOMESTIC,
    "creditorAddress": _ADDRESS,
    "debtorAccount": _DEBTOR,
    "ultimateDebtor": "Kari Kladd",
    "purposeCode": "OTHR",
    "remittanceInformationUnstructured": "Takk for sist",
}
DOMESTIC = {
    **_DOMESTIC,
    "debtorAccount": _DEBTOR,
    "endToEndIdentification": "E2E-1",
    "requestedExecutionDate": "2026-03-02",
    "remittanceInformationStructuredArray": [{"reference": "2345676", "referenceType": "SCOR", "referenceIssuer": "X"}],
}
PERIODIC = {
    **_DOMESTIC,
    "debtorAccount": _DEBTOR,
    "startDate": "2026-03-02",
    "endDate": "2027-03-02",
    "frequency": "MonthlyVariable",
    "executionRule": "preceeding",
    "dayOfExecution": "31",
    "monthsOfExecution": ["1", "12"],
}
BULK = {
    "payments": [{**_DOMESTIC, "endToEndIdentification": "E2E-1"}, _DOMESTIC],
    "debtorAccount": _DEBTOR,
    "requestedExecutionDate": "2026-03-02",
    "batchBookingPreferred": True,
    "paymentInformationId": "PMT-1",
}
SEPA = {
    "endToEndIdentification": "E2E-1",
    "instructedAmount": {"amount": "100.00", "currency": "EUR"},
    "creditorName": "Muster Verlag GmbH",
    "creditorAccount": {"iban": "DE19 9999 9999 0000 1234 56", "currency": "EUR"},
    "creditorAddress": _ADDRESS,
    "debtorAccount": {"iban": "NO8599901000014", "currency": "NOK"},
    "remittanceInformationUnstructured": "Rechnung 1",
    "requestedExecutionDate": "2026-03-02",
}
CROSS_BORDER = {
    **SEPA,
    "creditorAccount": {"bban": "0012345678", "currency": "USD"},
    "instructedAmount": {"amount": "100.00", "currency": "USD"},
    "creditorAgent": "MUSTUS33XXX",
}
PAYMENTS = {
    "InstantTransfer": INSTANT,
    "DomesticTransfer": DOMESTIC,
    "PeriodicTransfer": PERIODIC,
    "BulkTransfer": BULK,
    "SepaTransfer": SEPA,
    "CrossBorderTransfer": CROSS_BORDER,
}


def changed(body: Any, path: str, value: Any) -> Any:
    """A copy of the body with the member at `path` (dots, numbers for items) set to `value`, or DROPPED."""
    copy = json.loads(json.dumps(body))
    holder = copy
    *outer, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in outer:
        holder = holder[step]
    if value is DROPPED:
        del holder[last]
    else:
        holder[last] = value
    return copy


def payment(name: str, body: Any) -> Any:
    """The body as the shape of a payment product lets it through."""
    return validate(f"emulator.api.shapes.payments:{name}", body)[0]


def mistakes(shape: str, body: Any) -> list[tuple[str | None, str]]:
    """Paths and sentences of everything that is wrong with a body; `shape` is `module:Name` below shapes."""
    try:
        validate(f"emulator.api.shapes.{shape}", body)
    except BankError as error:
        messages = error.messages
    else:
        return []
    assert {(message.code, message.category) for message in messages} == {("FORMAT_ERROR", "ERROR")}
    return [(message.path, message.text) for message in messages]


def wrong(name: str, body: Any) -> list[str | None]:
    """The paths of the mistakes in the body of a payment."""
    return [path for path, _ in mistakes(f"payments:{name}", body)]
