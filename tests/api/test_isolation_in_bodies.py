"""An id inside a body that is another's is answered as one of nobody; paths have their own test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.api.service import BankService
from emulator.bank.kinds import BASKET
from emulator.ca import CertificateAuthority
from emulator.client.clients import TppResponse
from tests.api.desk import DeskClient, approve
from tests.api.test_isolation import BODIES, NOBODYS, SERVICES
from tests.known_state import EVEN, KARI

BASKETS = "/v1/signing-baskets"


@pytest.fixture
def stranger(service: BankService, authority: CertificateAuthority) -> DeskClient:
    authority.find("stranger") or authority.issue("stranger")
    return DeskClient(service, authority, name="stranger")


def created(client: DeskClient, service: str) -> str:
    answer = client.post(f"/v1/{service}/{SERVICES[service]}", json=BODIES[service])
    assert answer.status == 201, answer.text
    return str(answer.json()["paymentId"])


def essence(answer: TppResponse, name: str) -> tuple[int, str]:
    """Status and body with the id taken out."""
    return answer.status, json.dumps(answer.json(), sort_keys=True).replace(name, "ID")


def asked(client: DeskClient, *payments: str) -> TppResponse:
    return client.post(BASKETS, json={"paymentIds": list(payments)})


@pytest.mark.parametrize(
    ("product_group", "state", "who"),
    [
        *((group, "RCVD", KARI) for group in SERVICES),
        *(("payments", state, KARI) for state in ("authorised", "in a basket", "deleted")),
        ("payments", "RCVD", EVEN),
    ],
)
def test_another_tpps_payment_in_a_basket_is_an_unknown_one(
    service: BankService, tpp: DeskClient, stranger: DeskClient, product_group: str, state: str, who: str
) -> None:
    theirs = created(tpp.log_in(KARI), product_group)
    if state == "authorised":
        approve(service, theirs)
    elif state == "in a basket":
        assert asked(tpp, theirs).status == 201
    elif state == "deleted":
        assert tpp.delete(f"/v1/{product_group}/{SERVICES[product_group]}/{theirs}").status == 204
    stranger.log_in(who, **({"context": "PRIVATE"} if who == EVEN else {}))
    refused, unknown = asked(stranger, theirs), asked(stranger, NOBODYS)
    assert refused.status == 400
    assert refused.json()["tppMessages"][0]["code"] == "RESOURCE_UNKNOWN"
    assert essence(refused, theirs) == essence(unknown, NOBODYS)


def test_between_ones_own_payments_another_tpps_is_unknown_too(
    service: BankService, tpp: DeskClient, stranger: DeskClient
) -> None:
    theirs = created(tpp.log_in(KARI), "payments")
    own = [created(stranger.log_in(KARI), "payments") for _ in range(2)]
    refused, unknown = asked(stranger, own[0], theirs, own[1]), asked(stranger, own[0], NOBODYS, own[1])
    assert essence(refused, theirs) == essence(unknown, NOBODYS)
    assert [message.get("path") for message in refused.json()["tppMessages"]] == ["paymentIds[1]"]
    assert service.bank.documents.count(BASKET) == 0
    assert asked(stranger, *own).status == 201


def test_another_persons_payment_of_the_same_tpp_is_unknown_in_a_basket(tpp: DeskClient) -> None:
    theirs = created(tpp.log_in(KARI), "payments")
    tpp.log_in(EVEN, context="PRIVATE")
    assert essence(asked(tpp, theirs), theirs) == essence(asked(tpp, NOBODYS), NOBODYS)


@pytest.mark.parametrize(
    ("theirs", "nobodys"),
    [
        ({"bban": "99901100019"}, {"bban": "99932000053"}),
        ({"other": {"identification": "KARI", "schemeNameProprietary": "creditCardAccount"}},
         {"other": {"identification": "NOBODY", "schemeNameProprietary": "creditCardAccount"}}),
    ],
    ids=["account", "card"],
)  # fmt: skip
def test_another_persons_account_to_pay_from_is_as_one_of_nobody(
    service: BankService,
    tpp: DeskClient,
    authority: CertificateAuthority,
    theirs: dict[str, Any],
    nobodys: dict[str, Any],
) -> None:
    even = DeskClient(service, authority).log_in(EVEN, context="PRIVATE")
    card = even.get("/v1/card-accounts").json()["cardAccounts"][0]
    tpp.log_in(KARI)

    def paid_from(account: dict[str, Any]) -> TppResponse:
        address = f"/v1/payments/{SERVICES['payments']}"
        written = json.dumps({**BODIES["payments"], "debtorAccount": {**account, "currency": "NOK"}})
        return tpp.post(address, body=written.replace("KARI", card["maskedPan"]))

    refused, unknown = paid_from(theirs), paid_from(nobodys)
    assert refused.status == 403
    assert (refused.status, refused.json()) == (unknown.status, unknown.json())
