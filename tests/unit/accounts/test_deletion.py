"""Deleting what has very many transactions: each of them is read once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from emulator.bank.bank import Bank
from emulator.bank.kinds import TRANSACTION
from emulator.bank.sandbox.data import delete_account

MANY = 500


def test_an_account_is_deleted_with_one_look_at_each_transaction(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
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
    delete_account(bank, first["accountId"])
    assert documents.count(TRANSACTION, accountId=first["accountId"]) == 0
    assert read < 1.5 * MANY
