"""Signing baskets: one SCA for several payments, and the worst case of them as status."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.bank.authentication import sca, sca_control
from emulator.bank.authentication.authorisations import Approach
from emulator.bank.bank import Bank
from emulator.bank.customers.access import Caller
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AUTHORISATION, BASKET, PAYMENT, SCA
from emulator.bank.payment import baskets, payments
from emulator.bank.scheme.transitions import STATUSES, WORST_FIRST, basket_status
from tests.known_state import EVEN, KARI, SIRI, TOR
from tests.unit.payments import world
from tests.unit.payments.world import (
    DOMESTIC,
    FIRM,
    FIRM_AGREEMENT,
    STRAKS,
    advance,
    agree,
    approve,
    domestic,
    from_firm,
    initiate,
    money,
    payment,
    reject,
    status,
)

HOW = Approach(redirectUri="https://tpp.example/back")


def create(bank: Bank, *payment_ids: str, **more: Any) -> str:
    owner = {"tpp_id": world.TPP, "national_id": KARI, "context": "PRIVATE", "agreement": None, **more}
    with bank.documents.transaction():
        return str(baskets.create(bank, payment_ids=payment_ids, how=HOW, **owner)["id"])


def of_firm(bank: Bank) -> tuple[str, str, str]:
    """A basket of Siri's with two payments of the firm, each of which Tor must sign too; and the payments."""
    agree(bank, signatures=2)
    one, two = (initiate(bank, STRAKS, from_firm(), **FIRM) for _ in range(2))
    firm = {"context": "CORPORATE", "agreement": FIRM_AGREEMENT}
    return create(bank, one, two, national_id=SIRI, **firm), one, two


def refused(bank: Bank, *payment_ids: str, **more: Any) -> tuple[list[tuple[str, str | None]], bool]:
    """Codes and paths of the refusal, and whether ids in the body are at fault; nothing may have been written."""
    before = bank.documents.dump()
    with pytest.raises(BankError) as error:
        create(bank, *payment_ids, **more)
    assert bank.documents.dump() == before
    return [(message.code, message.path) for message in error.value.messages], error.value.in_body


def basket(bank: Bank, basket_id: str) -> dict[str, Any]:
    return bank.documents.get(BASKET, basket_id) or {}


def state(bank: Bank, basket_id: str) -> str:
    return baskets.state(bank, basket(bank, basket_id))[0]


def straks(bank: Bank, amount: str = "100.00", **more: Any) -> str:
    return initiate(bank, STRAKS, domestic(amount), **more)


def test_the_worst_payment_is_the_baskets_status() -> None:
    for statuses, worst in (
        (["ACTC", "ACSC", "ACSP", "ACCP", "ACWC", "ACWP", "PDNG"], "ACTC"),
        (["ACSC", "PATC"], "PATC"),
        (["ACSC", "PART"], "PATC"),
        (["PATC", "RCVD"], "RCVD"),
        (["RCVD", "PATC", "RJCT", "ACSC"], "RJCT"),
        (["RCVD", "CANC"], "RJCT"),
        ([], "RJCT"),
    ):
        assert basket_status(statuses) == worst


@given(st.lists(st.sampled_from(STATUSES), min_size=1, max_size=10))
def test_the_order_of_the_payments_does_not_matter_and_more_payments_make_nothing_better(statuses: list[str]) -> None:
    worst = basket_status(statuses)
    assert basket_status(sorted(statuses)) == worst
    rank = WORST_FIRST.index
    assert all(rank(basket_status([*statuses, more])) <= rank(worst) for more in STATUSES)


def test_one_sca_signs_all_payments_of_a_basket(bank: Bank) -> None:
    first, second = straks(bank), initiate(bank, DOMESTIC, domestic("50.00"))
    basket_id = create(bank, first, second)
    assert state(bank, basket_id) == "RCVD"
    opened = bank.documents.get(SCA, basket(bank, basket_id)["sca"]) or {}
    assert (opened["purpose"], opened["target"], opened["nationalId"]) == ("basket", basket_id, KARI)
    approve(bank, basket_id)
    assert (status(bank, first), status(bank, second), state(bank, basket_id)) == ("ACTC", "ACTC", "ACTC")
    assert all(not sca.is_open(sca_control.find(bank, target)) for target in (first, second, basket_id))
    advance(bank, minutes=1)
    assert (status(bank, first), status(bank, second)) == ("ACSC", "ACSC")
    assert money(bank, "kari") == (9850, 0)


def test_an_expired_sca_changes_nothing_and_another_can_be_started(bank: Bank) -> None:
    payment_id = straks(bank)
    basket_id = create(bank, payment_id)
    advance(bank, minutes=11)
    approve(bank, basket_id)
    assert (status(bank, payment_id), state(bank, basket_id)) == ("RCVD", "RCVD")
    _, token = baskets.start_authorisation(bank, basket(bank, basket_id), HOW, national_id=KARI)
    assert basket(bank, basket_id)["sca"] == token
    approve(bank, basket_id)
    assert state(bank, basket_id) == "ACTC"
    with pytest.raises(BankError, match="CONFLICT"):
        baskets.start_authorisation(bank, basket(bank, basket_id), HOW, national_id=KARI)


def test_two_signatures_take_a_basket_over_patc(bank: Bank) -> None:
    basket_id, one, two = of_firm(bank)
    approve(bank, basket_id, SIRI)
    assert (status(bank, one), state(bank, basket_id)) == ("PATC", "PATC")
    second = sca_control.find(bank, basket_id)
    assert (second["id"], second["presumed"], sca.is_open(second)) == (basket(bank, basket_id)["sca"], TOR, True)
    approve(bank, basket_id, TOR)
    assert (status(bank, one), status(bank, two), state(bank, basket_id)) == ("ACTC", "ACTC", "ACTC")


def test_who_may_sign_no_payment_of_a_basket_is_told_why(bank: Bank) -> None:
    basket_id, payment_id, _ = of_firm(bank)
    _, token = baskets.start_authorisation(bank, basket(bank, basket_id), HOW, national_id=TOR)
    assert "code=PSU_CREDENTIALS_INVALID" in str(approve(bank, token, TOR))
    account = bank.documents.get(ACCOUNT, "firm") or {}
    bank.documents.put(ACCOUNT, {**account, "paymentsRemoved": True})
    assert "code=FORBIDDEN" in str(approve(bank, basket_id, SIRI))
    assert (status(bank, payment_id), state(bank, basket_id)) == ("RCVD", "RCVD")


def test_for_a_payment_that_was_refused_no_further_sca_is_opened_by_itself(bank: Bank) -> None:
    fine, shut = straks(bank), straks(bank)
    account = bank.documents.get(ACCOUNT, "kari-card") or {}
    bank.documents.put(PAYMENT, {**payment(bank, shut), "debtorAccountId": "kari-card"})
    bank.documents.put(ACCOUNT, {**account, "paymentsRemoved": True})
    basket_id = create(bank, shut, fine)
    approve(bank, basket_id)
    assert (status(bank, shut), status(bank, fine)) == ("RCVD", "ACTC")
    assert "sca" not in basket(bank, basket_id)
    bank.documents.put(ACCOUNT, account)
    _, token = baskets.start_authorisation(bank, basket(bank, basket_id), HOW, national_id=KARI)
    approve(bank, token)
    assert (status(bank, shut), state(bank, basket_id)) == ("ACTC", "ACTC")


def test_a_basket_whose_customer_was_not_known_is_the_first_signers(bank: Bank) -> None:
    payment_id = straks(bank, who=None)
    basket_id = create(bank, payment_id, national_id=None)
    for who in (KARI, EVEN):
        assert baskets.find(bank, basket_id, tpp_id=world.TPP, caller=Caller(who, None))
    approve(bank, basket_id)
    assert baskets.find(bank, basket_id, tpp_id=world.TPP, caller=Caller(KARI, None))
    with pytest.raises(BankError) as error:
        baskets.find(bank, basket_id, tpp_id=world.TPP, caller=Caller(EVEN, None))
    assert error.value.code == "RESOURCE_UNKNOWN"


def test_a_basket_stays_its_first_signers_when_another_signs_the_rest(bank: Bank) -> None:
    one = straks(bank, who=None)
    two = initiate(bank, STRAKS, domestic(debtorAccount={"bban": "99901100019", "currency": "NOK"}), who=None)
    basket_id = create(bank, one, two, national_id=None)
    approve(bank, basket_id, KARI)
    baskets.start_authorisation(bank, basket(bank, basket_id), HOW, national_id=None)
    approve(bank, basket_id, EVEN)
    assert (status(bank, one), status(bank, two)) == ("ACTC", "ACTC")
    assert baskets.find(bank, basket_id, tpp_id=world.TPP, caller=Caller(KARI, None))


def test_the_listing_shows_the_newest_first(bank: Bank) -> None:
    older = create(bank, straks(bank))
    advance(bank, seconds=1)
    newer = create(bank, straks(bank))
    assert [(one["basketId"], one["transactionStatus"]) for one in baskets.listing(bank)] == [
        (newer, "RCVD"),
        (older, "RCVD"),
    ]


# who sees it, and what is told


def test_an_authorisation_asked_for_by_who_has_signed_all_that_waits_is_for_the_others(bank: Bank) -> None:
    basket_id, one, two = of_firm(bank)
    approve(bank, one, SIRI)
    _, own = baskets.start_authorisation(bank, basket(bank, basket_id), HOW, national_id=SIRI)
    approve(bank, own, SIRI)
    assert (status(bank, one), status(bank, two)) == ("PATC", "PATC")
    _, token = baskets.start_authorisation(bank, basket(bank, basket_id), HOW, national_id=SIRI)
    assert sca.expected(sca.get(bank, token) or {}) == TOR
    approve(bank, token, TOR)
    assert (status(bank, one), status(bank, two)) == ("ACTC", "ACTC")


def test_who_asks_for_an_authorisation_of_payments_that_another_signs_first_does_not_get_it(bank: Bank) -> None:
    basket_id, one, two = of_firm(bank)
    baskets.start_authorisation(bank, basket(bank, basket_id), HOW, national_id=TOR)
    approve(bank, basket_id, SIRI)
    assert (status(bank, one), status(bank, two)) == ("PATC", "PATC")


def test_who_may_sign_some_of_the_payments_gets_the_authorisation(bank: Bank) -> None:
    basket_id, one, two = of_firm(bank)
    approve(bank, two, SIRI)
    baskets.start_authorisation(bank, basket(bank, basket_id), HOW, national_id=TOR)
    approve(bank, basket_id, TOR)
    assert (status(bank, one), status(bank, two)) == ("RCVD", "ACTC")
    assert sca.expected(sca_control.find(bank, basket_id)) == SIRI


@pytest.mark.parametrize("own_first", [True, False])
def test_a_further_authorisation_of_payments_that_different_persons_sign_next_is_for_either(
    bank: Bank, own_first: bool
) -> None:
    basket_id, *own = of_firm(bank)
    waiting, halfway = own if own_first else reversed(own)
    approve(bank, halfway, SIRI)
    _, token = baskets.start_authorisation(bank, basket(bank, basket_id), HOW, national_id=None)
    approve(bank, token, TOR)
    assert (status(bank, waiting), status(bank, halfway)) == ("RCVD", "ACTC")


def test_an_event_tells_every_change_of_a_baskets_status_and_nothing_else_of_it(bank: Bank) -> None:
    one, two = straks(bank), straks(bank, "200.00")
    events: list[tuple[str, str]] = []
    bank.watch(
        lambda event: events.append((event["id"], event["status"])) if event and event["type"] == "basket" else None
    )
    basket_id = create(bank, one, two)
    approve(bank, one)
    assert [events, state(bank, basket_id)] == [[(basket_id, "RCVD")], "RCVD"]
    approve(bank, two)
    advance(bank, minutes=1)
    assert (status(bank, one), status(bank, two)) == ("ACSC", "ACSC")
    other = create(bank, straks(bank), third := straks(bank))
    payments.cancel(bank, payment(bank, third))
    assert events[1:] == [(basket_id, "ACTC"), (other, "RCVD"), (other, "RJCT")]


@pytest.mark.parametrize(("answer", "now"), [(approve, "ACTC"), (reject, "RJCT")])
def test_the_sca_of_a_basket_is_one_change_of_its_status(bank: Bank, answer: Any, now: str) -> None:
    basket_id = create(bank, straks(bank), straks(bank), straks(bank))
    statuses: list[str] = []
    bank.watch(lambda event: statuses.append(event["status"]) if event and event["type"] == "basket" else None)
    answer(bank, basket_id)
    assert statuses == [now]


def test_what_was_opened_for_deleted_baskets_does_not_pile_up(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sca, "PASSING_KEPT", 10)
    payment_id = initiate(bank, DOMESTIC, domestic())
    for _ in range(30):
        new_basket = basket(bank, create(bank, payment_id))
        baskets.start_authorisation(bank, new_basket, HOW, national_id=KARI)
        baskets.delete(bank, new_basket)
    assert bank.documents.count(BASKET) == bank.documents.count(AUTHORISATION) == 0
    assert bank.documents.count(SCA) == 10 + 1, "the payment's own as well"
    last = bank.documents.find(SCA, target=new_basket["id"])
    assert [authorisation["status"] for authorisation in last] == ["failed", "failed"]
