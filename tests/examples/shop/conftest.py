"""Fixtures of the shop's tests, on top of the emulator's `bank`."""

from __future__ import annotations

from decimal import Decimal

import pytest
from shop import Order, Shop
from signer import Signer

from emulator.testing import RunningBank

KARI, KARIS_ACCOUNT = "14888520059", "99901000014"


@pytest.fixture
def shop(bank: RunningBank) -> Shop:
    """The shop with a certificate that may initiate payments and nothing else, signing with its own code."""
    tpp = bank.tpp(roles=["PISP"])
    return Shop(bank.url, Signer(tpp.certificate_pem, tpp.key_pem))


@pytest.fixture
def order() -> Order:
    return Order(Decimal(250), KARIS_ACCOUNT, KARI)
