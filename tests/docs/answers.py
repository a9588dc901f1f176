"""The examples of answers that the OpenAPI document shows: `python -m tests.docs.answers` records them again.

All come from one bank in its known state, on a Monday morning of its clock, whose ids repeat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emulator.api.description import examples
from emulator.api.operations import table
from emulator.bank.clock import real_now
from emulator.ca import CertificateAuthority
from emulator.client.clients import TppResponse
from tests.api.desk import NOW, DeskClient, advance, approve, monday, seeded_registry
from tests.known_state import KARI, SIRI

ANSWERS = Path(examples.__file__).with_name("answers.json")
LATER = "2026-03-20"
PRODUCT = "norwegian-domestic-credit-transfers"
DOMESTIC = f"/v1/payments/{PRODUCT}"

STRANGE = {"bban": "99901100019", "currency": "NOK"}
MORE = {"creditorName": "Kari Kladd"}

Found = dict[str, dict[str, dict[str, Any]]]


class Recorder:
    """Calls operations by id and keeps what they answer, by operation, status and title."""

    def __init__(self, client: DeskClient) -> None:
        self.client = client
        self.answers: Found = {}
        self._rows = {row.id: row for row in table()}

    def __call__(self, operation: str, path: str, body: Any = None, *, title: str = "from the known state") -> Any:
        options = {} if body is None else {"json": body}
        answer = self.client.request(self._rows[operation].method, path, **options)
        if answer.body:
            self._keep(operation, title, answer)
        return answer.json() if answer.body else None

    def refusal(self, title: str, method: str, path: str, **options: Any) -> None:
        """A refusal, which may come from any operation."""
        self._keep(examples.REFUSED, title, self.client.request(method, path, **options))

    def _keep(self, place: str, title: str, answer: TppResponse) -> None:
        self.answers.setdefault(place, {}).setdefault(str(answer.status), {}).setdefault(title, answer.json())


def recorded() -> Found:
    """What a bank answers to every operation that answers with a body."""
    authority = CertificateAuthority(None, clock=real_now)
    authority.demo()
    record = Recorder(DeskClient(monday(seeded_registry(authority)), authority))
    bodies = examples.bodies(NOW.date())
    path = f"/v1/consents/{record('createConsent', '/v1/consents')['consentId']}"
    record("getConsentStatus", f"{path}/status", title="not given yet")
    record("createBankOfferedConsent", "/v1/bank-offered-consents")
    record.refusal("the customer is not known yet", "GET", "/v1/accounts")
    record.client.log_in(KARI)
    _refusals(record, bodies["createPayment"][PRODUCT])
    _customer(record)
    _payments(record, bodies["createPayment"])
    _cancelled(record, bodies["createPayment"][PRODUCT])
    _baskets(record, bodies["createPayment"][PRODUCT])
    record.client.log_in(SIRI, context="CORPORATE")
    _company(record)
    _sandbox(record, bodies)
    return dict(sorted(record.answers.items()))


def _refusals(record: Recorder, body: Mapping[str, Any]) -> None:
    wrong = {**body, "instructedAmount": {"amount": "250.0", "currency": "NOK"}, "creditorName": ""}
    record.refusal("two mistakes in a body", "POST", DOMESTIC, json=wrong)
    record.refusal("a header is missing", "POST", DOMESTIC, json=body, headers={"PSU-IP-Address": None})
    record.refusal("the signature fails", "POST", DOMESTIC, json=body, tamper="reordered")
    record.refusal("not the customer's account", "POST", DOMESTIC, json={**body, "debtorAccount": STRANGE})
    record.refusal("no such payment", "GET", f"{DOMESTIC}/{examples.UUID}")
    used = {"X-Request-ID": examples.UUID}
    record.client.post(DOMESTIC, json=body, headers=used)
    record.refusal("the X-Request-ID of another request", "POST", DOMESTIC, json={**body, **MORE}, headers=used)
    [account, *_] = record.client.get("/v1/accounts").json()["accounts"]
    balances, alone = f"/v1/accounts/{account['resourceId']}/balances", {"PSU-IP-Address": None}
    for _ in range(4):
        record.client.get(balances, headers=alone)
    record.refusal("a fifth call without the customer", "GET", balances, headers=alone)


def _customer(record: Recorder) -> None:
    path = f"/v1/consents/{record.client.post('/v1/consents').json()['consentId']}"
    approve(record.client.service, path.rpartition("/")[2])
    record("getConsent", path)
    record("getUser", "/v1/user")
    record("getUsers", "/v1/users")
    [account, *_] = record("getAccounts", "/v1/accounts?withBalance=true", title="with balances")["accounts"]
    path = f"/v1/accounts/{account['resourceId']}"
    record("getAccount", path)
    record("getBalances", f"{path}/balances")
    listed = record("getTransactions", f"{path}/transactions?limit=4", title="a page of four")["transactions"]["booked"]
    record("getTransactionDetails", f"{path}/transactions/{listed[0]['transactionId']}", title="in private context")
    [card, *_] = record("getCardAccounts", "/v1/card-accounts?withBalance=true", title="with balances")["cardAccounts"]
    path = f"/v1/card-accounts/{card['resourceId']}"
    record("getCardAccount", path)
    record("getCardBalances", f"{path}/balances")
    record("getCardTransactions", f"{path}/transactions?limit=2", title="a page of two")


def _company(record: Recorder) -> None:
    record("getAgreements", "/v1/agreements")
    for account in record("getAccounts", "/v1/accounts", title="in corporate context")["accounts"]:
        path = f"/v1/accounts/{account['resourceId']}/transactions"
        listed = record.client.get(f"{path}?limit=500").json()["transactions"]["booked"]
        for entry in listed:
            if entry.get("batchIndicator"):
                record("getTransactionDetails", f"{path}/{entry['transactionId']}", title="a batch of a company")
                return


def _payments(record: Recorder, bodies: Mapping[str, Any]) -> None:
    for title, body in bodies.items():
        service, product = examples.product_of(title)
        address = f"/v1/{service}/{product}"
        path = f"{address}/{record('createPayment', address, body, title=title)['paymentId']}"
        approve(record.client.service, path.rpartition("/")[2])
        record("getPaymentStatus", f"{path}/status", title="just approved")
        advance(record.client.service, seconds=5)
        record("getPayment", path, title=f"{title}, five seconds after approval")
        record("getPaymentStatus", f"{path}/status", title="five seconds after approval")


def _cancelled(record: Recorder, body: Any) -> None:
    path = f"{DOMESTIC}/{record('createPayment', DOMESTIC, {**body, 'requestedExecutionDate': LATER})['paymentId']}"
    started = record("startAuthorisation", f"{path}/authorisations")
    record("getAuthorisations", f"{path}/authorisations")
    record("getAuthorisation", f"{path}/authorisations/{started['authorisationId']}")
    approve(record.client.service, path.rpartition("/")[2])
    record("deletePayment", path)
    started = record("startCancellationAuthorisation", f"{path}/cancellation-authorisations")
    record("getCancellationAuthorisations", f"{path}/cancellation-authorisations")
    record("getCancellationAuthorisation", f"{path}/cancellation-authorisations/{started['authorisationId']}")


def _baskets(record: Recorder, body: Any) -> None:
    ids = [record("createPayment", DOMESTIC, body)["paymentId"] for _ in range(2)]
    path = (
        f"/v1/signing-baskets/{record('createSigningBasket', '/v1/signing-baskets', {'paymentIds': ids})['basketId']}"
    )
    record("getSigningBasket", path)
    record("getSigningBasketStatus", f"{path}/status")
    started = record("startSigningBasketAuthorisation", f"{path}/authorisations")
    record("getSigningBasketAuthorisations", f"{path}/authorisations")
    record("getSigningBasketAuthorisation", f"{path}/authorisations/{started['authorisationId']}")


def _sandbox(record: Recorder, bodies: Mapping[str, Any]) -> None:
    """What the examples of request bodies make, read, changed and deleted."""
    for place, one, id_name in (
        ("customers", "SandboxCustomer", "customerId"),
        ("accounts", "SandboxAccount", "id"),
        ("card-accounts", "SandboxCardAccount", "resourceId"),
        ("agreements", "SandboxAgreement", "agreementId"),
    ):
        address = f"/v1/sandbox/{place}"
        body = next(iter(bodies[f"create{one}"].values()))
        path = f"{address}/{record(f'create{one}', address, body)[id_name]}"
        record(f"get{one}", path)
        if f"update{one}" in bodies:
            record(f"update{one}", path, body)
        record(f"list{one}s", address)
        if f"create{one}Transactions" in bodies:
            _sandbox_transactions(record, f"{one}Transaction", f"{path}/transactions", bodies)
        if place == "agreements":
            _engagements(record, f"{path}/engagements", bodies["createSandboxEngagement"]["an account"])
    address = f"/v1/tpps/{record.client.tpp_id}/contact-information"
    record("putContactInformation", address, bodies["putContactInformation"]["a mailbox"])
    record("getContactInformation", address)
    record("initializeSandbox", "/v1/sandbox/initialize")


def _sandbox_transactions(record: Recorder, one: str, path: str, bodies: Mapping[str, Any]) -> None:
    entries = [record(f"create{one}s", path, body, title=title) for title, body in bodies[f"create{one}s"].items()]
    record(f"get{one}", f"{path}/{entries[0]['id']}")
    record(f"list{one}s", path)


def _engagements(record: Recorder, path: str, body: Any) -> None:
    [engagement, *_] = record("listSandboxEngagements", path)
    record("getSandboxEngagement", f"{path}/{engagement['engagementId']}")
    record("createSandboxEngagement", path, {**body, "customer": "310001007"})


def written(answers: Found) -> str:
    """The file as it stands in the package."""
    return json.dumps(answers, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    ANSWERS.write_text(written(recorded()))
    print(f"Written to {ANSWERS.name}.")
