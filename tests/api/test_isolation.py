"""Another TPP's resource is indistinguishable from one that does not exist, on every operation.

Driven from the operation table: an operation whose path names something unknown to this test fails it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from emulator.api.description import examples
from emulator.api.operation import Operation
from emulator.api.operations import table
from emulator.api.service import BankService
from emulator.ca import CertificateAuthority
from emulator.client.clients import TppResponse
from tests.api.desk import NOW, DeskClient, approve
from tests.known_state import EVEN, KARI

NOBODYS = "5f0f3b0e-8a53-4c2f-9d0e-6a1f7c2b9e41"
SERVICES = {
    "payments": "norwegian-domestic-credit-transfers",
    "periodic-payments": "norwegian-domestic-credit-transfers",
    "bulk-payments": "norwegian-domestic-credit-transfers",
}
_BODIES = examples.bodies(NOW.date())
BODIES = {
    "payments": _BODIES["createPayment"]["norwegian-domestic-credit-transfers"],
    "periodic-payments": _BODIES["createPayment"]["periodic norwegian-domestic-credit-transfers"],
    "bulk-payments": _BODIES["createPayment"]["bulk norwegian-domestic-credit-transfers"],
}
# Sandbox data is every TPP's: it stands for the bank's own customers. To create a payment names nothing yet.
ROWS = [
    row for row in table() if "{" in row.path and not row.path.startswith("/v1/sandbox/") and row.id != "createPayment"
]


class Estate:
    """What one TPP has at the bank: by path template, the parameters that name it."""

    def __init__(self, service: BankService, owner: DeskClient) -> None:
        self.owner = owner
        self._payments: dict[str, dict[str, str]] = {}
        for group, product in SERVICES.items():
            address = f"/v1/{group}/{product}"
            created = owner.post(address, json=BODIES[group])
            assert created.status == 201, created.text
            payment = created.json()["paymentId"]
            started = owner.post(f"{address}/{payment}/authorisations").json()["authorisationId"]
            if group == "payments":
                approve(service, payment)
            self._payments[group] = {"paymentId": payment, "authorisationId": started}
        other = owner.post("/v1/payments/sepa-credit-transfers", json=_BODIES["createPayment"]["sepa-credit-transfers"])
        basket = owner.post("/v1/signing-baskets", json={"paymentIds": [other.json()["paymentId"]]})
        assert basket.status == 201, basket.text
        self._basket = basket.json()["basketId"]
        self._basket_authorisation = owner.post(f"/v1/signing-baskets/{self._basket}/authorisations").json()[
            "authorisationId"
        ]
        self._consent = owner.post("/v1/consents").json()["consentId"]
        [account, *_] = owner.get("/v1/accounts").json()["accounts"]
        transactions = owner.get(f"/v1/accounts/{account['resourceId']}/transactions?bookingStatus=booked").json()
        self._transaction = transactions["transactions"]["booked"][0]["transactionId"]
        self._account = account["resourceId"]
        self._card = owner.get("/v1/card-accounts").json()["cardAccounts"][0]["resourceId"]

    def addresses(self, row: Operation) -> Iterator[str]:
        """Every address of an operation that names something of the owner's."""
        if "{payment-service}" in row.path:
            for service, product in SERVICES.items():
                yield filled(
                    row.path, {"payment-service": service, "payment-product": product, **self._payments[service]}
                )
            return
        values = {
            "consentId": self._consent,
            "basketId": self._basket,
            "authorisationId": self._basket_authorisation,
            "id": self._card if row.path.startswith("/v1/card-accounts") else self._account,
            "transactionId": self._transaction,
            "tppId": self.owner.tpp_id,
        }
        yield filled(row.path, values)


def filled(path: str, values: dict[str, str]) -> str:
    return re.sub(r"{([^}]+)}", lambda match: values[match[1]], path)


def _body(row: Operation) -> Any:
    shown = _BODIES.get(row.id)
    return next(iter(shown.values())) if shown and row.body else None


def _essence(answer: TppResponse, *names: str) -> tuple[int, str]:
    """Status and body, with what differs by construction (ids, tokens) taken out."""
    text = answer.text
    for name in names:
        text = text.replace(name, "ID")
    body = json.loads(text) if text else None
    if isinstance(body, dict):
        body.pop("_links", None)
    return answer.status, json.dumps(body, sort_keys=True)


@pytest.fixture
def estate(service: BankService, tpp: DeskClient) -> Estate:
    return Estate(service, tpp.log_in(KARI))


@pytest.mark.parametrize("who", [EVEN, KARI])
def test_what_is_another_tpps_is_as_if_it_were_not(
    service: BankService, authority: CertificateAuthority, estate: Estate, who: str
) -> None:
    """A person's accounts are its own at every TPP, so only another person's are strange there."""
    authority.find("stranger") or authority.issue("stranger")
    stranger = DeskClient(service, authority, name="stranger")
    stranger.log_in(who, **({"context": "PRIVATE"} if who == EVEN else {}))
    rows = [row for row in ROWS if not (who == KARI and "{id}" in row.path)]
    cases = [(row, address) for row in rows for address in estate.addresses(row)]
    for row, address in cases:
        names = set(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}|PSD[A-Z]{2}-[\w-]+", address))
        nowhere = address
        for name in names:
            nowhere = nowhere.replace(name, NOBODYS)
        assert nowhere != address
        theirs = stranger.request(row.method, address, json=_body(row))
        nobodys = stranger.request(row.method, nowhere, json=_body(row))
        assert theirs.status in (401, 403, 404), row.id
        assert _essence(theirs, *names) == _essence(nobodys, NOBODYS), row.id


PARTS = [pytest.param(row, id=row.id) for row in ROWS if row.path.endswith("{authorisationId}")]


@pytest.mark.parametrize("row", PARTS)
def test_what_belongs_to_another_tpps_is_no_part_of_ones_own(
    service: BankService, authority: CertificateAuthority, estate: Estate, row: Operation
) -> None:
    authority.find("stranger") or authority.issue("stranger")
    stranger = DeskClient(service, authority, name="stranger").log_in(KARI)
    own = Estate(service, stranger)
    for mine, theirs in zip(own.addresses(row), estate.addresses(row), strict=True):
        whole, _, part = mine.rpartition("/")
        strange = theirs.rpartition("/")[2]
        assert part != strange
        answer, unknown = stranger.get(f"{whole}/{strange}"), stranger.get(f"{whole}/{NOBODYS}")
        assert answer.status == 404
        assert _essence(answer, strange) == _essence(unknown, NOBODYS)
        if "cancellation" not in row.path:
            assert stranger.get(mine).status == 200
