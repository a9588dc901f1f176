"""Standing orders: executed as bank time passes, each on its own date."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from emulator.api.operations.payments import details_shown
from emulator.bank.accounts import ledger
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT
from emulator.bank.payment import payment_views, payments, progression
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.threads import run_to_end
from tests.unit.payments import world
from tests.unit.payments.world import (
    PERIODIC,
    advance,
    approve,
    domestic,
    entries,
    give,
    initiate,
    life,
    money,
    paid,
    payment,
    status,
    to,
)


def standing(amount: str = "100.00", **more: Any) -> dict[str, Any]:
    return domestic(amount, **{"frequency": "Monthly", "startDate": "2026-03-10", **more})


def dates(bank: Bank, account_id: str = "kari") -> list[str]:
    return [entry["bookingDate"] for entry in entries(bank, account_id)]


def test_it_is_actc_from_approval_and_acsc_after_its_last_execution(bank: Bank) -> None:
    payment_id = paid(bank, PERIODIC, standing(endDate="2026-05-31"))
    assert status(bank, payment_id) == "ACTC"
    assert money(bank, "kari") == (10000, 0)
    advance(bank, days=365)
    assert dates(bank) == ["2026-03-10", "2026-04-10", "2026-05-10"]
    assert [name for name, _ in life(bank, payment_id)] == ["RCVD", "ACTC", "ACSC"]
    assert payment(bank, payment_id)["history"][-1]["at"] == "2026-05-09T22:00:00.000000+00:00"  # midnight in Oslo
    assert "due" not in payment(bank, payment_id)
    assert run_to_end(ledger.reporting(bank))["balanced"]


def test_without_an_end_it_goes_on_for_ever(bank: Bank) -> None:
    payment_id = paid(bank, PERIODIC, standing("10.00"))
    advance(bank, days=800)
    assert status(bank, payment_id) == "ACTC"
    assert len(dates(bank)) == 27
    assert payment(bank, payment_id)["due"] > bank.clock.stamp()


def test_an_execution_whose_day_passed_before_the_approval_is_made_up_for_at_once(bank: Bank) -> None:
    payment_id = initiate(bank, PERIODIC, standing(startDate="2026-03-02"))
    to(bank, datetime(2026, 3, 3, 7, tzinfo=UTC))
    world.authorise(bank, payment_id)
    progression.run_due(bank)
    assert dates(bank) == ["2026-03-03"]
    advance(bank, days=40)
    assert dates(bank) == ["2026-03-03", "2026-04-02"]


def test_a_late_execution_without_funds_shows_the_day_on_which_it_was_skipped(bank: Bank) -> None:
    payment_id = initiate(bank, PERIODIC, standing("20000.00", startDate="2026-03-02"))
    to(bank, datetime(2026, 3, 3, 7, tzinfo=UTC))
    world.authorise(bank, payment_id)
    progression.run_due(bank)
    executions = details_shown(bank, payment(bank, payment_id))["executions"]
    assert executions == [{"executionDate": "2026-03-03", "transactionStatus": "RJCT"}]


def test_an_execution_without_funds_is_skipped_and_shows_in_the_details(bank: Bank) -> None:
    payment_id = paid(bank, PERIODIC, standing("6000.00", endDate="2026-06-30"))
    advance(bank, days=60)
    assert payment(bank, payment_id)["fundsAvailable"] is False
    give(bank, "kari", "4000.00")
    advance(bank, days=100)
    details = details_shown(bank, payment(bank, payment_id))
    assert details["executions"] == [
        {"executionDate": "2026-06-10", "transactionStatus": "RJCT"},
        {"executionDate": "2026-05-10", "transactionStatus": "ACSC"},
        {"executionDate": "2026-04-10", "transactionStatus": "RJCT"},
        {"executionDate": "2026-03-10", "transactionStatus": "ACSC"},
    ]
    assert details["transactionStatus"] == "ACSC"


def test_executions_stay_told_when_their_transactions_are_deleted(bank: Bank) -> None:
    payment_id = paid(bank, PERIODIC, standing(startDate="2026-03-03", frequency="Daily"))
    advance(bank, days=2)
    run_to_end(sandbox_accounts.deleting_transactions(bank, ACCOUNT, "kari"))
    assert details_shown(bank, payment(bank, payment_id))["executions"] == [
        {"executionDate": "2026-03-04", "transactionStatus": "ACSC"},
        {"executionDate": "2026-03-03", "transactionStatus": "ACSC"},
    ]


def test_the_details_show_the_newest_hundred_executions(bank: Bank) -> None:
    payment_id = paid(bank, PERIODIC, standing("1.00", frequency="Daily"))
    advance(bank, days=150)
    shown = details_shown(bank, payment(bank, payment_id))["executions"]
    assert (len(shown), shown[0]["executionDate"], shown[-1]["executionDate"]) == (100, "2026-07-30", "2026-04-22")


def test_a_fee_is_booked_with_every_execution(bank: Bank) -> None:
    script = world.Script(fee="5.00")
    paid(bank, PERIODIC, standing(endDate="2026-04-30"), script=script)
    advance(bank, days=60)
    assert money(bank, "kari") == (9790, 0)
    assert sorted(entry["amount"] for entry in entries(bank, "kari")) == ["-100.00", "-100.00", "-5.00", "-5.00"]


@pytest.mark.parametrize(
    ("rule", "day"),
    [("following", "2026-04-07"), ("preceding", "2026-04-01"), ("preceeding", "2026-04-01"), (None, "2026-04-07")],
)
def test_in_norway_a_date_that_is_no_banking_day_moves_by_its_rule(rule: str, day: str) -> None:
    bank = world.build(calendar="norway")
    paid(bank, PERIODIC, standing(startDate="2026-03-03", executionRule=rule, endDate="2026-05-01"))
    advance(bank, days=60)
    assert dates(bank) == ["2026-03-03", day]


def test_in_norway_it_runs_at_14_and_after_that_on_the_next_banking_day() -> None:
    bank = world.build(calendar="norway")
    before = paid(bank, PERIODIC, standing(startDate="2026-03-06"))
    to(bank, datetime(2026, 3, 6, 13, 30, tzinfo=UTC))  # a Friday, 14:30 in Oslo
    late = paid(bank, PERIODIC, standing("50.00", startDate="2026-03-06"))
    advance(bank, days=7)
    booked = {entry["paymentId"]: entry["bookingDate"] for entry in entries(bank, "kari")}
    assert booked == {before: "2026-03-06", late: "2026-03-09"}


@pytest.mark.parametrize(("calendar", "first"), [("norway", "2026-03-09"), ("always-open", "2026-03-06")])
@pytest.mark.parametrize("start", ["2026-03-05", "2026-03-06"])
def test_the_page_names_the_day_on_which_it_is_first_executed(calendar: str, start: str, first: str) -> None:
    bank = world.build(calendar=calendar)
    to(bank, datetime(2026, 3, 5, 20, tzinfo=UTC))
    payment_id = initiate(bank, PERIODIC, standing(startDate=start))
    to(bank, datetime(2026, 3, 6, 13, 30, tzinfo=UTC))  # a Friday, 14:30 in Oslo
    (shown,) = payment_views.summary(bank, payment(bank, payment_id))
    assert shown["first"] == first
    world.authorise(bank, payment_id)
    advance(bank, days=7)
    assert dates(bank) == [first]


@pytest.mark.parametrize("calendar", ["norway", "always-open"])
def test_an_execution_that_was_made_up_for_stands_for_all_that_had_come_by_then(calendar: str) -> None:
    bank = world.build(calendar=calendar)
    to(bank, datetime(2026, 3, 5, 12, tzinfo=UTC))
    payment_id = initiate(bank, PERIODIC, standing(startDate="2026-03-05", frequency="Daily", endDate="2026-03-10"))
    to(bank, datetime(2026, 3, 6, 11, tzinfo=UTC))  # a Friday
    world.authorise(bank, payment_id)
    advance(bank, days=7)
    weekend = [] if calendar == "norway" else ["2026-03-07", "2026-03-08"]
    assert dates(bank) == ["2026-03-06", *weekend, "2026-03-09", "2026-03-10"]
    assert status(bank, payment_id) == "ACSC"


def test_manual_leaves_each_execution_to_a_hand() -> None:
    bank = world.build(progression="manual")
    payment_id = paid(bank, PERIODIC, standing(endDate="2026-04-30"))
    advance(bank, days=90)
    assert dates(bank) == []
    assert progression.advance(bank, payment_id)["status"] == "ACTC"
    assert progression.advance(bank, payment_id)["status"] == "ACSC"
    assert len(dates(bank)) == 2


@pytest.mark.parametrize(("calendar", "made_up"), [("always-open", "2026-03-13"), ("norway", "2026-03-16")])
def test_what_waited_for_a_hand_is_made_up_for_when_time_brings_the_executions_again(
    calendar: str, made_up: str
) -> None:
    bank = world.build(progression="manual", calendar=calendar)
    paid(bank, PERIODIC, standing(startDate="2026-03-03", frequency="Daily", endDate="2026-03-17"))
    to(bank, datetime(2026, 3, 13, 15, tzinfo=UTC))  # a Friday, after the run
    bank.change_settings({"progression": "time"})
    advance(bank, days=7)
    weekend = ["2026-03-14", "2026-03-15", "2026-03-16"] if calendar == "always-open" else []
    assert dates(bank) == [made_up, *weekend, "2026-03-17"]


def test_it_can_be_cancelled_between_its_executions(bank: Bank) -> None:
    payment_id = paid(bank, PERIODIC, standing())
    advance(bank, days=20)
    assert payments.cancel(bank, payment(bank, payment_id)) is False
    how = world.Approach(redirectUri="https://tpp.example/back")
    payments.start_cancellation(bank, payment(bank, payment_id), how, national_id=world.KARI)
    approve(bank, payment_id)
    assert status(bank, payment_id) == "CANC"
    advance(bank, days=90)
    assert dates(bank) == ["2026-03-10"]
