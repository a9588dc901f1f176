"""Generated data: as much as was asked for, the same for the same seed, and books that balance."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import pytest
from stdnum.no import orgnr

from emulator.bank import fixtures
from emulator.bank.accounts import ledger
from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CUSTOMER, KINDS, PERSON, TRANSACTION
from emulator.bank.reference import is_account_number, is_kid, is_national_number
from emulator.bank.sandbox import customers as sandbox_customers
from emulator.bank.sandbox import patterns
from emulator.bank.sandbox.generate import DataPlan, generate_in_pieces
from emulator.bank.scheme.execution import next_banking_day
from emulator.bank.threads import run_to_end
from emulator.bank.validation import validate
from emulator.store import StoreUnwritable, memory_store
from tests.cases import cases

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


def bank(fixture: str = "empty", seed: int | None = None, ids_form: str = "uuid", now: datetime = NOW) -> Bank:
    bank = Bank(memory_store(KINDS), seed=seed, ids_form=ids_form)
    fixtures.reset(bank, fixture, now=now, mode="frozen")
    return bank


def plan_of(
    customers: int = 10, accounts: int = 2, transactions: int = 100, days: int = 90, seed: int | None = None
) -> DataPlan:
    return DataPlan(
        customers=customers, accountsPerCustomer=accounts, transactionsPerAccount=transactions, days=days, seed=seed
    )


def generate(filled: Bank, plan: DataPlan) -> dict[str, Any]:
    return run_to_end(generate_in_pieces(filled, plan))


def documents(of: Bank) -> dict[str, list[dict[str, Any]]]:
    return {kind: documents for kind, documents in of.documents.dump().items() if kind != "meta"}


@cases("plan", [plan_of(4, 2, 25, 90, 1), plan_of(1, 1, 1, 1, 1), plan_of(3, 3, 0, 30, 1), plan_of(5, 1, 300, 10, 1)])
def test_there_is_exactly_as_much_as_was_asked_for_and_the_books_balance(plan: DataPlan) -> None:
    filled = bank()
    answer = generate(filled, plan)
    accounts = plan.customers * plan.accounts_per_customer
    assert answer["counts"] == {
        "customers": plan.customers,
        "accounts": accounts,
        "transactions": accounts * plan.transactions_per_account,
    }
    assert filled.documents.count(CUSTOMER) == plan.customers == len(answer["customers"])
    assert filled.documents.count(TRANSACTION) == accounts * plan.transactions_per_account
    assert run_to_end(ledger.reporting(filled))["balanced"]


def test_a_balance_was_never_below_zero() -> None:
    filled = bank()
    generate(filled, plan_of(4, 2, 120, 90, 2))
    for account in filled.documents.all(ACCOUNT):
        balance = Decimal(account["opening"])
        assert balance > 0
        for entry in filled.documents.range(TRANSACTION, "shelf", group=f"{account['id']}|booked"):
            balance += Decimal(entry["amount"])
            assert balance > 0
        assert balance == Decimal(account["booked"])


def test_the_banks_own_seed_makes_data_repeat_and_without_one_it_never_does() -> None:
    plan = plan_of(2, 1, 5, 30)
    seeded = [documents_of(plan, seed=9) for _ in range(2)]
    assert seeded[0] == seeded[1]
    drawn = [documents_of(plan, seed=None) for _ in range(2)]
    assert drawn[0] != drawn[1]


def test_a_second_run_by_the_banks_seed_makes_others_and_repeats_after_a_reset() -> None:
    filled = bank(seed=9)
    runs = []
    for _ in range(2):
        fixtures.reset(filled, "empty", now=NOW, mode="frozen")
        runs.append([generate(filled, plan_of(3, 1, 1, 30))["customers"] for _ in range(2)])
    assert runs[0] == runs[1]
    first, second = ({customer["customerName"] for customer in customers} for customers in runs[0])
    assert first != second


def documents_of(plan: DataPlan, seed: int | None) -> dict[str, Any]:
    filled = bank(seed=seed)
    generate(filled, plan)
    return documents(filled)


def test_numbers_are_synthetic_valid_and_nobody_elses() -> None:
    filled = bank("known-state")
    generate(filled, plan_of(40, 2, 1, 30, 1))
    people_ids = [person["id"] for person in filled.documents.all(PERSON)]
    for number in people_ids:
        assert is_national_number(number)
        assert 81 <= int(number[2:4]) <= 92
    numbers = [customer["customerNumber"] for customer in filled.documents.all(CUSTOMER)]
    accounts = [account["bban"] for account in filled.documents.all(ACCOUNT)]
    assert all(is_account_number(bban) and bban[:3] == "999" for bban in accounts)
    assert all(orgnr.is_valid(number) for number in numbers if len(number) == 9)
    for values in (people_ids, numbers, accounts):
        assert len(values) == len(set(values))


def test_everybody_can_be_logged_in_and_reaches_the_accounts() -> None:
    filled = bank()
    answer = generate(filled, plan_of(8, 2, 3, 30, 1))
    kinds = Counter(customer["customerType"] for customer in answer["customers"])
    assert kinds == {"private": 6, "corporate": 2}
    for customer in answer["customers"]:
        context = "PRIVATE" if customer["customerType"] == "private" else "CORPORATE"
        reached = people.accounts_of(filled, customer["nationalId"], context, None)
        assert [account["iban"] for account in reached] == customer["accounts"]


def test_a_household_has_salary_rent_bills_with_kid_and_card_purchases_and_a_firm_pays_wages() -> None:
    filled = bank()
    answer = generate(filled, plan_of(4, 2, 60, 90, 1))
    for customer in answer["customers"]:
        (account,) = filled.documents.find(ACCOUNT, iban=customer["accounts"][0])
        entries = filled.documents.find(TRANSACTION, accountId=account["id"])
        texts = Counter(entry.get("remittanceInformationUnstructured") for entry in entries)
        codes = Counter(entry["bankTransactionCode"] for entry in entries)
        kids = [entry for entry in entries if "remittanceInformationStructuredArray" in entry]
        assert len(kids) > 3
        assert all(is_kid(e["remittanceInformationStructuredArray"][0]["reference"]) for e in kids)
        assert texts["Sparing"] >= 2
        if customer["customerType"] == "private":
            assert {texts["Lønn"], texts["Husleie"]} <= {2, 3, 4}
            assert codes["PMNT-CCRD-POSD"] > 20
        else:
            assert codes["PMNT-ICDT-SALA"] >= 8
            assert texts["Leie lokale"] in {2, 3, 4}


Entries = list[dict[str, Any]]


def lives(filled: Bank, plan: DataPlan) -> Iterator[tuple[str, Entries, Entries]]:
    """The type of each generated customer, and the entries of the first account and of the second."""
    for customer in generate(filled, plan)["customers"]:
        accounts = [filled.documents.first(ACCOUNT, iban=iban) for iban in customer["accounts"]]
        first, second = (filled.documents.find(TRANSACTION, accountId=account["id"]) for account in accounts)
        yield customer["customerType"], first, second


def booked(entries: Entries, text: str) -> list[date]:
    named = (entry for entry in entries if entry.get("remittanceInformationUnstructured") == text)
    return [date.fromisoformat(entry["bookingDate"]) for entry in named]


def test_what_comes_every_month_has_a_day_of_the_month_that_is_the_customers_own() -> None:
    wage_days = set()
    for kind, first, _ in lives(bank(), plan_of(12, 2, 200, 730, 1)):
        if kind == "private":
            wages, rent = booked(first, "Lønn"), booked(first, "Husleie")
            for days in (wages, rent):
                assert 23 <= len({(day.year, day.month) for day in days}) == len(days) <= 25
            # Wages come on their day or before it, rent on its day or after it.
            wage_day = Counter(day.day for day in wages).most_common(1)[0][0]
            assert wage_day == max(day.day for day in wages)
            assert Counter(day.day for day in rent).most_common(1)[0][0] == min(day.day for day in rent)
            wage_days.add(wage_day)
    assert len(wage_days) > 4


def test_a_purchase_has_its_own_day_and_is_booked_on_the_next_banking_day() -> None:
    bought = set()
    for _, first, _ in lives(bank(), plan_of(3, 2, 200, 90, 1)):
        for entry in first:
            value_day = date.fromisoformat(entry["valueDate"])
            if entry["bankTransactionCode"] == "PMNT-CCRD-POSD":
                assert entry["bookingDate"] == next_banking_day(value_day, "NOK").isoformat()
                bought.add(value_day.weekday())
            else:
                assert entry["bookingDate"] == entry["valueDate"]
    assert bought == set(range(7))


def test_a_savings_account_has_few_movements_and_interest_once_a_year() -> None:
    for _, first, second in lives(bank(), plan_of(4, 2, 200, 400, 1)):
        assert len(second) < len(first) / 8
        assert booked(second, "Renter") == [date(2025, 12, 31)]


def test_wages_rise_now_and_then() -> None:
    for kind, first, _ in lives(bank(), plan_of(3, 2, 300, 1200, 1)):
        assert kind == "private"
        paid = sorted((e["bookingDate"], Decimal(e["amount"])) for e in first if e.get("purposeCode") == "SALA")
        amounts = [amount for _, amount in paid]
        assert amounts == sorted(amounts)
        assert 3 <= len(set(amounts)) <= 5


def test_the_same_seed_gives_the_same_people_whatever_the_day_is() -> None:
    days = (NOW, NOW + timedelta(days=17), datetime(2027, 8, 3, 8, tzinfo=UTC))
    runs = [generate(bank(now=day), plan_of(6, 3, 40, 90, 5))["customers"] for day in days]
    assert runs[0] == runs[1] == runs[2]


def test_transfers_between_own_accounts_stand_on_both_sides() -> None:
    filled = bank()
    generate(filled, plan_of(2, 3, 40, 90, 1))
    sides = Counter(
        (t["bookingDate"], t["debtorAccount"]["bban"], t["creditorAccount"]["bban"], t["amount"].lstrip("-"))
        for t in filled.documents.all(TRANSACTION)
        if t.get("remittanceInformationUnstructured") == "Sparing"
    )
    assert set(sides.values()) == {2}


def test_no_piece_draws_or_deletes_all_transactions_of_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = 0

    def counted(*arguments: Any, **options: Any) -> Iterator[patterns.Move]:
        nonlocal drawn
        for move in patterns.household(*arguments, **options):
            drawn += 1
            yield move

    monkeypatch.setattr("emulator.bank.sandbox.generate.household", counted)
    filled = bank()
    pieces = generate_in_pieces(filled, plan_of(1, 1, 8_000, 90, 1))
    seen = []
    for _ in pieces:
        seen.append((drawn, filled.documents.count(TRANSACTION)))
        if seen[-1][1] == 7_000:
            break
    for before, after in pairwise([(0, 0), *seen]):
        assert after[0] - before[0] <= 5000
        assert after[1] - before[1] <= 1000
    pieces.throw(StoreUnwritable("full"))
    counts = [7_000]

    def deleted() -> None:
        counts.append(filled.documents.count(TRANSACTION))
        assert run_to_end(ledger.reporting(filled))["balanced"]

    deleted()
    with pytest.raises(StoreUnwritable):
        deque((deleted() for _ in pieces), 0)
    assert all(before - after <= 1000 for before, after in pairwise(counts))
    assert documents(filled) == documents(bank())


def test_ids_take_the_banks_form() -> None:
    filled = bank(ids_form="opaque")
    generate(filled, plan_of(4, 1, 2, 30, 1))
    assert all(entry["id"].startswith("enc!!") for entry in filled.documents.all(TRANSACTION))
    assert all("enc" not in agreement["id"] for agreement in filled.documents.all(AGREEMENT))


def test_customers_and_accounts_that_were_renumbered_stay_beside_new_ones() -> None:
    filled = bank()
    plan = plan_of(1, 1, 5, 30, 5)
    [generated] = generate(filled, plan)["customers"]
    sandbox_customers.replace_customer(
        filled, generated["customerId"], {"customerNumber": "12345678", "name": "Renamed", "type": "private"}
    )
    [account] = filled.documents.all(ACCOUNT)
    filled.documents.put(ACCOUNT, {**account, "bban": "99901000014", "iban": "NO8599901000014"})
    generate(filled, plan)
    assert next(customer["name"] for customer in filled.documents.all(CUSTOMER)) == "Renamed"
    assert [filled.documents.count(kind) for kind in (CUSTOMER, ACCOUNT, TRANSACTION)] == [2, 2, 10]
    assert run_to_end(ledger.reporting(filled))["balanced"]


def test_a_bank_without_free_numbers_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "emulator.bank.sandbox.generate.synthetic_account_number", lambda _draw, bank_code: f"{bank_code}0000000"
    )
    with pytest.raises(BankError, match="almost no unused numbers") as refused:
        generate(bank(), plan_of(1, 2, 0, 1, 1))
    assert refused.value.code == "CONFLICT"


def test_what_fails_late_leaves_the_documents_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    filled = bank()
    generate(filled, plan_of(3, 1, 5, 30, 1))
    before = filled.documents.dump()
    monkeypatch.setattr(
        "emulator.bank.sandbox.generate.synthetic_account_number", lambda _draw, bank_code: f"{bank_code}0000000"
    )
    with pytest.raises(BankError, match="almost no unused numbers"):
        generate(filled, plan_of(2, 1, 5, 30, 2))
    assert filled.documents.dump() == before
    monkeypatch.undo()
    monkeypatch.setattr("emulator.bank.sandbox.generate.company", Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        generate(filled, plan_of(4, 1, 5, 30, 2))
    assert filled.documents.dump() == before
    assert run_to_end(ledger.reporting(filled))["balanced"]


def test_a_plan_has_defaults_and_its_mistakes_are_told_together() -> None:
    assert validate(DataPlan, {}) == (plan_of(10, 2, 100, 90), [])
    assert validate(DataPlan, {"customers": 1, "days": 7, "seed": 0}) == (plan_of(1, days=7, seed=0), [])
    assert validate(DataPlan, {"transactionsPerAccount": 0, "seed": None}) == (plan_of(transactions=0), [])
    wrong = {"customers": 0, "accountsPerCustomer": "2", "days": True, "colour": 1, "seed": -1}
    assert {problem.path for problem in validate(DataPlan, wrong)[1]} == {(name,) for name in wrong}


@cases(
    "body, path, text",
    [
        ({"customers": 1001, "accountsPerCustomer": 10}, "transactionsPerAccount", "1001000 transactions are too many"),
        (
            {"customers": 66667, "accountsPerCustomer": 3, "transactionsPerAccount": 0},
            "accountsPerCustomer",
            "200001 accounts are too many",
        ),
    ],
)
def test_a_plan_has_limits(body: dict[str, int], path: str, text: str) -> None:
    plan, (problem,) = validate(DataPlan, body)
    assert (plan, problem.path) == (None, (path,))
    assert problem.text.startswith(text)


def test_generating_goes_in_whole_pieces_between_which_the_bank_may_be_used() -> None:
    filled = bank()
    pieces = generate_in_pieces(filled, plan_of(customers=3, transactions=5, seed=1))
    assert next(pieces) == 1
    assert run_to_end(ledger.reporting(filled))["balanced"]
    known = filled.documents.count(CUSTOMER)
    own = {"customerNumber": "12345678", "name": "Meanwhile", "type": "private"}
    meanwhile = sandbox_customers.create_customer(filled, own)
    assert next(pieces) == 2
    assert filled.documents.count(CUSTOMER) == known + 2
    pieces.throw(StoreUnwritable("full"))
    with pytest.raises(StoreUnwritable):
        list(pieces)
    assert filled.documents.get(CUSTOMER, meanwhile["id"]) == meanwhile
    assert filled.documents.count(CUSTOMER) == known, "what was generated is gone, what came meanwhile is not"
    assert run_to_end(ledger.reporting(filled))["balanced"]
