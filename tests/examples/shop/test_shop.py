"""The shop against the bank: what goes well, and what a real bank would hardly ever show."""

from __future__ import annotations

from decimal import Decimal

import pytest
from shop import Order, PaymentRefused, Shop

from emulator.testing import RunningBank

ACCOUNT = "NO8599901000014"


def test_an_order_is_paid_when_the_bank_says_so(bank: RunningBank, shop: Shop, order: Order) -> None:
    link = shop.pay(order)
    shop.customer_returned(order, bank.approve(link))  # the customer, without a browser
    assert shop.refresh(order) == "waiting"
    bank.clock.advance("10s")
    assert shop.refresh(order) == "paid"


def test_a_customer_who_declines_has_not_paid(bank: RunningBank, shop: Shop, order: Order) -> None:
    first = Order(Decimal(1), order.customer_bban, order.customer_id)
    shop.customer_returned(first, bank.approve(shop.pay(first)))  # since then the shop knows its customer
    order.psu_id, order.session = first.psu_id, first.session
    bank.reject(shop.pay(order))
    assert shop.refresh(order) == "failed"


def test_a_lost_answer_is_asked_for_again_and_charges_once(bank: RunningBank, shop: Shop, order: Order) -> None:
    bank.apply(
        {
            "scenario": "two-lost-answers",
            "rules": [
                {
                    "name": "lost",
                    "when": {"operation": "createPayment"},
                    "times": {"first": 2},
                    "then": {"disconnect": "after"},
                }
            ],
        }
    )
    shop.pay(order)
    tries = bank.requests(operation="createPayment")
    assert len(tries) == 3
    assert len(bank.payments()) == 1


def test_an_empty_account_pays_when_money_has_come(bank: RunningBank, shop: Shop, order: Order) -> None:
    bank.apply({"scenario": "empty", "start": {"change": [{"account": ACCOUNT, "balance": "0.00"}]}})
    shop.customer_returned(order, bank.approve(shop.pay(order)))
    bank.clock.advance("10s")
    assert shop.refresh(order) == "waiting"
    bank.apply({"scenario": "salary", "start": {"change": [{"account": ACCOUNT, "balance": "9000.00"}]}})
    bank.clock.advance(days=1)
    assert shop.refresh(order) == "paid"


def test_the_bank_s_reason_for_a_refusal_is_told(shop: Shop) -> None:
    with pytest.raises(PaymentRefused, match="greater than 0"):
        shop.pay(Order(Decimal(0), "99901000014", "14888520059"))


@pytest.mark.bank(now="2026-03-02T09:00:00+01:00", settings={"progression": "immediate"})
def test_a_bank_that_books_at_once_pays_at_once(bank: RunningBank, shop: Shop, order: Order) -> None:
    shop.customer_returned(order, bank.approve(shop.pay(order)))
    assert shop.refresh(order) == "paid"
