"""The examples of the OpenAPI document work: each is sent to a bank in its known state, and accepted."""

from __future__ import annotations

import re
from typing import Any

import pytest

from emulator.api.description import examples
from emulator.api.description.openapi import document
from emulator.api.operations import table
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CUSTOMER
from tests.api.desk import NOW, DeskClient
from tests.known_state import DOMESTIC, KARI

BODIES = examples.bodies(NOW.date())
ROWS = {row.id: row for row in table()}


def parameters(client: DeskClient, title: str) -> dict[str, str]:
    """What the operation's path names, out of the known state."""
    documents = client.service.bank.documents
    service, product = examples.product_of(title)
    agreement = next(iter(documents.all(AGREEMENT)))
    return {
        "payment-service": service,
        "payment-product": product,
        "customerId": documents.first(CUSTOMER, customerNumber=KARI)["id"],
        "mockAccountId": next(iter(documents.all(ACCOUNT)))["id"],
        "mockCardAccountId": next(iter(documents.all(CARD)))["id"],
        "agreementId": agreement["id"],
        "tppId": client.tpp_id,
    }


def body_for(client: DeskClient, operation: str, example: Any) -> Any:
    """The example, with the ids of payments that exist where it shows a placeholder."""
    if operation != "createSigningBasket":
        return example
    created = client.post(DOMESTIC, json=BODIES["createPayment"]["norwegian-domestic-credit-transfers"])
    return {"paymentIds": [created.json()["paymentId"]]}


@pytest.mark.parametrize("operation, title", [(name, title) for name, shown in BODIES.items() for title in shown])
def test_an_example_is_accepted(tpp: DeskClient, operation: str, title: str) -> None:
    tpp.log_in(KARI)
    row = ROWS[operation]
    values = parameters(tpp, title)
    path = re.sub(r"{([^}]+)}", lambda name: values[name[1]], row.path)
    answer = tpp.request(row.method, path, json=body_for(tpp, operation, BODIES[operation][title]))
    assert answer.status in row.answers, answer.text
    assert answer.status < 300, answer.text
    warned = answer.json().get("tppMessages", []) if answer.body and isinstance(answer.json(), dict) else []
    assert warned == []


def test_every_operation_with_a_body_has_an_example() -> None:
    assert {row.id for row in table() if row.body is not None} == set(BODIES)


def test_the_document_shows_every_example() -> None:
    shown = document(today=NOW.date())
    for row in table():
        entry = shown["paths"][row.path][row.method.lower()]
        content = entry.get("requestBody", {}).get("content", {}).get("application/json", {})
        values = {title: example["value"] for title, example in content.get("examples", {}).items()}
        assert values == BODIES.get(row.id, {})


def test_dates_in_examples_follow_the_day() -> None:
    assert examples.bodies(NOW.date()) != examples.bodies(NOW.date().replace(year=2031))
