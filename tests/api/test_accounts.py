"""GET /v1/accounts and what hangs on it (accounts.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from emulator.api.service import BankService
from emulator.bank.kinds import ACCOUNT, CUSTOMER, TRANSACTION
from tests.api.desk import DeskClient, advance, messages, ok
from tests.known_state import EVEN, KARI, SIRI

MAIN = "NO8599901000014"


def account_id(client: DeskClient, iban: str = MAIN) -> str:
    account = client.service.bank.documents.first(ACCOUNT, iban=iban)
    if account is None:
        raise LookupError(iban)
    return str(account["id"])


def listed(client: DeskClient, path: str, **options: Any) -> dict[str, Any]:
    answer = client.get(path, **options)
    assert answer.status == 200, answer.json()
    value: dict[str, Any] = answer.json()
    return value


def entries(body: dict[str, Any]) -> list[str]:
    lists = body["transactions"]
    return [entry["transactionId"] for shelf in ("pending", "booked") for entry in lists.get(shelf, ())]


def test_accounts_have_the_members_of_berlin_group_and_links(kari: DeskClient) -> None:
    body = listed(kari, "/v1/accounts")
    assert [account["iban"] for account in body["accounts"]] == [MAIN, "NO6399901000022"]
    own = account_id(kari)
    assert body["accounts"][0] == {
        "resourceId": own,
        "bban": "99901000014",
        "iban": MAIN,
        "currency": "NOK",
        "name": "Brukskonto",
        "product": "Brukskonto",
        "cashAccountType": "CACC",
        "bic": "BEMUNO22XXX",
        "usage": "PRIV",
        "status": "enabled",
        "_links": {
            "self": {"href": f"/v1/accounts/{own}", "verbs": ["GET"]},
            "balances": {"href": f"/v1/accounts/{own}/balances", "verbs": ["GET"]},
            "transactions": {"href": f"/v1/accounts/{own}/transactions", "verbs": ["GET"]},
        },
    }
    assert listed(kari, f"/v1/accounts/{own}") == {"account": body["accounts"][0]}


def test_balances_come_with_the_account_when_asked_for(kari: DeskClient) -> None:
    own = account_id(kari)
    balances = listed(kari, f"/v1/accounts/{own}/balances")
    assert balances == {
        "account": {"bban": "99901000014", "iban": MAIN, "currency": "NOK"},
        "balances": [
            {
                "balanceAmount": {"amount": amount, "currency": "NOK"},
                "balanceType": name,
                "referenceDate": "2026-03-02",
                "lastChangeDateTime": "2026-02-28T23:00:00+00:00",
            }
            for name, amount in (
                ("closingBooked", "184312.50"),
                ("expected", "184442.50"),
                ("interimAvailable", "184093.50"),
            )
        ],
    }
    for path in ("/v1/accounts?withBalance=true", f"/v1/accounts/{own}?withBalance=true"):
        body = listed(kari, path)
        shown = body["account"] if "account" in body else body["accounts"][0]
        assert shown["balances"] == balances["balances"]
        assert list(shown)[-2:] == ["balances", "_links"]
    assert "balances" not in listed(kari, "/v1/accounts?withBalance=false")["accounts"][0]


def test_only_shared_accounts_are_listed_and_another_one_is_not_covered(tpp: DeskClient) -> None:
    client = tpp.log_in(KARI, accounts=["NO6399901000022"])
    assert [a["iban"] for a in listed(client, "/v1/accounts")["accounts"]] == ["NO6399901000022"]
    refused = client.get(f"/v1/accounts/{account_id(client)}/balances")
    assert (refused.status, refused.json()["tppMessages"][0]["code"]) == (401, "CONSENT_INVALID")
    assert "scaRedirect" in refused.json()["_links"]
    foreign = client.get(f"/v1/accounts/{account_id(client, 'NO4299901100019')}")
    assert (foreign.status, messages(foreign)) == (404, [("RESOURCE_UNKNOWN", "id")])


def put(client: DeskClient, path: str, **change: str) -> None:
    """Replace a sandbox resource by itself with a change."""
    assert client.put(path, json={**listed(client, path), **change}).status == 200


def test_an_account_that_another_customer_has_got_is_not_listed(kari: DeskClient) -> None:
    assert len(listed(kari, "/v1/accounts")["accounts"]) == 2
    put(kari, f"/v1/sandbox/accounts/{account_id(kari)}", customerNumber=EVEN)
    (left,) = listed(kari, "/v1/accounts?withBalance=true")["accounts"]
    assert left["iban"] == "NO6399901000022"
    for link in left["_links"].values():
        assert kari.get(link["href"]).status == 200


def test_a_customer_who_is_no_longer_private_is_not_known_any_more(kari: DeskClient) -> None:
    customer = kari.service.bank.documents.first(CUSTOMER, customerNumber=KARI)
    assert customer is not None
    body = {"customerNumber": KARI, "name": "Kari Kladd", "type": "corporate"}
    assert kari.put(f"/v1/sandbox/customers/{customer['id']}", json=body).status == 200
    for path in ("/v1/accounts", "/v1/card-accounts", f"/v1/accounts/{account_id(kari)}"):
        answer = kari.get(path)
        assert (answer.status, messages(answer)) == (401, [("PSU_CREDENTIALS_INVALID", "PSU-ID")])


def test_an_account_whose_engagement_is_over_is_not_listed(tpp: DeskClient) -> None:
    engagements = [
        {"customer": KARI, "account": {"iban": iban}, "roles": ["VIEW"]}
        for iban in ("NO2799911000012", "NO0599911000020")
    ]
    path, body = "/v1/sandbox/agreements", {"owner": "310001007", "name": "Nettbank", "engagements": engagements}
    agreements = [tpp.post(path, json=body).json() for _ in range(2)]
    client = tpp.log_in(KARI, agreement=agreements[0]["agreementId"])
    lost = listed(client, "/v1/accounts")["accounts"][1]
    gone = f"{path}/{agreements[0]['agreementId']}/engagements/{agreements[0]['engagements'][1]['engagementId']}"
    assert client.delete(gone).status == 204
    assert [a["iban"] for a in listed(client, "/v1/accounts")["accounts"]] == ["NO2799911000012"]
    # the person still reaches it under the other agreement: own, but not shared here
    assert {client.get(link["href"]).status for link in lost["_links"].values()} == {401}


def test_links_are_absolute_when_the_bank_is_told_so(kari: DeskClient, service: BankService) -> None:
    service.bank.change_settings({"links": "absolute"})
    link = listed(kari, "/v1/accounts")["accounts"][0]["_links"]["self"]["href"]
    assert link == f"http://127.0.0.1:8080/v1/accounts/{account_id(kari)}"


def test_a_transaction_list_goes_ninety_days_back_newest_first(kari: DeskClient) -> None:
    body = listed(kari, f"/v1/accounts/{account_id(kari)}/transactions")
    assert list(body) == ["account", "transactions"]
    assert list(body["transactions"]) == ["booked", "pending", "_links"]
    dates = [entry["bookingDate"] for entry in body["transactions"]["booked"]]
    assert dates == sorted(dates, reverse=True)
    assert dates[-1] >= "2025-12-02"
    assert body["transactions"]["booked"][0] == {
        "bankTransactionCode": "PMNT-CCRD-POSD",
        "transactionId": body["transactions"]["booked"][0]["transactionId"],
        "bookingDate": "2026-02-27",
        "valueDate": "2026-02-26",
        "transactionAmount": {"amount": "-412.35", "currency": "NOK"},
        "creditorName": "Kålroten Dagligvare",
        "debtorName": "Kari Kladd",
        "debtorAccount": {"bban": "99901000014", "iban": MAIN, "currency": "NOK"},
        "debtorAgent": "BEMUNO22XXX",
        "remittanceInformationUnstructured": "Varekjøp Kålroten",
        "remittanceInformationUnstructuredArray": ["Varekjøp Kålroten"],
        "proprietaryBankTransactionCode": "Varekjøp",
    }
    pending = body["transactions"]["pending"]
    assert [entry["transactionAmount"]["amount"] for entry in pending] == ["349.00", "-219.00"]
    assert all("bookingDate" not in entry for entry in pending)


def test_links_lead_through_pages_that_partition_the_list_and_back(kari: DeskClient) -> None:
    path = f"/v1/accounts/{account_id(kari)}/transactions"
    whole = entries(listed(kari, f"{path}?limit=500"))
    walked, target = [], f"{path}?limit=7&dateTo=2026-03-04"
    while True:
        body = listed(kari, target)
        walked.append(entries(body))
        links = body["transactions"]["_links"]
        if "next" not in links:
            break
        target = links["next"]["href"]
        query = parse_qs(urlsplit(target).query)
        assert (query["dateFrom"], query["dateTo"]) == (["2025-12-02"], ["2026-03-04"])
    assert [entry for page in walked for entry in page] == whole
    back = [walked[-1]]
    while "previous" in (links := body["transactions"]["_links"]):
        body = listed(kari, links["previous"]["href"])
        back.insert(0, entries(body))
    assert back == walked
    assert listed(kari, links["self"]["href"]) == body


def test_the_page_before_one_that_starts_early_keeps_the_limit(kari: DeskClient) -> None:
    path = f"/v1/accounts/{account_id(kari)}/transactions"
    body = listed(kari, f"{path}?offset=3&limit=10")
    previous = listed(kari, body["transactions"]["_links"]["previous"]["href"])
    assert entries(previous) == entries(listed(kari, f"{path}?offset=0&limit=10"))


def test_a_booking_between_two_pages_moves_the_others_down_by_one(kari: DeskClient) -> None:
    account = ok(kari.get("/v1/accounts"))["accounts"][0]["resourceId"]
    path = f"/v1/accounts/{account}/transactions?bookingStatus=booked&limit=5"

    def pages() -> Iterator[tuple[list[str], str]]:
        link = path
        for _ in range(2):
            page = ok(kari.get(link))["transactions"]
            link = page["_links"]["next"]["href"]
            yield [entry["transactionId"] for entry in page["booked"]], link

    (first, _), (second, _) = pages()
    reading = pages()
    next(reading)
    ok(kari.post(f"/v1/sandbox/accounts/{account}/transactions", json={"amount": 1}), 201)
    assert next(reading)[0] == [first[-1], *second[:-1]]


def test_what_is_pending_stands_between_the_dates_by_the_date_it_shows(kari: DeskClient) -> None:
    for first, last, days in (
        ("2026-03-02", "2026-03-02", []),
        ("2026-03-02", "2026-03-03", ["2026-03-03"]),
        ("2026-03-03", "2026-03-05", ["2026-03-04", "2026-03-03"]),
        ("2026-03-04", "2026-03-05", ["2026-03-04"]),
        ("2026-03-05", "2026-03-05", []),
    ):
        path = f"accounts/{account_id(kari)}/transactions"
        body = listed(kari, f"/v1/{path}?bookingStatus=pending&dateFrom={first}&dateTo={last}")
        assert [entry["valueDate"] for entry in body["transactions"]["pending"]] == days, first
        answer = kari.get(f"/v1/sandbox/{path}?fromDate={first}&toDate={last}").json()
        assert [entry["valueDate"] for entry in answer if not entry["bookingDate"]] == days, first


@pytest.mark.parametrize("asked", ["dateTo=2025-01-31", "dateFrom=2025-01-01&dateTo=2025-01-31"])
@pytest.mark.parametrize("address", ["192.0.2.1", None])
def test_the_self_link_of_a_list_that_ends_before_its_default_beginning_can_be_followed(
    kari: DeskClient, asked: str, address: str | None
) -> None:
    attended = {"PSU-IP-Address": address}
    body = listed(kari, f"/v1/accounts/{account_id(kari)}/transactions?{asked}", headers=attended)
    assert listed(kari, body["transactions"]["_links"]["self"]["href"], headers=attended) == body


def test_without_the_psu_no_link_names_a_first_date_that_was_not_kept_to(kari: DeskClient) -> None:
    path = f"/v1/accounts/{account_id(kari)}/transactions"
    alone = {"headers": {"PSU-IP-Address": None}}
    for asked, query in (
        ("dateFrom=2020-01-01&dateTo=2026-02-01", "dateFrom=2025-12-02&dateTo=2026-02-01"),
        ("dateFrom=2020-01-01&dateTo=2020-02-01", "dateTo=2020-02-01"),
    ):
        links = listed(kari, f"{path}?{asked}", **alone)["transactions"]["_links"]
        assert links["self"]["href"] == f"{path}?bookingStatus=both&{query}&offset=0&limit=100"


def test_in_production_mode_all_pending_ones_come_with_every_page(kari: DeskClient, service: BankService) -> None:
    service.bank.change_settings({"pending": "unfiltered"})
    path = f"/v1/accounts/{account_id(kari)}/transactions"
    body = listed(kari, f"{path}?dateFrom=2026-01-01&dateTo=2026-01-31&limit=2")["transactions"]
    assert (len(body["pending"]), len(body["booked"])) == (2, 2)
    following = listed(kari, body["_links"]["next"]["href"])["transactions"]
    assert following["pending"] == body["pending"]
    assert following["booked"] != body["booked"]


def test_a_pending_transaction_is_booked_when_its_day_comes(kari: DeskClient, service: BankService) -> None:
    path = f"/v1/accounts/{account_id(kari)}"
    before = listed(kari, f"{path}/transactions?bookingStatus=pending")["transactions"]["pending"]
    advance(service, hours=22)  # past 6 o'clock tomorrow
    kari.log_in(KARI)
    after = listed(kari, f"{path}/transactions")["transactions"]
    assert [entry["transactionId"] for entry in after["pending"]] == [before[0]["transactionId"]]
    booked = after["booked"][0]
    assert (booked["transactionId"], booked["bookingDate"]) == (before[1]["transactionId"], "2026-03-03")
    balances = listed(kari, f"{path}/balances")["balances"]
    assert balances[0]["balanceAmount"]["amount"] == "184093.50"


def posted(client: DeskClient, account: str, **members: str) -> str:
    """The id of a transaction of sandbox data."""
    sent = {"amount": "-1.00", "currency": "NOK", **members}
    return str(ok(client.post(f"/v1/sandbox/accounts/{account}/transactions", json=sent), 201)["id"])


def test_without_the_psu_nothing_older_than_ninety_days_is_shown(kari: DeskClient, service: BankService) -> None:
    own = account_id(kari)
    advance(service, minutes=30)
    old = posted(kari, own, bookingDate="2025-10-01", valueDate="2025-10-01")
    path = f"/v1/accounts/{own}/transactions"
    assert entries(listed(kari, f"{path}?dateFrom=2025-09-01&limit=500"))[-1] == old
    assert kari.get(f"{path}/{old}").status == 200
    alone = {"headers": {"PSU-IP-Address": None}}
    body = listed(kari, f"{path}?dateFrom=2025-09-01&limit=500", **alone)
    assert old not in entries(body)
    assert "dateFrom=2025-12-02" in body["transactions"]["_links"]["self"]["href"]
    hidden = kari.get(f"{path}/{old}", **alone)
    assert (hidden.status, messages(hidden)) == (404, [("RESOURCE_UNKNOWN", "transactionId")])


@pytest.mark.parametrize(("booked", "status"), [("2025-12-02", 200), ("2025-12-01", 404)])
def test_without_the_psu_details_are_told_of_what_was_booked_in_the_last_ninety_days(
    kari: DeskClient, booked: str, status: int
) -> None:
    own = account_id(kari)
    path = f"/v1/accounts/{own}/transactions/{posted(kari, own, bookingDate=booked, valueDate='2025-12-05')}"
    assert kari.get(path, headers={"PSU-IP-Address": None}).status == status


def test_the_entries_of_a_batch_are_not_told_in_the_private_context(kari: DeskClient, service: BankService) -> None:
    own = account_id(kari)
    transaction = service.bank.documents.find(TRANSACTION, accountId=own)[0]
    entries = [{"amount": "-1.00", "currency": "NOK", "creditorName": "Even Eksempel"}]
    service.bank.documents.put(TRANSACTION, {**transaction, "batch": {"entries": entries}})
    details = listed(kari, f"/v1/accounts/{own}/transactions/{transaction['id']}")["transactionsDetails"]
    assert not {"batchIndicator", "batchNumberOfTransactions", "entryDetails", "_links"} & details.keys()


def test_details_of_a_transaction_with_exchange_and_reference(tpp: DeskClient) -> None:
    client = tpp.log_in(SIRI)
    own = account_id(client, "NO2799911000012")
    path = f"/v1/accounts/{own}/transactions"
    body = listed(client, f"{path}?bookingStatus=booked&limit=500")
    kid = next(e for e in body["transactions"]["booked"] if e.get("creditorName") == "Mølla Mel AS")
    assert listed(client, f"{path}/{kid['transactionId']}") == {"transactionsDetails": kid}
    assert kid["remittanceInformationStructuredArray"] == [{"reference": "120014782", "referenceType": "SCOR"}]
    link = {"href": f"{path}/{kid['transactionId']}", "verbs": ["GET"]}
    assert kid["_links"] == {"transactionDetails": link}
    unknown = client.get(f"{path}/nothing")
    assert (unknown.status, messages(unknown)) == (404, [("RESOURCE_UNKNOWN", "transactionId")])


def test_a_batch_shows_its_entries_in_corporate_context_each_with_its_own_details(tpp: DeskClient) -> None:
    client = tpp.log_in(SIRI)
    path = f"/v1/accounts/{account_id(client, 'NO2799911000012')}/transactions"
    body = listed(client, f"{path}?limit=500")
    batch = next(e for e in body["transactions"]["booked"] if e.get("batchIndicator"))
    assert list(batch)[:2] == ["batchIndicator", "batchNumberOfTransactions"]
    assert "entryDetails" not in batch
    details = listed(client, f"{path}/{batch['transactionId']}")["transactionsDetails"]
    assert {name: details[name] for name in details if name != "entryDetails"} == batch
    assert len(details["entryDetails"]) == batch["batchNumberOfTransactions"] == 4
    first = details["entryDetails"][0]
    assert first["transactionAmount"] == {"amount": "-36480.55", "currency": "NOK"}
    item = listed(client, first["_links"]["transactionDetails"]["href"])["transactionsDetails"]
    assert item["creditorName"] == first["creditorName"] == "Kari Kladd"
    assert "batchIndicator" not in item


def first_booked(client: DeskClient, own: str) -> dict[str, Any]:
    body = listed(client, f"/v1/accounts/{own}/transactions?bookingStatus=booked")
    entry: dict[str, Any] = body["transactions"]["booked"][0]
    return entry


def test_a_list_shows_what_its_documents_say_now_whatever_changed_them(kari: DeskClient, service: BankService) -> None:
    own, documents = account_id(kari), service.bank.documents
    before = first_booked(kari, own)
    image = documents.image()
    document = documents.get(TRANSACTION, before["transactionId"])
    assert document is not None
    with suppress(LookupError), documents.transaction():
        documents.put(TRANSACTION, {**document, "remittanceInformationUnstructured": "amended"})
        assert first_booked(kari, own)["remittanceInformationUnstructured"] == "amended"
        raise LookupError("and undone")
    assert first_booked(kari, own) == before
    documents.put(TRANSACTION, {**document, "remittanceInformationUnstructured": "amended"})
    assert first_booked(kari, own)["remittanceInformationUnstructured"] == "amended"
    documents.restore(image)
    assert first_booked(kari, own) == before


def test_the_same_booking_is_shown_to_each_caller_in_its_own_form(tpp: DeskClient, service: BankService) -> None:
    own = account_id(tpp.log_in(SIRI), "NO2799911000012")
    assert first_booked(tpp, own)["_links"]["transactionDetails"]["href"].startswith("/v1/")
    service.bank.change_settings({"links": "absolute"})
    assert first_booked(tpp, own)["_links"]["transactionDetails"]["href"].startswith("http://127.0.0.1:8080/v1/")
