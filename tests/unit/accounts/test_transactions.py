"""Pages of transactions, whatever the window."""

from __future__ import annotations

from datetime import timedelta
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
