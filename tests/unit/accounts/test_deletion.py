"""Deleting what has very many transactions: each of them is read once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT, CONSENT, TRANSACTION
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox.customers import deleting_customer
from emulator.bank.threads import run_to_end

MANY = 500


def test_an_account_is_deleted_with_few_looks_at_each_transaction(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = bank.documents
    first = next(documents.all(TRANSACTION))
    with documents.transaction():
        for number in range(MANY):
            documents.put(TRANSACTION, {**first, "id": f"t{number}"})
    read = 0
    loads = orjson.loads

    def counted(text: bytes) -> Any:
        nonlocal read
        read += 1
        return loads(text)

    monkeypatch.setattr(orjson, "loads", counted)
    run_to_end(sandbox_accounts.deleting(bank, ACCOUNT, first["accountId"]))
    assert documents.count(TRANSACTION, accountId=first["accountId"]) == 0
    assert read < 2.5 * MANY  # once to sum up the oldest, once to delete


def test_a_customer_with_many_accounts_is_deleted_with_one_look_at_each_consent(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = bank.documents
    account = next(documents.all(ACCOUNT))
    with documents.transaction():
        for number in range(20):
            documents.put(ACCOUNT, {**account, "id": f"a{number}", "bban": f"b{number}", "iban": f"i{number}"})
        for number in range(MANY):
            consent: Any = {"id": f"c{number}", "owner": "o", "nationalId": "n", "created": "2026", "agreement": "none"}
            documents.put(CONSENT, {**consent, "accounts": [f"a{number % 40}", "other"], "cards": []})
    read = 0
    loads = orjson.loads

    def counted(text: bytes) -> Any:
        nonlocal read
        read += b'"agreement":"none"' in text
        return loads(text)

    monkeypatch.setattr(orjson, "loads", counted)
    run_to_end(deleting_customer(bank, account["customerId"]))
    assert {name for consent in documents.all(CONSENT) for name in consent["accounts"]} == {
        "other",
        *(f"a{number}" for number in range(20, 40)),
    }
    assert read < 4 * MANY
