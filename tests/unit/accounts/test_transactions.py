"""Pages of transactions, whatever the window."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.bank.accounts import transactions
from emulator.bank.accounts.transactions import Window
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from tests.unit.accounts.conftest import BAKERY, NOW, SALARY, account, known_state


@pytest.fixture(scope="module")
def bank() -> Bank:
    """One for all, as nothing here changes it."""
    return known_state()


def pages(bank: Bank, bban: str, limit: int, **window: Any) -> list[list[str]]:
    """The ids on each page, walking on until there is no further one."""
    pages = []
    for offset in range(0, 1000 * limit, limit):
        page = transactions.page(bank, account(bank, bban)["id"], Window(offset=offset, limit=limit, **window))
        pages.append([entry["id"] for shelf in ("pending", "booked") for entry in page.entries.get(shelf, ())])
        if not page.more:
            return pages
    raise AssertionError("the pages do not end")


def test_pages_partition_the_list(bank: Bank) -> None:
    windows = [*product((SALARY, BAKERY), (True, False), ("booked", "pending", "both", "all"), (7,))]
    for bban, grouped, status, limit in (*windows, (BAKERY, True, "both", 1), (SALARY, False, "all", 500)):
        whole = pages(bank, bban, 10_000, status=status, grouped=grouped)[0]
        assert len(whole) == len(set(whole)) > 0
        parts = pages(bank, bban, limit, status=status, grouped=grouped)
        assert [entry for part in parts for entry in part] == whole, (bban, grouped, status, limit)
        assert all(len(part) == limit for part in parts[:-1])
        assert len(parts[-1]) in range(1, limit + 1)


@given(
    offset=st.integers(0, 80),
    limit=st.integers(1, 80),
    grouped=st.booleans(),
    status=st.sampled_from(sorted(transactions.SHELVES)),
    first=st.none() | st.dates(NOW.date().replace(month=1), NOW.date() + timedelta(days=3)).map(str),
    last=st.none() | st.dates(NOW.date().replace(month=1), NOW.date() + timedelta(days=3)).map(str),
)
def test_a_page_is_a_slice_of_the_whole_list(
    bank: Bank, offset: int, limit: int, grouped: bool, status: str, first: str | None, last: str | None
) -> None:
    holder = account(bank, BAKERY)["id"]
    whole = transactions.page(bank, holder, Window(status, first, last, 0, 10_000, grouped))
    listed = [entry for shelf in transactions.SHELVES[status] for entry in whole.entries[shelf]]
    page = transactions.page(bank, holder, Window(status, first, last, offset, limit, grouped))
    shown = [entry for shelf in transactions.SHELVES[status] for entry in page.entries[shelf]]
    assert shown == listed[offset : offset + limit]
    assert page.more == (offset + limit < len(listed))
    for entry in listed:
        date = entry.get("bookingDate") or entry["valueDate"]
        assert (first or date) <= date <= (last or date)


def test_the_list_is_newest_first(bank: Bank) -> None:
    page = transactions.page(bank, account(bank, SALARY)["id"], Window(limit=500))
    for shelf in ("booked", "pending"):
        orders = [entry["order"] for entry in page.entries[shelf]]
        assert orders == sorted(orders, reverse=True)


def test_in_production_pending_ones_come_whole_with_every_page_and_count_for_nothing(bank: Bank) -> None:
    holder = account(bank, SALARY)["id"]
    pending = [e["id"] for e in transactions.page(bank, holder, Window(status="pending")).entries["pending"]]
    assert len(pending) == 2
    narrow = {"first": "2026-01-01", "last": "2026-01-31", "all_pending": True}
    page = transactions.page(bank, holder, Window(limit=1, offset=3, **narrow))
    assert [e["id"] for e in page.entries["pending"]] == pending
    assert len(page.entries["booked"]) == 1
    assert (
        page.entries["booked"][0]
        == transactions.page(bank, holder, Window("booked", "2026-01-01", "2026-01-31", 3, 1)).entries["booked"][0]
    )
    only = transactions.page(bank, holder, Window(status="pending", limit=1, **narrow))
    assert ([e["id"] for e in only.entries["pending"]], only.more) == (pending, False)
    filtered = transactions.page(bank, holder, Window(first="2026-01-01", last="2026-01-31"))
    assert filtered.entries["pending"] == []


def test_a_batch_is_one_entry_or_the_payments_in_it(bank: Bank) -> None:
    holder = account(bank, BAKERY)["id"]
    grouped = transactions.page(bank, holder, Window("booked", limit=500)).entries["booked"]
    single = transactions.page(bank, holder, Window("booked", limit=500, grouped=False)).entries["booked"]
    batches = [entry for entry in grouped if "batch" in entry]
    assert len(batches) == 3
    assert len(single) == len(grouped) + 3 * 3
    parts = [entry for entry in single if entry["id"].startswith(batches[0]["id"] + ".")]
    assert [(part["creditorName"], part["amount"]) for part in parts] == [
        ("Kari Kladd", "-36480.55"),
        ("Mons Mengdelære", "-34210.00"),
        ("Berit Bolle", "-38115.00"),
        ("Trond Trille", "-34070.00"),
    ]
    for part in parts:
        assert "batch" not in part
        assert transactions.find(bank, holder, part["id"]) == part


def test_a_transaction_of_another_account_or_none_is_unknown(bank: Bank) -> None:
    holder, other = account(bank, BAKERY)["id"], account(bank, SALARY)["id"]
    page = transactions.page(bank, holder, Window("booked", limit=500)).entries["booked"]
    batch = next(entry["id"] for entry in page if "batch" in entry)
    plain = next(entry["id"] for entry in page if "batch" not in entry)
    for account_id, transaction_id in (
        (other, plain),
        (other, f"{batch}.1"),
        (holder, f"{batch}.0"),
        (holder, f"{batch}.01"),
        (holder, f"{batch}.5"),
        (holder, f"{batch}.99999"),
        (holder, f"{batch}.x"),
        (holder, f"{batch}.²"),
        (holder, f"{plain}.1"),
        (holder, "nothing"),
        (holder, "."),
    ):
        with pytest.raises(BankError, match="RESOURCE_UNKNOWN"):
            transactions.find(bank, account_id, transaction_id)


def test_members_of_a_batch_show_in_corporate_context_only(bank: Bank) -> None:
    page = transactions.page(bank, account(bank, BAKERY)["id"], Window("booked", limit=500)).entries["booked"]
    batch = next(entry for entry in page if "batch" in entry)
    corporate, private = (transactions.view(batch, corporate=context) for context in (True, False))
    assert {name: corporate[name] for name in set(corporate) - set(private)} == {
        "batchIndicator": True,
        "batchNumberOfTransactions": 4,
    }
    entries = transactions.batch_entries(batch)
    assert entries[0] == {
        "transactionAmount": {"amount": "-36480.55", "currency": "NOK"},
        "creditorName": "Kari Kladd",
        "creditorAccount": {"bban": "99901000014", "iban": "NO8599901000014", "currency": "NOK"},
        "remittanceInformationUnstructured": "Lønn",
        "remittanceInformationUnstructuredArray": ["Lønn"],
    }


def test_there_is_a_further_page_where_only_pending_ones_are_left(bank: Bank) -> None:
    today = NOW.date().isoformat()
    walked = pages(bank, SALARY, 1, first=today)
    assert [len(part) for part in walked] == [1, 1]
    assert transactions.page(bank, account(bank, SALARY)["id"], Window(first=today)).entries["booked"] == []
