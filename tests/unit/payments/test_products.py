"""The products are found by their folder."""

from __future__ import annotations

import pytest

from emulator.bank import products
from emulator.bank.errors import BankError


def test_every_product_is_there() -> None:
    domestic = "norwegian-domestic-credit-transfers"
    assert set(products.table()) >= {
        ("payments", "instant-norwegian-domestic-credit-transfers-straks"),
        ("payments", domestic),
        ("payments", "sepa-credit-transfers"),
        ("payments", "cross-border-credit-transfers"),
        ("periodic-payments", domestic),
        ("bulk-payments", domestic),
    }


def test_a_product_that_is_not_there_is_unknown() -> None:
    with pytest.raises(BankError) as refused:
        products.find("periodic-payments", "sepa-credit-transfers")
    assert refused.value.code == "PRODUCT_UNKNOWN"
