"""The known state on a Monday morning."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from emulator.bank import fixtures
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT, KINDS
from emulator.store import Document, memory_store

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
SALARY = "99901000014"  # a private current account
BAKERY = "99911000012"  # a corporate account with batches


def known_state(seed: int = 1) -> Bank:
    bank = Bank(memory_store(KINDS), seed=seed)
    fixtures.reset(bank, "known-state", now=NOW, mode="frozen")
    return bank


@pytest.fixture
def bank() -> Bank:
    return known_state()


def account(bank: Bank, bban: str) -> Document:
    account = bank.documents.first(ACCOUNT, bban=bban)
    if account is None:
        raise LookupError(bban)
    return account
