"""Sandbox data: accounts, card accounts and their transactions (sandbox-data.md)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from emulator.api.service import BankService
from emulator.bank.accounts import ledger
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CONSENT, QUOTA, TRANSACTION
from emulator.bank.threads import run_to_end
from tests.api.control_desk import ControlDesk
from tests.api.desk import DeskClient, advance, approve, messages, ok
from tests.known_state import BULK, DOMESTIC, EVEN, KARI, PAYMENT, PERIODIC
from tests.unit.payments.world import bulk, domestic

ACCOUNTS = "/v1/sandbox/accounts"
CARDS = "/v1/sandbox/card-accounts"

POSTED = {
    "customerNumber": KARI,
    "accountName": "Ny konto",
    "bban": "99901000030",
    "iban": "NO4199901000030",
    "currency": "NOK",
    "product": "Konto",
    "cashAccountType": "Current",
    "creditLine": "500.00",
    "balances": [
        {"balanceType": "EXPECTED", "balanceAmount": {"amount": "1.00", "currency": "NOK"}},
        {"balanceType": "closingBooked", "balanceAmount": {"amount": 1000, "currency": "NOK"}},
    ],
}
CARD = {
    "customerNumber": KARI,
    "maskedPan": "123456xxxxxx7890",
    "currency": "NOK",
    "creditLimit": "2000.00",
    "balances": [{"balanceType": "AUTHORISED", "balanceAmount": {"amount": "-50.00", "currency": "NOK"}}],
    "cardId": "1",
    "cardIdVNo": "2",
    "accountNumber": "99901000022",
    "expiry": "2030-01-01",
    "name": "Kort",
    "product": "Kredittkort",
    "status": "ENABLED",
}


@pytest.fixture
def account(tpp: DeskClient) -> str:
    """The path of a new account."""
    return f"{ACCOUNTS}/{ok(tpp.post(ACCOUNTS, json=POSTED), 201)['id']}"


def balanced(service: BankService) -> bool:
    return bool(run_to_end(ledger.reporting(service.bank))["balanced"])


def test_an_account_is_answered_as_it_was_posted(tpp: DeskClient, service: BankService) -> None:
    account = ok(tpp.post(ACCOUNTS, json=POSTED), 201)
    path = f"{ACCOUNTS}/{account['id']}"
    assert account == {
        **POSTED,
        "id": account["id"],
        "_links": {
            "self": {"href": path, "verbs": ["GET", "PUT", "DELETE"]},
            "transactions": {"href": f"{path}/transactions", "verbs": ["GET", "POST", "DELETE"]},
        },
    }
    assert ok(tpp.get(path)) == account
    assert ok(tpp.get(ACCOUNTS))[0] == account
    stored = service.bank.documents.get(ACCOUNT, account["id"])
    assert stored is not None
    assert (stored["cashAccountType"], stored["usage"], stored["booked"], stored["opening"]) == (
        "CACC",
        "PRIV",
        "1000.00",
        "1000.00",
    )
    assert balanced(service)


def test_its_balances_are_what_is_booked_once_money_has_moved(
    tpp: DeskClient, service: BankService, account: str
) -> None:
    ledger.book(service.bank, account.rpartition("/")[2], {"amount": "-0.50"})
    amounts = [balance["balanceAmount"]["amount"] for balance in ok(tpp.get(account))["balances"]]
    assert amounts == ["999.50", 999.5]


def test_its_credit_line_is_what_a_scenario_has_made_of_it(tpp: DeskClient, desk: ControlDesk) -> None:
    for posted, shown in (("500.00", "900.00"), (500, 900)):
        path = f"{ACCOUNTS}/{ok(tpp.post(ACCOUNTS, json={**POSTED, 'creditLine': posted}), 201)['id']}"
        assert ok(tpp.get(path))["creditLine"] == posted
        change = {"account": POSTED["iban"], "creditLine": "900.00"}
        desk.do("POST", "/scenario", {"scenario": "more", "start": {"from": "current", "change": [change]}})
        assert ok(tpp.get(path))["creditLine"] == shown
        ok(tpp.delete(path), 204)


def test_replacing_an_account_restates_its_balance_and_keeps_its_transactions(
    tpp: DeskClient, service: BankService, account: str
) -> None:
    ok(tpp.post(f"{account}/transactions", json={"amount": 25, "currency": "NOK"}), 201)
    body = {**POSTED, "accountName": "Nytt navn", "cashAccountType": "SVGS", "bban": "99901000049"}
    body |= {"iban": "NO1199901000049", "balances": [_balance(2000)]}
    replaced = ok(tpp.put(account, json=body))
    assert {name: replaced[name] for name in body} == body
    assert len(ok(tpp.get(f"{account}/transactions"))) == 1
    stored = service.bank.documents.get(ACCOUNT, account.rpartition("/")[2])
    assert stored is not None
    assert (stored["booked"], stored["opening"], stored["cashAccountType"]) == ("2000.00", "1975.00", "SVGS")
    assert balanced(service)
    refused = tpp.put(account, json={**body, "currency": "EUR", "balances": []})
    assert (refused.status, messages(refused)) == (409, [("CONFLICT", "currency")])


def test_the_currency_of_an_account_stays_while_a_payment_from_it_is_under_way(tpp: DeskClient, account: str) -> None:
    tpp.log_in(KARI)
    straks = "/v1/payments/instant-norwegian-domestic-credit-transfers-straks"
    order = domestic(debtorAccount={"bban": POSTED["bban"], "currency": "NOK"})
    payment_id = ok(tpp.post(straks, json=order), 201)["paymentId"]
    in_yen = {**POSTED, "currency": "JPY", "creditLine": "500", "balances": []}
    refused = tpp.put(account, json=in_yen)
    assert (refused.status, messages(refused)) == (409, [("CONFLICT", "currency")])
    assert tpp.delete(f"{straks}/{payment_id}").status == 204
    assert ok(tpp.put(account, json=in_yen))["currency"] == "JPY"


def _balance(amount: Any, currency: str = "NOK") -> dict[str, Any]:
    return {"balanceType": "EXPECTED", "balanceAmount": {"amount": amount, "currency": currency}}


def test_an_account_that_cannot_be_is_refused(tpp: DeskClient, service: BankService) -> None:
    for change, status, expected in (
        ({"customerNumber": "99999999"}, 400, [("RESOURCE_UNKNOWN", "customerNumber")]),
        ({"bban": "99901000014"}, 409, [("CONFLICT", "bban")]),
        ({"iban": "NO8599901000014"}, 409, [("CONFLICT", "iban")]),
        (
            {"balances": [_balance(1), _balance(1, "EUR")]},
            400,
            [("FORMAT_ERROR", "balances[1].balanceAmount.currency")],
        ),
        ({"cashAccountType": "OTHER"}, 400, [("FORMAT_ERROR", "cashAccountType")]),
    ):
        before = service.bank.documents.dump()
        refused = tpp.post(ACCOUNTS, json=POSTED | change)
        assert (refused.status, messages(refused)) == (status, expected), change
        assert service.bank.documents.dump() == before, change


def test_a_removed_account_is_gone_everywhere(tpp: DeskClient, service: BankService) -> None:
    documents = service.bank.documents
    client = tpp.log_in(KARI)
    held = documents.find(ACCOUNT, bban="99901000014")[0]["id"]
    ok(client.get(f"/v1/accounts/{held}/balances", headers={"PSU-IP-Address": None}))
    assert documents.count(QUOTA) == 1
    ok(tpp.delete(f"{ACCOUNTS}/{held}"), 204)
    assert [a["iban"] for a in ok(client.get("/v1/accounts"))["accounts"]] == ["NO6399901000022"]
    assert documents.find(TRANSACTION, accountId=held) == []
    assert documents.count(QUOTA) == 0
    assert all(held not in consent["accounts"] for consent in documents.all(CONSENT))
    for path, name in (
        (f"/v1/accounts/{held}", "id"),
        (f"{ACCOUNTS}/{held}", "mockAccountId"),
        (f"{ACCOUNTS}/{held}/transactions", "mockAccountId"),
    ):
        answer = client.get(path)
        assert (answer.status, messages(answer)) == (404, [("RESOURCE_UNKNOWN", name)])
    firm = documents.find(ACCOUNT, bban="99911000012")[0]["id"]
    ok(tpp.delete(f"{ACCOUNTS}/{firm}"), 204)
    assert all(firm not in agreement["accounts"] for agreement in documents.all(AGREEMENT))
    assert balanced(service)


def test_a_sandbox_transaction_has_every_field_in_whole_units(tpp: DeskClient, account: str) -> None:
    body = {
        "amount": 99.5,
        "currency": "NOK",
        "valueDate": "2026-03-02",
        "bookingDate": "2026-03-01",
        "creditorName": "Kari Kladd",
        "creditorAccount": {"iban": "NO4199901000030", "bban": "99901000030"},
        "debtorAccount": {"bban": "99921000010"},
        "ultimateDebtor": "Bak",
        "purposeCode": "OTHR",
    }
    transaction = ok(tpp.post(f"{account}/transactions", json=body), 201)
    shown = ok(tpp.get(f"{account}/transactions"))
    expected = {
        "id": transaction["id"],
        "amount": 100,
        "currency": "NOK",
        "valueDate": "2026-03-02",
        "remittanceInformationUnstructured": "",
        "creditorName": "Kari Kladd",
        "creditorAccount": {"iban": "NO4199901000030", "bban": "99901000030"},
        "debtorName": "",
        "debtorAccount": {"iban": "", "bban": "99921000010"},
        "bankTransactionCode": "PMNT-RCDT-DMCT",
        "ultimateDebtor": "Bak",
        "ultimateCreditor": "",
        "purposeCode": "OTHR",
        "bookingDate": "2026-03-01",
        "_links": transaction["_links"],
    }
    assert shown == [expected]
    assert ok(tpp.get(transaction["_links"]["self"]["href"])) == expected
    client = tpp.log_in(KARI)
    booked = ok(client.get(f"/v1/accounts/{account.rpartition('/')[2]}/transactions"))["transactions"]["booked"]
    assert booked[0]["transactionAmount"] == {"amount": "99.50", "currency": "NOK"}


@pytest.mark.parametrize(("amount", "code"), [(1, "PMNT-RCDT-DMCT"), (-1, "PMNT-ICDT-DMCT")])
def test_a_transaction_posted_without_a_code_is_a_domestic_transfer(
    tpp: DeskClient, account: str, amount: int, code: str
) -> None:
    """A code has 4 to 14 characters; `""` is how a listing that is posted back may leave it out."""
    bare = {"amount": amount, "currency": "NOK"}
    ok(tpp.post(f"{account}/transactions", json=[bare, {**bare, "bankTransactionCode": ""}]), 201)
    shown = ok(tpp.get(f"{account}/transactions"))
    listed = f"/v1/accounts/{account.rpartition('/')[2]}/transactions"
    booked = ok(tpp.log_in(KARI).get(listed))["transactions"]["booked"]
    assert [entry["bankTransactionCode"] for entry in [*shown, *booked]] == [code] * 4


def test_amounts_are_rounded_half_to_even_and_held_inside_int32(tpp: DeskClient, account: str) -> None:
    for posted, whole in (
        (0.5, 0),
        (1.5, 2),
        (2.5, 2),
        (-0.5, 0),
        (-1.5, -2),
        (2.51, 3),
        ("2147483647.49", 2147483647),
        (99999999999, 2147483647),
        (-99999999999, -2147483648),
    ):
        ok(tpp.post(f"{account}/transactions", json={"amount": posted}), 201)
        assert ok(tpp.get(f"{account}/transactions"))[0]["amount"] == whole, posted


def test_posted_transactions_are_history_and_leave_the_balance(
    tpp: DeskClient, service: BankService, account: str
) -> None:
    ok(tpp.post(f"{account}/transactions", json=[{"amount": -300}, {"amount": 50}]), 201)
    stored = service.bank.documents.get(ACCOUNT, account.rpartition("/")[2])
    assert stored is not None
    assert (stored["booked"], stored["opening"]) == ("1000.00", "1250.00")
    assert balanced(service)
    advance(service, days=1)
    ok(tpp.delete(f"{account}/transactions"), 204)
    assert ok(tpp.get(f"{account}/transactions")) == []
    stored = service.bank.documents.get(ACCOUNT, account.rpartition("/")[2])
    assert stored is not None
    assert (stored["booked"], stored["opening"]) == ("1000.00", "1000.00")
    assert stored["lastChange"] == service.bank.clock.stamp()
    assert balanced(service)


@pytest.mark.parametrize(
    ("booking", "value"),
    [
        ("2026-03-01", "2026-03-02"),
        ("2026-03-02", "2026-02-27"),
        ("2026-03-05", "2026-03-02"),
        ("2026-03-09", "2026-04-01"),
    ],
)
def test_booking_and_value_date_lie_on_either_side_of_each_other_and_ahead(
    tpp: DeskClient, service: BankService, account: str, booking: str, value: str
) -> None:
    created = tpp.post(f"{account}/transactions", json={"amount": 1, "bookingDate": booking, "valueDate": value})
    shown = ok(tpp.get(f"{account}/transactions/{ok(created, 201)['id']}"))
    assert (shown["bookingDate"], shown["valueDate"]) == (booking, value)
    assert balanced(service)


def test_a_transaction_that_cannot_be_is_refused_with_every_mistake(
    tpp: DeskClient, service: BankService, account: str
) -> None:
    for change, expected in (
        ({"currency": "EUR"}, ["currency"]),
        ({"amount": 0.001}, ["amount"]),
        ({"bookingDate": "2026-02-30", "valueDate": "soon"}, ["valueDate", "bookingDate"]),
    ):
        before = service.bank.documents.dump()
        good = {"amount": 1, "currency": "NOK", "bookingDate": "2026-03-02", "valueDate": "2026-03-02"}
        refused = tpp.post(f"{account}/transactions", json=good | change)
        assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", path) for path in expected]), change
        listed = tpp.post(f"{account}/transactions", json=[good, good | change])
        assert (listed.status, messages(listed)) == (400, [("FORMAT_ERROR", f"[1].{path}") for path in expected]), (
            change
        )
        assert service.bank.documents.dump() == before, change


@pytest.mark.parametrize(("currency", "fine", "finer"), [("NOK", 100.1, 100.001), ("JPY", "10.0", 10.5)])
def test_without_a_currency_an_amount_may_be_as_fine_as_that_of_the_account(
    tpp: DeskClient, service: BankService, currency: str, fine: Any, finer: Any
) -> None:
    path = f"{ACCOUNTS}/{ok(tpp.post(ACCOUNTS, json={**POSTED, 'currency': currency, 'balances': []}), 201)['id']}"
    ok(tpp.post(f"{path}/transactions", json={"amount": fine}), 201)
    before = service.bank.documents.dump()
    for body, wrong in ({"amount": finer}, "amount"), ([{"amount": fine}, {"amount": finer}], "[1].amount"):
        refused = tpp.post(f"{path}/transactions", json=body)
        assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", wrong)])
    assert service.bank.documents.dump() == before


def test_the_listing_is_cut_by_dates_offset_and_limit(tpp: DeskClient, account: str) -> None:
    days = [f"2026-02-{day:02}" for day in range(1, 11)]
    posted = [{"amount": index, "bookingDate": day, "valueDate": day} for index, day in enumerate(days, 1)]
    ok(tpp.post(f"{account}/transactions", json=posted), 201)

    def amounts(query: str) -> list[int]:
        return [entry["amount"] for entry in ok(tpp.get(f"{account}/transactions{query}"))]

    assert amounts("") == list(range(10, 0, -1))
    assert amounts("?fromDate=2026-02-03&toDate=2026-02-05") == [5, 4, 3]
    assert amounts("?offset=2&limit=3") == [8, 7, 6]
    assert amounts("?offset=10") == []
    for query, path in (("limit=0", "limit"), ("limit=2147483648", "limit"), ("offset=-1", "offset")):
        refused = tpp.get(f"{account}/transactions?{query}")
        assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", path)])
    refused = tpp.get(f"{account}/transactions?fromDate=2026-02-05&toDate=2026-02-04")
    assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", "fromDate")])


def test_what_was_posted_last_stands_first_also_while_the_clock_stands_still(tpp: DeskClient, account: str) -> None:
    card = f"{CARDS}/{ok(tpp.post(CARDS, json=CARD), 201)['resourceId']}"
    money = [{"transactionAmount": {"amount": f"{index}.00", "currency": "NOK"}} for index in range(1, 7)]
    for posted in (slice(0, 3), slice(3, 4), slice(4, 4), slice(4, 6)):
        ok(tpp.post(f"{account}/transactions", json=[{"amount": index} for index in range(1, 7)][posted]), 201)
        ok(tpp.post(f"{card}/transactions", json=money[posted]), 201)
        ok(tpp.put(account, json=POSTED))
        ok(tpp.put(card, json=CARD))
    assert [entry["amount"] for entry in ok(tpp.get(f"{account}/transactions"))] == [6, 5, 4, 3, 2, 1]
    shown = [entry["transactionAmount"] for entry in ok(tpp.get(f"{card}/transactions"))]
    assert shown == [one["transactionAmount"] for one in reversed(money)]


def reserved(kari: DeskClient) -> str:
    """The account of a payment of 25.50 that is approved and not booked."""
    body = domestic(creditorName="Butikk", instructedAmount={"amount": "25.50", "currency": "NOK"})
    approve(kari.service, ok(kari.post(DOMESTIC, json=body), 201)["paymentId"])
    return str(kari.service.bank.documents.find(ACCOUNT, bban="99901000014")[0]["id"])


def test_what_the_listing_shows_of_absent_references_can_be_posted_again(tpp: DeskClient, service: BankService) -> None:
    held = service.bank.documents.find(ACCOUNT, bban="99901000014")[0]["id"]
    absent = {"iban": "", "bban": ""}
    body = {"amount": 1, "currency": "NOK", "creditorAccount": absent, "debtorAccount": {**absent, "bban": "1"}}
    transaction = ok(tpp.post(f"{ACCOUNTS}/{held}/transactions", json=body), 201)
    stored = service.bank.documents.get(TRANSACTION, transaction["id"]) or {}
    assert "creditorAccount" not in stored
    assert stored["debtorAccount"] == {"bban": "1"}
    shown = ok(tpp.get(f"{ACCOUNTS}/{held}/transactions/{transaction['id']}"))
    assert (shown["creditorAccount"], shown["debtorAccount"]) == (absent, {"iban": "", "bban": "1"})


def test_removing_transactions_leaves_what_payments_under_way_show(kari: DeskClient, service: BankService) -> None:
    held = reserved(kari)
    ok(kari.delete(f"{ACCOUNTS}/{held}/transactions"), 204)
    assert [entry["creditorName"] for entry in ok(kari.get(f"{ACCOUNTS}/{held}/transactions"))] == ["Butikk"]
    advance(service, days=3)  # the fixture's pending ones are gone too
    assert service.bank.documents.count(TRANSACTION, accountId=held) == 1
    assert balanced(service)


def test_an_account_is_paid_from_as_long_as_a_card_is_settled_through_it(tpp: DeskClient, service: BankService) -> None:
    tpp.log_in(KARI)
    first, second = (ok(tpp.post(CARDS, json=CARD), 201)["resourceId"] for _ in range(2))
    other = {"identification": "99901000022", "schemeNameProprietary": "creditCardAccount"}

    def paid() -> int:
        body = {
            "instructedAmount": {"amount": "1.00", "currency": "NOK"},
            "creditorName": "Even",
            "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
            "debtorAccount": {"other": other, "currency": "NOK"},
        }
        return tpp.post("/v1/payments/norwegian-domestic-credit-transfers", json=body).status

    ok(tpp.delete(f"{CARDS}/{second}"), 204)
    assert paid() == 201
    (account,) = service.bank.documents.find(ACCOUNT, bban="99901000022")
    shown = ok(tpp.get(f"{ACCOUNTS}/{account['id']}"))
    moved = {name: shown[name] for name in POSTED if name in shown}
    ok(tpp.put(f"{ACCOUNTS}/{account['id']}", json={**moved, "bban": POSTED["bban"], "iban": POSTED["iban"]}))
    other["identification"] = POSTED["bban"]
    assert paid() == 201
    ok(tpp.put(f"{CARDS}/{first}", json={**CARD, "accountNumber": "99901000014"}))
    assert paid() == 403


def test_a_card_account_is_made_read_replaced_and_removed(tpp: DeskClient) -> None:
    card = ok(tpp.post(CARDS, json=CARD), 201)
    path = f"{CARDS}/{card['resourceId']}"
    assert card == {
        **CARD,
        "resourceId": card["resourceId"],
        "_links": {
            "self": {"href": path, "verbs": ["GET", "PUT", "DELETE"]},
            "transactions": {"href": f"{path}/transactions", "verbs": ["GET", "POST", "DELETE"]},
        },
    }
    assert ok(tpp.get(path)) == card
    assert ok(tpp.get(CARDS))[0] == card
    replaced = ok(tpp.put(path, json={**CARD, "name": "Nytt kort", "accountNumber": ""}))
    assert (replaced["name"], replaced["accountNumber"]) == ("Nytt kort", "")
    ok(tpp.delete(path), 204)
    assert tpp.get(path).status == 404
    refused = tpp.post(CARDS, json={**CARD, "customerNumber": "99999999"})
    assert (refused.status, messages(refused)) == (400, [("RESOURCE_UNKNOWN", "customerNumber")])
    refused = tpp.post(CARDS, json={**CARD, "creditLimit": {"amount": 1, "currency": "EUR"}})
    assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", "creditLimit.currency")])


def test_card_transactions_are_made_listed_read_and_removed(tpp: DeskClient) -> None:
    card = ok(tpp.post(CARDS, json=CARD), 201)["resourceId"]
    path = f"{CARDS}/{card}/transactions"
    body = {
        "cardTransactionId": "kjøp-1",
        "bookingDate": "2026-03-01",
        "transactionDate": "2026-02-28",
        "transactionAmount": {"amount": "-117.35", "currency": "NOK"},
        "originalAmount": {"amount": -10, "currency": "EUR"},
        "merchantCategoryCode": "5812",
        "markupFee": {"amount": 2.5, "currency": "NOK"},
        "markupFeePercentage": "2",
        "transactionDetails": "Kafé",
        "invoiced": True,
    }
    transaction = ok(tpp.post(path, json=body), 201)
    assert transaction == {
        **body,
        "id": transaction["id"],
        "_links": {"self": {"href": f"{path}/{transaction['id']}", "verbs": ["GET"]}},
    }
    shown = ok(tpp.get(path))[0]
    assert shown == {
        **body,
        "originalAmount": {"amount": "-10.00", "currency": "EUR"},
        "markupFee": {"amount": "2.50", "currency": "NOK"},
        "maskedPan": CARD["maskedPan"],
        "id": transaction["id"],
        "_links": transaction["_links"],
    }
    assert ok(tpp.get(f"{path}/{transaction['id']}")) == ok(tpp.get(f"{path}/kj%C3%B8p-1")) == shown
    unknown = tpp.get(f"{path}/other")
    assert (unknown.status, messages(unknown)) == (404, [("RESOURCE_UNKNOWN", "transactionId")])
    for change, expected in (
        ({"transactionAmount": {"amount": 1, "currency": "EUR"}}, "transactionAmount.currency"),
        ({"bookingDate": "2026-02-30"}, "bookingDate"),
    ):
        refused = tpp.post(path, json=[body, body | change])
        assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", f"[1].{expected}")])
    assert len(ok(tpp.get(path))) == 1
    ok(tpp.delete(path), 204)
    assert ok(tpp.get(path)) == []


@pytest.mark.parametrize("status", ["blocked", "Deleted"])
def test_a_blocked_or_deleted_account_stays_in_lists_and_refuses_payments(
    tpp: DeskClient, service: BankService, status: str
) -> None:
    """A deleted one cannot be read either; a PUT without status enables it again."""
    created = ok(tpp.post(ACCOUNTS, json={**POSTED, "status": status}), 201)
    assert created["status"] == status.lower()
    owner = tpp.log_in(POSTED["customerNumber"])
    listed = {one["resourceId"]: one for one in ok(owner.get("/v1/accounts?withBalance=true"))["accounts"]}
    shown = listed[created["id"]]
    assert (shown["status"], "balances" in shown) == (status.lower(), status == "blocked")
    body = {**PAYMENT, "debtorAccount": {"bban": POSTED["bban"], "currency": POSTED["currency"]}}
    refused = owner.post(DOMESTIC, json=body)
    assert (refused.status, messages(refused)) == (403, [("FORBIDDEN", "debtorAccount")])
    for path in ("", "/balances", "/transactions", "/transactions/x"):
        answer = owner.get(f"/v1/accounts/{created['id']}{path}")
        gone = (404, [("RESOURCE_UNKNOWN", "id")])
        assert status == "blocked" or (answer.status, messages(answer)) == gone
        assert answer.status == (200 if status == "blocked" and "x" not in path else 404)
    ok(tpp.put(f"{ACCOUNTS}/{created['id']}", json=POSTED))
    ok(owner.get(f"/v1/accounts/{created['id']}/balances"))
    ok(owner.post(DOMESTIC, json=body), 201)
    card = ok(tpp.get("/v1/sandbox/card-accounts"))[0]
    owner = tpp.log_in(card["customerNumber"])
    path = f"/v1/card-accounts/{card['resourceId']}"
    posted = {name: card[name] for name in ("customerNumber", "maskedPan", "currency")}
    ok(tpp.put(f"/v1/sandbox/card-accounts/{card['resourceId']}", json={**posted, "status": status}))
    assert owner.get(f"{path}/balances").status == (200 if status == "blocked" else 404)
    listed_cards = ok(owner.get("/v1/card-accounts?withBalance=true"))["cardAccounts"]
    assert listed_cards[0]["status"] == status.lower()


@pytest.mark.parametrize(
    ("path", "body", "ends"),
    [
        (DOMESTIC, domestic(requestedExecutionDate="2026-03-03"), ["PDNG", "ACCP", "RJCT"]),
        (BULK, bulk("1.00", "2.00", requestedExecutionDate="2026-03-03"), ["PDNG", "ACCP", "RJCT"]),
        (
            PERIODIC,
            domestic(frequency="Weekly", startDate="2026-03-03", endDate="2026-03-10"),
            ["ACTC", "ACTC", "ACSC"],
        ),
    ],
)
def test_an_account_that_is_deleted_after_an_approval_pays_nothing(
    kari: DeskClient, service: BankService, path: str, body: dict[str, Any], ends: list[str]
) -> None:
    account = next(one for one in ok(kari.get(ACCOUNTS)) if one["bban"] == body["debtorAccount"]["bban"])
    payment = ok(kari.post(path, json=body), 201)["paymentId"]
    approve(service, payment)
    sent = {name: value for name, value in account.items() if name not in ("id", "_links")}
    ok(kari.put(f"{ACCOUNTS}/{account['id']}", json={**sent, "status": "deleted"}))
    statuses = []
    for days in (0.5, 1, 30):
        advance(service, days=days)
        statuses.append(ok(kari.get(f"{path}/{payment}/status"))["transactionStatus"])
    assert statuses == ends
    assert not [one for one in service.bank.documents.all(TRANSACTION) if one.get("paymentId") == payment]
    assert service.bank.find(ACCOUNT, account["id"])["reserved"] == "0.00"
    assert balanced(service)


@pytest.mark.parametrize("status", ["enabled", "blocked", "deleted"])
def test_a_payment_to_an_account_is_credited_whatever_its_status(
    kari: DeskClient, service: BankService, status: str
) -> None:
    creditor = ok(kari.post(ACCOUNTS, json={**POSTED, "status": status}), 201)["id"]
    before = Decimal(service.bank.find(ACCOUNT, creditor)["booked"])
    body = domestic("12.50", to=POSTED["bban"])
    payment = ok(kari.post(DOMESTIC, json=body), 201)["paymentId"]
    approve(service, payment)
    advance(service, days=5)
    assert ok(kari.get(f"{DOMESTIC}/{payment}/status"))["transactionStatus"] == "ACSC"
    assert Decimal(service.bank.find(ACCOUNT, creditor)["booked"]) == before + Decimal("12.50")
    assert balanced(service)


@pytest.mark.parametrize("status", ["blocked", "Deleted"])
def test_a_blocked_or_deleted_card_pays_nothing(kari: DeskClient, service: BankService, status: str) -> None:
    """Neither a new payment nor one that waits; the account that it is settled through still pays."""
    (card,) = [one for one in ok(kari.get("/v1/sandbox/card-accounts")) if one["customerNumber"] == KARI]
    other = {"identification": card["accountNumber"], "schemeNameProprietary": "creditCardAccount"}
    by_card = {**PAYMENT, "debtorAccount": {"other": other, "currency": "NOK"}}
    waiting = ok(kari.post(DOMESTIC, json=by_card), 201)["paymentId"]
    posted = {name: card[name] for name in ("customerNumber", "maskedPan", "currency", "accountNumber")}
    address = f"/v1/sandbox/card-accounts/{card['resourceId']}"
    ok(kari.put(address, json={**posted, "status": status}))
    refused = kari.post(DOMESTIC, json=by_card)
    assert (refused.status, messages(refused)) == (403, [("FORBIDDEN", "debtorAccount")])
    assert approve(service, waiting)["code"] == "FORBIDDEN"
    ok(kari.post(DOMESTIC, json={**PAYMENT, "debtorAccount": {"bban": card["accountNumber"], "currency": "NOK"}}), 201)
    ok(kari.put(address, json=posted))
    ok(kari.post(DOMESTIC, json=by_card), 201)


def test_a_joint_account_belongs_to_each_of_its_owners(tpp: DeskClient, service: BankService) -> None:
    body = {**POSTED, "customerNumber": KARI, "owners": [EVEN, KARI]}
    created = ok(tpp.post(ACCOUNTS, json=body), 201)
    assert created["owners"] == [EVEN]
    payment = {**PAYMENT, "debtorAccount": {"bban": POSTED["bban"], "currency": POSTED["currency"]}}
    for who in (KARI, EVEN):
        owner = tpp.log_in(who)
        assert created["id"] in [one["resourceId"] for one in ok(owner.get("/v1/accounts"))["accounts"]]
        ok(owner.get(f"/v1/accounts/{created['id']}/balances"))
        ok(owner.post(DOMESTIC, json=payment), 201)
    listed = ok(tpp.get("/v1/sandbox/customers?includeAccounts=true"))
    held = {one["customerNumber"] for one in listed if created["id"] in [a["id"] for a in one["accounts"]]}
    assert held == {KARI, EVEN}
    for wrong, answer in (
        ({"owners": ["00000000001"]}, (400, [("RESOURCE_UNKNOWN", "owners[0]")])),
        ({"owners": [EVEN, "310001007"]}, (400, [("FORMAT_ERROR", "owners[1]")])),
        ({"owners": [EVEN], "customerNumber": "310001007"}, (400, [("FORMAT_ERROR", "owners[0]")])),
    ):
        refused = tpp.put(f"{ACCOUNTS}/{created['id']}", json={**body, **wrong})
        assert (refused.status, messages(refused)) == answer
    even = next(one for one in ok(tpp.get("/v1/sandbox/customers")) if one["customerNumber"] == EVEN)
    ok(tpp.delete(f"/v1/sandbox/customers/{even['customerId']}"), 204)
    assert "owners" not in ok(tpp.get(f"{ACCOUNTS}/{created['id']}"))
    ok(tpp.put(f"{ACCOUNTS}/{created['id']}", json=POSTED))
    assert "owners" not in ok(tpp.get(f"{ACCOUNTS}/{created['id']}"))


@pytest.mark.parametrize("leaving", [KARI, EVEN])
def test_a_customer_that_becomes_corporate_has_no_joint_account_any_more(tpp: DeskClient, leaving: str) -> None:
    created = ok(tpp.post(ACCOUNTS, json={**POSTED, "customerNumber": KARI, "owners": [EVEN]}), 201)
    customer = next(one for one in ok(tpp.get("/v1/sandbox/customers")) if one["customerNumber"] == leaving)
    firm = {"customerNumber": "310009999", "name": "A Firm", "type": "corporate"}
    ok(tpp.put(f"/v1/sandbox/customers/{customer['customerId']}", json=firm))
    shown = ok(tpp.get(f"{ACCOUNTS}/{created['id']}"))
    assert "owners" not in shown
    ok(tpp.put(f"{ACCOUNTS}/{created['id']}", json={n: v for n, v in shown.items() if n not in ("id", "_links")}))
    if leaving == KARI:
        listed = ok(tpp.log_in(EVEN).get("/v1/accounts"))["accounts"]
        assert created["id"] not in [one["resourceId"] for one in listed]
