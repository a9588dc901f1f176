"""x-accept-fix: a change shows when it is asked for, and from its date on always (accept-fix.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from emulator.api.service import BankService
from emulator.bank import fixtures
from emulator.bank.kinds import ACCOUNT
from tests.api.desk import DeskClient
from tests.known_state import KARI, SIRI
from tests.postgres.remote import RemoteService

BAKERY = "NO2799911000012"
BEFORE = datetime(2024, 9, 4, 21, 59, 59, tzinfo=UTC)  # the last second of 4 September in Oslo
FROM = datetime(2024, 9, 4, 22, 0, tzinfo=UTC)


def at(service: BankService, client: DeskClient, moment: datetime, person: str = KARI) -> DeskClient:
    if isinstance(service, RemoteService):
        service.begin_anew(moment)
    else:
        fixtures.reset(service.bank, "known-state", now=moment, mode="frozen")
    return client.log_in(person)


def get(client: DeskClient, path: str, fix: str) -> Any:
    answer = client.get(path, headers={"x-accept-fix": fix})
    assert answer.status == 200, answer.json()
    return answer.json()


@pytest.mark.parametrize(
    ("moment", "asked", "new"),
    [(BEFORE, "", False), (BEFORE, "FIX", True), (BEFORE, "nothing, FIX ,other", True), (FROM, "", True)],
)
def test_cash_account_type_iso(service: BankService, tpp: DeskClient, moment: datetime, asked: str, new: bool) -> None:
    client = at(service, tpp, moment)
    body = get(client, "/v1/accounts", asked.replace("FIX", "cash-account-type-iso") or "none")
    types = [account["cashAccountType"] for account in body["accounts"]]
    assert types == (["CACC", "SVGS"] if new else ["Current", "Savings"])


@pytest.mark.parametrize(
    ("moment", "asked", "new"), [(BEFORE, "none", False), (BEFORE, "longer-names", True), (FROM, "none", True)]
)
def test_longer_names(service: BankService, tpp: DeskClient, moment: datetime, asked: str, new: bool) -> None:
    body = get(at(service, tpp, moment), "/v1/card-accounts", asked)
    name = body["cardAccounts"][0]["name"]
    whole = "Kredittkort Kladd med reise- og avbestillingsforsikring"
    assert name == (whole if new else whole[:35])


@pytest.mark.parametrize(
    ("moment", "asked", "new"),
    [
        (BEFORE, "none", False),
        (BEFORE, "cardaccount-switch-originalamount-and-transactionamount", True),
        (FROM, "none", True),
    ],
)
def test_switched_card_amounts(service: BankService, tpp: DeskClient, moment: datetime, asked: str, new: bool) -> None:
    client = at(service, tpp, moment)
    card = get(client, "/v1/card-accounts", asked)["cardAccounts"][0]["resourceId"]
    booked = get(client, f"/v1/card-accounts/{card}/transactions", asked)["cardTransactions"]["booked"]
    abroad = next(entry for entry in booked if entry["transactionDetails"] == "Hôtel de l'Exemple")
    amounts = [abroad["transactionAmount"], abroad["originalAmount"]]
    billed, paid = {"amount": "-1196.97", "currency": "NOK"}, {"amount": "-100.00", "currency": "EUR"}
    assert amounts == ([billed, paid] if new else [paid, billed])


@pytest.mark.parametrize(
    ("moment", "asked", "new"),
    [(BEFORE, "none", False), (BEFORE, "groupBatchTransactions", True), (FROM, "none", True)],
)
def test_grouped_batches(service: BankService, tpp: DeskClient, moment: datetime, asked: str, new: bool) -> None:
    client = at(service, tpp, moment, SIRI)
    account = service.bank.documents.find(ACCOUNT, iban=BAKERY)[0]["id"]
    path = f"/v1/accounts/{account}/transactions"
    booked = get(client, f"{path}?limit=500", asked)["transactions"]["booked"]
    wages = [e for e in booked if e.get("purposeCode") == "SALA"]
    assert [e.get("batchIndicator", False) for e in wages] == ([True] * 3 if new else [False] * 12)
    assert [e["transactionAmount"]["amount"] for e in wages][:2] == (
        ["-142875.55", "-142875.55"] if new else ["-36480.55", "-34210.00"]
    )
    for entry in wages:
        details = get(client, f"{path}/{entry['transactionId']}", asked)["transactionsDetails"]
        assert details["transactionAmount"] == entry["transactionAmount"]


@pytest.mark.parametrize(
    ("moment", "asked", "new"),
    [
        (datetime(2020, 7, 31, 21, 59, 59, tzinfo=UTC), "none", False),
        (datetime(2020, 7, 31, 21, 59, 59, tzinfo=UTC), "amount-as-string", True),
        (datetime(2020, 7, 31, 22, 0, tzinfo=UTC), "none", True),
    ],
)
def test_amount_as_string(service: BankService, tpp: DeskClient, moment: datetime, asked: str, new: bool) -> None:
    client = at(service, tpp, moment)
    accounts = get(client, "/v1/accounts?withBalance=true", asked)["accounts"]
    assert accounts[0]["balances"][0]["balanceAmount"]["amount"] == ("184312.50" if new else 184312.5)
    path = accounts[0]["_links"]["transactions"]["href"]
    booked = get(client, path, asked)["transactions"]["booked"]
    assert booked[0]["transactionAmount"]["amount"] == ("-412.35" if new else -412.35)
    card = get(client, "/v1/card-accounts", asked)["cardAccounts"][0]
    assert card["creditLimit"]["amount"] == ("50000.00" if new else 50000.0)
