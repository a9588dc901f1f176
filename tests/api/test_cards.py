"""GET /v1/card-accounts and what hangs on it (accounts.md)."""

from __future__ import annotations

from typing import Any

from emulator.api.service import BankService
from emulator.bank.kinds import CARD
from tests.api.desk import DeskClient, messages
from tests.known_state import SIRI


def get(client: DeskClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.status == 200, answer.json()
    return answer.json()


def card_id(service: BankService) -> str:
    return str(next(service.bank.documents.all(CARD))["id"])


def test_card_accounts_name_the_account_that_payments_are_taken_from(kari: DeskClient, service: BankService) -> None:
    card = card_id(service)
    shown = get(kari, "/v1/card-accounts")["cardAccounts"]
    assert shown == [
        {
            "resourceId": card,
            "maskedPan": "999900xxxxxx1204",
            "currency": "NOK",
            "name": "Kredittkort Kladd med reise- og avbestillingsforsikring",
            "product": "Kredittkort Pluss",
            "status": "enabled",
            "usage": "PRIV",
            "creditLimit": {"amount": "50000.00", "currency": "NOK"},
            "relatedAccount": {
                "bban": "99901000014",
                "iban": "NO8599901000014",
                "currency": "NOK",
                "other": {"identification": "99901000014", "schemeNameProprietary": "creditCardAccount"},
            },
            "_links": {
                "self": {"href": f"/v1/card-accounts/{card}", "verbs": ["GET"]},
                "balances": {"href": f"/v1/card-accounts/{card}/balances", "verbs": ["GET"]},
                "transactions": {"href": f"/v1/card-accounts/{card}/transactions", "verbs": ["GET"]},
            },
        }
    ]
    assert get(kari, f"/v1/card-accounts/{card}") == {"cardAccount": shown[0]}


def test_a_related_account_that_the_bank_does_not_hold_is_named_by_its_number_alone(
    kari: DeskClient, service: BankService
) -> None:
    path = f"/v1/sandbox/card-accounts/{card_id(service)}"
    elsewhere = {"identification": "123412341234", "schemeNameProprietary": "creditCardAccount"}
    for number, shown in (("123412341234", {"bban": "123412341234", "other": elsewhere}), ("", None)):
        assert kari.put(path, json={**get(kari, path), "accountNumber": number}).status == 200
        assert get(kari, "/v1/card-accounts")["cardAccounts"][0].get("relatedAccount") == shown


def test_a_card_account_that_another_customer_has_got_is_not_listed(kari: DeskClient, service: BankService) -> None:
    path = f"/v1/sandbox/card-accounts/{card_id(service)}"
    body = {**get(kari, path), "customerNumber": "03817910172"}
    assert kari.put(path, json=body).status == 200
    assert get(kari, "/v1/card-accounts?withBalance=true") == {"cardAccounts": []}
    assert kari.get(f"/v1/card-accounts/{card_id(service)}").status == 404


def test_balances_of_a_card_end_in_what_may_still_be_spent(kari: DeskClient, service: BankService) -> None:
    card = card_id(service)
    body = get(kari, f"/v1/card-accounts/{card}/balances")
    assert body["cardAccount"] == {"maskedPan": "999900xxxxxx1204", "currency": "NOK"}
    amounts = {balance["balanceType"]: balance["balanceAmount"]["amount"] for balance in body["balances"]}
    assert amounts == {"closingBooked": "-6412.85", "expected": "-6871.85", "forwardAvailable": "43128.15"}
    listed = get(kari, "/v1/card-accounts?withBalance=true")["cardAccounts"][0]
    assert listed["balances"] == body["balances"]


def test_card_transactions_come_in_pages_newest_first(kari: DeskClient, service: BankService) -> None:
    path = f"/v1/card-accounts/{card_id(service)}/transactions"
    body = get(kari, f"{path}?limit=500")
    assert list(body) == ["cardAccount", "cardTransactions"]
    assert list(body["cardTransactions"]) == ["booked", "pending", "_links"]
    everything = [e["cardTransactionId"] for e in body["cardTransactions"]["pending"]]
    everything += [e["cardTransactionId"] for e in body["cardTransactions"]["booked"]]
    walked: list[str] = []
    target = f"{path}?limit=4"
    while target:
        page = get(kari, target)["cardTransactions"]
        walked += [e["cardTransactionId"] for shelf in ("pending", "booked") for e in page[shelf]]
        target = page["_links"].get("next", {}).get("href")
    assert walked == everything
    abroad = next(e for e in body["cardTransactions"]["booked"] if e["transactionDetails"] == "Brasserie Modèle")
    assert abroad == {
        "cardTransactionId": abroad["cardTransactionId"],
        "transactionDate": "2026-01-28",
        "bookingDate": "2026-01-29",
        "transactionAmount": {"amount": "-574.55", "currency": "NOK"},
        "originalAmount": {"amount": "-48.00", "currency": "EUR"},
        "markupFee": {"amount": "-11.27", "currency": "NOK"},
        "markupFeePercentage": "2.00",
        "cardAcceptorAddress": {"city": "Paris", "country": "FR"},
        "merchantCategoryCode": "5812",
        "maskedPan": "999900xxxxxx1204",
        "transactionDetails": "Brasserie Modèle",
        "invoiced": True,
        "proprietaryBankTransactionCode": "PURCHASE",
    }


def test_a_card_transaction_without_an_address_shows_none(kari: DeskClient, service: BankService) -> None:
    booked = get(kari, f"/v1/card-accounts/{card_id(service)}/transactions?limit=500")["cardTransactions"]["booked"]
    addresses = {e["transactionDetails"]: e.get("cardAcceptorAddress") for e in booked}
    assert (addresses["Innbetaling"], addresses["Strømmetjenesten AS"]) == (None, {"country": "NO"})


def test_dates_and_limit_hold_for_pending_card_transactions_in_production_too(
    kari: DeskClient, service: BankService
) -> None:
    service.bank.change_settings({"pending": "unfiltered"})
    path = f"/v1/card-accounts/{card_id(service)}/transactions"
    assert len(get(kari, path)["cardTransactions"]["pending"]) == 1
    assert get(kari, f"{path}?dateTo=2026-02-01")["cardTransactions"]["pending"] == []


def test_a_corporate_customer_has_no_card_and_another_ones_is_unknown(tpp: DeskClient, service: BankService) -> None:
    client = tpp.log_in(SIRI)
    assert get(client, "/v1/card-accounts") == {"cardAccounts": []}
    for path in ("", "/balances", "/transactions"):
        answer = client.get(f"/v1/card-accounts/{card_id(service)}{path}")
        assert (answer.status, messages(answer)) == (404, [("RESOURCE_UNKNOWN", "id")])


def test_a_private_customers_cards_are_not_shared_under_its_agreement(tpp: DeskClient) -> None:
    tpp.log_in("03817910172", context="CORPORATE")
    assert get(tpp, "/v1/card-accounts") == {"cardAccounts": []}
