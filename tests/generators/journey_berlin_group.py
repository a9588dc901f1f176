"""Reads accounts, cards and a payment with the client of the Berlin Group's document: `journey_berlin_group.py PROXY`.

The client knows nothing of signatures and sessions: the proxy adds them. What the client made of each answer is held
against the answer as JSON. Prints what was read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import openapi_client as generated

ALWAYS = {"consent_id": "any"}  # the framework demands the header, this bank finds the consent by the customer
SINCE = datetime.now(UTC).date() - timedelta(days=365)
SEPA = {
    "instructedAmount": {"amount": "12.50", "currency": "EUR"},
    "creditorName": "Librairie Exemple",
    "creditorAccount": {"iban": "FR8199999000010123456789A00", "currency": "EUR"},
    "debtorAccount": {"iban": "NO8599901000014", "currency": "NOK"},
}


def is_part(read: Any, answer: Any) -> bool:
    """Whether everything that was read stands in the answer."""
    if isinstance(read, dict):
        return all(value is None or is_part(value, answer[name]) for name, value in read.items())
    if isinstance(read, list):
        return len(read) == len(answer) and all(map(is_part, read, answer))
    return bool(read == answer or read == str(answer).replace("+00:00", "Z"))


def read(operation: Callable[..., Any], *ids: str, **more: Any) -> Any:
    """The answer of an operation as the client understands it."""
    sent = operation(*ids, x_request_id=uuid4(), **more)
    answer = json.loads(sent.raw_data)
    understood = sent.data
    assert is_part(json.loads(understood.to_json()), answer), (understood, answer)
    return understood


def main(proxy: str) -> None:
    client = generated.ApiClient(generated.Configuration(host=proxy))
    ais, pis = generated.AISApi(client), generated.PISApi(client)
    accounts = read(ais.get_account_list_with_http_info, **ALWAYS).accounts
    bookings = []
    window = {"booking_status": "both", "date_from": SINCE, **ALWAYS}
    for account in accounts:
        at = account.resource_id
        read(ais.read_account_details_with_http_info, at, **ALWAYS)
        assert read(ais.get_balances_with_http_info, at, **ALWAYS).balances
        listed = read(ais.get_transaction_list_with_http_info, at, **window).transactions.booked
        for booking in listed:
            read(ais.get_transaction_details_with_http_info, at, booking.transaction_id, **ALWAYS)
        bookings += listed
    cards = read(ais.get_card_account_list_with_http_info, **ALWAYS).card_accounts
    for card in cards:
        at = card.resource_id
        read(ais.read_card_account_with_http_info, at, **ALWAYS)
        assert read(ais.get_card_account_balances_with_http_info, at, **ALWAYS).balances
        listed = read(ais.get_card_account_transaction_list_with_http_info, at, **window).card_transactions.booked
        bookings += listed
    payment = ("payments", "sepa-credit-transfers")
    body = generated.Payment.from_dict(SEPA)
    created = read(pis.initiate_payment_with_http_info, *payment, psu_ip_address="192.0.2.1", payment=body)
    read(pis.get_payment_information_with_http_info, *payment, created.payment_id)
    status = read(pis.get_payment_initiation_status_with_http_info, *payment, created.payment_id)
    print(
        json.dumps(
            {
                "accounts": len(accounts),
                "cards": len(cards),
                "transactions": len(bookings),
                "abroad": sum(bool(getattr(booking, "currency_exchange", None)) for booking in bookings),
                "status": status.transaction_status,
            }
        )
    )


main(*sys.argv[1:])
