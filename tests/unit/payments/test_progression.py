"""How payments go from status to status as bank time passes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from emulator.api.operations.payments import details_shown, state_shown
from emulator.bank import fixtures, notifications
from emulator.bank.accounts import accounts, ledger
from emulator.bank.bank import Bank
from emulator.bank.clock import moment, stamp
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, PAYMENT, SCA, TRANSACTION
from emulator.bank.payment import payment_views, payments, progression
from emulator.bank.payment.initiation import Script
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.threads import run_to_end
from tests.known_state import EVEN
from tests.unit.payments import world
from tests.unit.payments.test_standing import standing
from tests.unit.payments.world import (
    BULK,
    CROSS_BORDER,
    DOMESTIC,
    NOW,
    PERIODIC,
    SEPA,
    STRAKS,
    advance,
    approve,
    authorise,
    bulk,
    domestic,
    entries,
    give,
    initiate,
    life,
    money,
    paid,
    payment,
    sepa,
    status,
    to,
)

RCVD = ("RCVD", 0)
DAY = 86400
OSLO_MIDNIGHT = 15 * 3600  # of the next day, from NOW


def at(day: int, hour: int, minute: int = 0, month: int = 3) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def since_now(moment: datetime) -> float:
    return (moment - NOW).total_seconds()


# progression: time


@pytest.mark.parametrize(
    ("product", "body", "who", "ways"),
    [
        (STRAKS, domestic(), world.KARI, [RCVD, ("ACTC", 0), ("ACSP", 1), ("ACSC", 3)]),
        (DOMESTIC, domestic(), world.KARI, [RCVD, ("ACTC", 0), ("ACSP", 1), ("ACSC", 3)]),
        (SEPA, sepa(), EVEN, [RCVD, ("ACTC", 0), ("ACSP", 1), ("ACWP", 2), ("ACSC", 3)]),
        (CROSS_BORDER, sepa(), EVEN, [RCVD, ("ACTC", 0), ("ACSP", 1), ("ACWP", 2), ("ACSC", 3)]),
    ],
)
def test_an_approved_payment_is_booked_after_three_seconds(
    bank: Bank, product: tuple[str, str], body: dict[str, Any], who: str, ways: list[tuple[str, float]]
) -> None:
    payment_id = initiate(bank, product, body, who=who)
    assert life(bank, payment_id) == [RCVD]
    approve(bank, payment_id, who)
    assert life(bank, payment_id) == [RCVD, ("ACTC", 0)]
    advance(bank, seconds=10)
    assert life(bank, payment_id) == ways
    assert "due" not in payment(bank, payment_id)


def test_an_advance_at_once_tells_the_same_as_one_from_step_to_step() -> None:
    """Documents, notifications and events bear the moment at which a step was due, not the end of the advance."""

    def lived(*, at_once: bool) -> str:
        bank, events = world.build(notifications=True), list[Any]()
        bank.watch(events.append)
        world.agree(bank, signatures=2)
        given_up = initiate(bank, DOMESTIC, domestic("1.00"))
        notified = {
            given_up: "",
            initiate(bank, STRAKS, domestic("2.00")): world.KARI,
            initiate(bank, PERIODIC, standing("3.00")): world.KARI,
            initiate(bank, SEPA, sepa("5.00"), who=EVEN): EVEN,
            initiate(bank, DOMESTIC, domestic("20000.00")): world.KARI,
            initiate(bank, BULK, bulk("4.00", debtor="99911000012"), **world.FIRM): world.SIRI,
        }
        for number, (payment_id, who) in enumerate(notified.items()):
            script = [("late", 3600.0), ("twice", 0.0), ("reordered", 0.0)][number % 3]
            about: dict[str, Any] = {"tpp": "t", "uri": "https://t.example/", "content": ("SCA", "PROCESS")}
            notifications.subscribe(bank, payment_id, "payment", **about, script=script)
            if who:
                approve(bank, payment_id, who)
        _pending(bank, stamp(NOW + timedelta(hours=5)))
        end = NOW + timedelta(days=40)
        while not at_once and (due := progression.next_due(bank)) is not None and moment(due) < end:
            to(bank, moment(due))
        to(bank, end)
        documents = {**bank.documents.dump(), "meta": None}
        numbers: dict[str, str] = {}  # ids that are drawn later differ
        text = json.dumps([documents, events], indent=1)
        return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", lambda id: numbers.setdefault(id[0], str(len(numbers))), text)

    assert lived(at_once=True) == lived(at_once=False)


def test_of_payments_that_are_due_at_one_moment_the_first_made_gets_the_money(bank: Bank) -> None:
    several = [paid(bank, DOMESTIC, domestic("11000.00")) for _ in range(12)]
    advance(bank, hours=1)
    give(bank, "kari", "23000.00")
    advance(bank, days=1)
    assert [status(bank, one) for one in several] == ["ACSC"] * 3 + ["ACCP"] * 9


def test_a_payment_for_a_later_date_waits_as_pending_and_runs_at_midnight_in_oslo(bank: Bank) -> None:
    payment_id = paid(bank, DOMESTIC, domestic(requestedExecutionDate="2026-03-03"))
    advance(bank, seconds=2)
    assert life(bank, payment_id) == [RCVD, ("ACTC", 0), ("PDNG", 1)]
    advance(bank, days=2)
    assert life(bank, payment_id)[3:] == [("ACSP", OSLO_MIDNIGHT + 1), ("ACSC", OSLO_MIDNIGHT + 3)]
    assert entries(bank, "kari")[0]["bookingDate"] == "2026-03-03"


def test_a_date_that_has_passed_at_approval_is_moved_to_today(bank: Bank) -> None:
    payment_id = initiate(bank, DOMESTIC, domestic(requestedExecutionDate="2026-03-02"))
    to(bank, at(3, 7))
    authorise(bank, payment_id)
    assert status(bank, payment_id) == "ACWC"
    assert payment(bank, payment_id)["psuMessages"]
    advance(bank, seconds=3)
    assert status(bank, payment_id) == "ACSC"


def test_text_that_the_payment_system_does_not_carry_is_changed(bank: Bank) -> None:
    unchanged = paid(bank, DOMESTIC, domestic(remittanceInformationUnstructured="Blåbær & øl, 100 %"))
    assert status(bank, unchanged) == "ACTC"
    changed = paid(bank, DOMESTIC, domestic(remittanceInformationUnstructured="Žluťoučký Ω 漢"))
    assert status(bank, changed) == "ACWC"
    assert payment(bank, changed)["psuMessages"] == ["textChanged"]
    advance(bank, seconds=3)
    assert [name for name, _ in life(bank, changed)] == ["RCVD", "ACWC", "ACSP", "ACSC"]
    assert "psuMessages" not in payment(bank, changed)
    texts = {entry["paymentId"]: entry["remittanceInformationUnstructured"] for entry in entries(bank, "kari")}
    assert texts == {unchanged: "Blåbær & øl, 100 %", changed: "Zlutoucký ? ?"}
    assert details_shown(bank, payment(bank, changed))["remittanceInformationUnstructured"] == "Žluťoučký Ω 漢"


def test_straks_is_never_accepted_with_a_change(bank: Bank) -> None:
    payment_id = paid(bank, STRAKS, domestic(remittanceInformationUnstructured="漢"))
    assert status(bank, payment_id) == "ACTC"


# calendar: norway


@pytest.fixture
def norway() -> Bank:
    return world.build(calendar="norway")


def _approved(bank: Bank, moment: datetime, product: tuple[str, str] = DOMESTIC, **more: Any) -> str:
    to(bank, moment)
    if product is SEPA:
        return paid(bank, product, sepa(**more), who=EVEN)
    return paid(bank, product, domestic(**more))


def test_before_the_cut_off_a_payment_runs_at_14_the_same_day(norway: Bank) -> None:
    payment_id = _approved(norway, at(2, 12, 59))  # 13:59 in Oslo
    advance(norway, days=1)
    run = since_now(at(2, 13))
    approved = since_now(at(2, 12, 59))
    assert life(norway, payment_id)[1:] == [
        ("ACTC", approved),
        ("PDNG", approved + 1),
        ("ACSP", run + 1),
        ("ACSC", run + 3),
    ]


def test_sepa_follows_the_days_of_target2(norway: Bank) -> None:
    # 1 May rests in both, Ascension Day (14 May 2026) in Norway only.
    domestic_one = _approved(norway, at(2, 9), requestedExecutionDate="2026-05-14")
    sepa_one = _approved(norway, at(2, 9), SEPA, requestedExecutionDate="2026-05-14")
    assert (status(norway, domestic_one), status(norway, sepa_one)) == ("ACWC", "ACTC")


def test_straks_executes_at_once_whatever_the_day(norway: Bank) -> None:
    payment_id = _approved(norway, at(8, 2), STRAKS)  # a Sunday night
    advance(norway, seconds=3)
    assert status(norway, payment_id) == "ACSC"


# no money


def test_without_money_a_payment_is_accp_and_paid_at_the_next_run_after_money_came(bank: Bank) -> None:
    payment_id = paid(bank, DOMESTIC, domestic("10000.01"))
    assert status(bank, payment_id) == "ACTC"
    assert payment(bank, payment_id)["fundsAvailable"] is False
    advance(bank, seconds=10)
    assert life(bank, payment_id) == [RCVD, ("ACTC", 0), ("ACCP", 1)]
    advance(bank, days=1)
    assert status(bank, payment_id) == "ACCP"
    give(bank, "kari", "0.01")
    advance(bank, days=1)
    midnight = OSLO_MIDNIGHT + DAY
    assert life(bank, payment_id)[3:] == [("ACSP", midnight), ("ACSC", midnight + 2)]
    assert payment(bank, payment_id)["fundsAvailable"] is True
    assert money(bank, "kari") == (0, 0)


def test_without_money_for_three_banking_days_it_is_rejected(bank: Bank) -> None:
    payment_id = paid(bank, DOMESTIC, domestic("10000.01"))
    advance(bank, days=30)
    assert life(bank, payment_id)[2:] == [("ACCP", 1), ("RJCT", OSLO_MIDNIGHT + 2 * DAY)]
    assert payment(bank, payment_id)["psuMessages"] == ["noMoney"]
    assert entries(bank, "kari") == entries(bank, "kari", "pending") == []


def test_in_norway_the_runs_are_those_of_banking_days(norway: Bank) -> None:
    payment_id = _approved(norway, at(6, 9), amount="10000.01")  # a Friday
    advance(norway, days=30)
    friday, wednesday = since_now(at(6, 13)), since_now(at(11, 13))
    assert life(norway, payment_id)[3:] == [("ACCP", friday + 1), ("RJCT", wednesday)]


def test_straks_without_money_is_retried_each_minute_for_ten_minutes(bank: Bank) -> None:
    lost, saved = paid(bank, STRAKS, domestic("10000.01")), paid(bank, STRAKS, domestic("10000.02"))
    advance(bank, minutes=5)
    give(bank, "kari", "0.02")
    advance(bank, minutes=30)
    assert life(bank, saved)[2:] == [("ACCP", 1), ("RJCT", 600)]
    assert [name for name, _ in life(bank, lost)] == ["RCVD", "ACTC", "ACCP", "ACSP", "ACSC"]
    assert life(bank, lost)[3] == ("ACSP", 301)


def test_an_account_that_is_deleted_pays_what_is_being_executed_and_nothing_else(bank: Bank) -> None:
    to_even = {"to": "99901100019", "requestedExecutionDate": "2026-03-05"}
    waiting = paid(bank, DOMESTIC, domestic("70.00", **to_even))
    several = paid(bank, BULK, {**bulk("1.00", "2.00"), "requestedExecutionDate": "2026-03-05"})
    under_way = [paid(bank, STRAKS, domestic("5.00", to="99901100019")), paid(bank, BULK, bulk("3.00"))]
    advance(bank, seconds=1)
    assert [status(bank, one) for one in under_way] == ["ACSP", "ACSP"]
    before = money(bank, "even")[0]
    run_to_end(sandbox_accounts.deleting(bank, ACCOUNT, "kari"))
    assert money(bank, "even")[0] == before + 5
    advance(bank, days=30)
    assert [status(bank, one) for one in under_way] == ["ACSC", "ACSC"]
    for one in (waiting, several):
        assert [name for name, _ in life(bank, one)][-3:] == ["PDNG", "ACCP", "RJCT"]
        assert payment(bank, one)["fundsAvailable"] is False
    assert money(bank, "even")[0] == before + 5
    assert run_to_end(ledger.reporting(bank))["balanced"]


# the other paces


def _reads(bank: Bank, payment_id: str, count: int) -> list[str]:
    seen = []
    for _ in range(count):
        seen.append(status(bank, payment_id))
        progression.read(bank, payment(bank, payment_id))
    return seen


def test_with_polls_every_nth_status_read_brings_a_step_that_the_next_one_shows() -> None:
    bank = world.build(progression={"polls": 2})
    payment_id = paid(bank, STRAKS, domestic())
    advance(bank, hours=1)
    assert _reads(bank, payment_id, 6) == ["ACTC", "ACTC", "ACSP", "ACSP", "ACSC", "ACSC"]
    assert money(bank, "kari") == (9900, 0)


@pytest.mark.parametrize("product", [STRAKS, DOMESTIC])
def test_a_payment_that_reads_bring_to_its_execution_late_has_all_its_tries(product: tuple[str, str]) -> None:
    bank = world.build(progression={"polls": 1})
    payment_id = paid(bank, product, domestic("10000.01"))
    advance(bank, days=5)
    assert _reads(bank, payment_id, 2)[-1] == "ACCP"
    advance(bank, seconds=30)
    give(bank, "kari", "1.00")
    advance(bank, minutes=2) if product == STRAKS else advance(bank, days=1)
    assert [name for name, _ in life(bank, payment_id)][3:] == ["ACSP"]


@pytest.mark.parametrize("product", [DOMESTIC, BULK])
def test_a_creditor_who_has_an_account_only_at_execution_is_credited(bank: Bank, product: tuple[str, str]) -> None:
    body = domestic(to="99901100019") if product == DOMESTIC else bulk("100.00")
    for one in body.get("payments", [body]):
        one["creditorAccount"]["bban"] = "99901100019"
    even = bank.documents.get(ACCOUNT, "even") or {}
    bank.documents.delete(ACCOUNT, "even")
    payment_id = paid(bank, product, {**body, "requestedExecutionDate": "2026-03-05"})
    bank.documents.put(ACCOUNT, {**even, "id": "even-again"})
    advance(bank, days=4)
    assert status(bank, payment_id) == "ACSC"
    assert money(bank, "even-again") == (600, 0)


def test_polls_bring_neither_an_approval_nor_a_date_nor_money() -> None:
    bank = world.build(progression={"polls": 1})
    unsigned = initiate(bank, STRAKS, domestic())
    assert _reads(bank, unsigned, 3) == ["RCVD"] * 3
    waiting = paid(bank, DOMESTIC, domestic(requestedExecutionDate="2026-03-03"))
    assert _reads(bank, waiting, 4) == ["ACTC", "PDNG", "PDNG", "PDNG"]
    empty = paid(bank, DOMESTIC, domestic("99999.00"))
    assert _reads(bank, empty, 4) == ["ACTC", "ACCP", "ACCP", "ACCP"]
    advance(bank, days=5)
    assert _reads(bank, waiting, 3) == ["PDNG", "ACSP", "ACSC"]
    assert status(bank, empty) == "RJCT"
    assert _reads(bank, unsigned, 1) == ["RJCT"]


def scripted(bank: Bank) -> str:
    """An approved payment whose script has waits."""
    script = world.Script(progress=[("ACTC", 0), ("PDNG", 5), ("RJCT", 5)])
    return paid(bank, DOMESTIC, domestic(), script=script)


@pytest.mark.parametrize("pace", ["time", "immediate"])
def test_the_waits_of_a_script_count_where_time_brings_the_steps(pace: str) -> None:
    bank = world.build(progression=pace)
    payment_id = scripted(bank)
    advance(bank, seconds=20)
    assert life(bank, payment_id) == [RCVD, ("ACTC", 0), ("PDNG", 5), ("RJCT", 10)]


def test_they_do_not_where_reads_or_a_hand_do() -> None:
    polled = world.build(progression={"polls": 1})
    payment_id = scripted(polled)
    advance(polled, seconds=20)
    assert _reads(polled, payment_id, 3) == ["ACTC", "PDNG", "RJCT"]
    by_hand = world.build(progression="manual")
    payment_id = scripted(by_hand)
    advance(by_hand, seconds=20)
    assert status(by_hand, payment_id) == "ACTC"
    assert [progression.advance(by_hand, payment_id)["status"] for _ in range(2)] == ["PDNG", "RJCT"]


def test_the_next_step_by_hand_goes_through_accp_where_money_is_missing() -> None:
    bank = world.build(progression="manual")
    payment_id = paid(bank, STRAKS, domestic("20000.00"))
    seen = [progression.advance(bank, payment_id)["status"] for _ in range(3)]
    assert seen == ["ACCP", "ACSP", "ACSC"]
    assert money(bank, "kari") == (-10000, 0)


@pytest.mark.parametrize("before", [{"polls": 1}, "manual"])
@pytest.mark.parametrize("pace", ["time", "immediate"])
def test_what_waited_for_a_read_or_a_hand_goes_on_when_the_setting_is_another(before: Any, pace: str) -> None:
    bank = world.build(progression=before)
    straks = paid(bank, STRAKS, domestic())
    dated = paid(bank, DOMESTIC, domestic(requestedExecutionDate="2026-03-03"))
    scripted = paid(bank, STRAKS, domestic(), script=Script(progress=[("ACTC", 0), ("RJCT", 5)]))
    unsigned = initiate(bank, STRAKS, domestic())
    advance(bank, seconds=60)
    bank.change_settings({"straks_limit": "1000.00"})
    assert "due" not in payment(bank, straks)
    bank.change_settings({"progression": pace})
    advance(bank, seconds=5)
    assert [status(bank, one) for one in (straks, dated, scripted, unsigned)] == ["ACSC", "PDNG", "RJCT", "RCVD"]
    advance(bank, days=1)
    assert (status(bank, dated), status(bank, unsigned)) == ("ACSC", "RJCT")


# by hand


def test_a_hand_can_approve_in_the_customers_place(bank: Bank) -> None:
    payment_id = initiate(bank, STRAKS, domestic())
    assert progression.advance(bank, payment_id)["status"] == "ACTC"
    assert [sca["status"] for sca in bank.documents.find(SCA, target=payment_id)] == ["failed"]
    advance(bank, seconds=3)
    assert status(bank, payment_id) == "ACSC"


def test_a_hand_leads_along_the_table_and_money_follows(bank: Bank) -> None:
    payment_id = initiate(bank, SEPA, sepa("900.00"), who=EVEN)  # more than there is
    assert progression.advance(bank, payment_id, "ACSC")["status"] == "ACSC"
    assert [name for name, _ in life(bank, payment_id)] == ["RCVD", "ACTC", "ACSP", "ACWP", "ACSC"]
    assert money(bank, "even-eur") == (-100, 0)
    assert run_to_end(ledger.reporting(bank))["balanced"]


def test_a_hand_can_take_the_money_away(bank: Bank) -> None:
    payment_id = paid(bank, DOMESTIC, domestic())
    assert progression.advance(bank, payment_id, "ACCP")["fundsAvailable"] is False
    assert money(bank, "kari") == (10000, 0)
    assert progression.advance(bank, payment_id, "RJCT")["psuMessages"]


def test_a_hand_cannot_leave_the_table(bank: Bank) -> None:
    for target, code in (("ACXX", "FORMAT_ERROR"), ("PART", "CONFLICT"), ("RCVD", "CONFLICT"), ("ACTC", "CONFLICT")):
        payment_id = paid(bank, STRAKS, domestic())
        before = bank.documents.dump()
        with pytest.raises(BankError) as refused:
            progression.advance(bank, payment_id, target)
        assert refused.value.code == code
        assert bank.documents.dump() == before, target


# scripts


def test_a_script_leads_a_payment_over_the_table_in_its_own_time(bank: Bank) -> None:
    script = Script(progress=[("ACTC", 0), ("PDNG", 30), ("RJCT", 5)])
    payment_id = paid(bank, DOMESTIC, domestic(), script=script)
    assert money(bank, "kari") == (10000, 100)
    advance(bank, minutes=5)
    assert life(bank, payment_id) == [RCVD, ("ACTC", 0), ("PDNG", 30), ("RJCT", 35)]
    assert money(bank, "kari") == (10000, 0)
    assert entries(bank, "kari", "pending") == []


def test_a_rejection_by_a_script_tells_no_other_reason() -> None:
    bank = world.build(calendar="norway")
    saturday = domestic(requestedExecutionDate="2026-03-07")
    payment_id = paid(bank, DOMESTIC, saturday, script=Script(progress=[("RJCT", 0)]))
    assert payment(bank, payment_id)["psuMessages"] == ["rejected"]


@pytest.mark.parametrize(
    ("script", "target", "later"),
    [
        ([("ACTC", 0), ("PDNG", 9), ("ACSP", 9), ("RJCT", 5)], "ACSP", [("RJCT", 5)]),
        ([("ACTC", 0), ("ACCP", 2), ("ACSP", 60), ("ACSC", 2)], "ACSP", [("ACSC", 2)]),
        ([("ACTC", 0), ("ACSP", 5)], "ACWC", [("ACSP", 5)]),
        ([("ACTC", 0), ("RENT", 5), ("ACSP", 5)], "PDNG", [("RENT", 5), ("ACSP", 10)]),
        ([("ACTC", 0), ("PDNG", 5)], "ACSP", []),
    ],
)
def test_after_an_advance_by_hand_a_script_goes_on_with_what_the_table_allows_from_there(
    bank: Bank, script: list[tuple[str, float]], target: str, later: list[tuple[str, float]]
) -> None:
    for approved in (False, True):
        payment_id = initiate(bank, DOMESTIC, domestic(), script=Script(progress=script))
        if approved and target != "ACWC":
            approve(bank, payment_id)
        progression.advance(bank, payment_id, target)
        before, began = life(bank, payment_id), (bank.clock.now() - NOW).total_seconds()
        advance(bank, hours=2)
        assert life(bank, payment_id) == [*before, *((status, began + at) for status, at in later)]


@pytest.mark.parametrize("ended", ["RJCT", "CANC"])
@pytest.mark.parametrize(("amount", "available"), [("100.00", True), ("10000.01", False)])
def test_funds_available_is_told_too_where_a_script_ends_the_payment_at_once(
    bank: Bank, ended: str, amount: str, available: bool
) -> None:
    payment_id = paid(bank, STRAKS, domestic(amount), script=Script(progress=[(ended, 0)]))
    shown = state_shown(bank, payment(bank, payment_id))
    assert (shown["transactionStatus"], shown["fundsAvailable"]) == (ended, available)
    assert money(bank, "kari") == (10000, 0)
    assert entries(bank, "kari") == entries(bank, "kari", "pending") == []


@pytest.mark.parametrize("target", ["PDNG", "ACCP", "ACSP"])
def test_a_script_leads_nothing_off_the_table_before_the_approval(bank: Bank, target: str) -> None:
    order = domestic(startDate="2026-03-10", frequency="Monthly")
    payment_id = initiate(bank, PERIODIC, order, script=Script(progress=[("ACTC", 0)]))
    with pytest.raises(BankError) as refused:
        progression.advance(bank, payment_id, target)
    assert (refused.value.code, life(bank, payment_id)) == ("CONFLICT", [RCVD])


# money and messages


def test_an_approved_payment_reserves_and_shows_pending_then_booked(bank: Bank) -> None:
    payment_id = paid(bank, STRAKS, domestic("100.00", to="99901100019"))
    assert money(bank, "kari") == (10000, 100)
    (pending,) = entries(bank, "kari", "pending")
    assert (pending["amount"], pending["paymentId"]) == ("-100.00", payment_id)
    assert entries(bank, "even") == entries(bank, "even", "pending") == []
    advance(bank, seconds=3)
    assert (money(bank, "kari"), money(bank, "even")) == ((9900, 0), (600, 0))
    assert entries(bank, "kari", "pending") == []
    (booked,) = entries(bank, "kari")
    assert booked["id"] == pending["id"]
    (received,) = entries(bank, "even")
    assert received["amount"] == "100.00"


def test_a_fee_is_booked_with_the_payment_as_an_entry_of_its_own(bank: Bank) -> None:
    abroad = sepa("10.00", debtorAccount={"iban": "NO8599901000014", "currency": "NOK"})
    payment_id = paid(bank, SEPA, abroad)
    assert money(bank, "kari") == (10000, world.Decimal("142.35"))
    advance(bank, seconds=3)
    first, second = sorted(entries(bank, "kari"), key=lambda entry: str(entry["amount"]))
    assert (first["amount"], second["amount"]) == ("-117.35", "-25.00")
    assert first["currencyExchange"] == {
        "sourceCurrency": "NOK",
        "exchangeRate": "11.7350",
        "unitCurrency": "EUR",
        "targetCurrency": "EUR",
        "quotationDate": "2026-03-02",
    }
    assert (first["paymentId"], second["feeFor"]) == (payment_id, payment_id)
    assert run_to_end(ledger.reporting(bank))["balanced"]


def test_a_fee_is_pending_with_its_payment_so_that_the_booking_changes_no_expectation(bank: Bank) -> None:
    def expected() -> str:
        return str(accounts.balances(bank, bank.documents.get(ACCOUNT, "kari") or {})["expected"])

    abroad = sepa("10.00", debtorAccount={"iban": "NO8599901000014", "currency": "NOK"})
    paid(bank, SEPA, abroad)
    pending = entries(bank, "kari", "pending")
    assert (sorted(entry["amount"] for entry in pending), expected()) == (["-117.35", "-25.00"], "9857.65")
    run_to_end(sandbox_accounts.deleting_transactions(bank, ACCOUNT, "kari"))
    assert entries(bank, "kari", "pending") == pending
    advance(bank, seconds=3)
    assert {entry["id"] for entry in entries(bank, "kari")} == {entry["id"] for entry in pending}
    assert (entries(bank, "kari", "pending"), expected()) == ([], "9857.65")


def test_a_creditor_here_is_paid_in_the_currency_of_its_account(bank: Bank) -> None:
    paid(bank, DOMESTIC, domestic("117.35", to="99901100027"))
    advance(bank, seconds=3)
    (received,) = entries(bank, "even-eur")
    assert (received["amount"], received["currency"]) == ("10.00", "EUR")
    assert received["currencyExchange"]["exchangeRate"] == "0.0852152"
    assert entries(bank, "kari")[0]["amount"] == "-117.35"


def test_a_second_approval_of_the_same_payment_is_refused(bank: Bank) -> None:
    payment_id = paid(bank, STRAKS, domestic())
    before = bank.documents.dump()
    with pytest.raises(BankError) as refused:
        payments.authorised(bank, payment_id, world.KARI)
    assert refused.value.code == "SCA_INVALID"
    assert bank.documents.dump() == before


def test_a_pending_entry_has_the_value_date_of_its_execution_and_no_booking_date(bank: Bank) -> None:
    paid(bank, DOMESTIC, domestic(requestedExecutionDate="2026-03-09"))
    paid(bank, STRAKS, domestic())
    dates = [(entry.get("bookingDate"), entry["valueDate"]) for entry in entries(bank, "kari", "pending")]
    assert dates == [(None, "2026-03-02"), (None, "2026-03-09")]


def _pending(bank: Bank, due: str) -> None:
    pending = ledger.pend(bank, "kari", {"amount": "-1.00"})
    bank.documents.put(TRANSACTION, {**(bank.documents.get(TRANSACTION, pending) or {}), "due": due})


@pytest.mark.parametrize("kind", [DOMESTIC, PERIODIC, BULK])
def test_funds_of_a_payment_that_waits_and_reserves_nothing_are_asked_for_at_each_read(
    bank: Bank, kind: tuple[str, str]
) -> None:
    on = (bank.clock.today() + timedelta(days=10)).isoformat()
    orders = {
        DOMESTIC: domestic("10000.01", requestedExecutionDate=on),
        PERIODIC: standing("10000.01", startDate=on),
        BULK: {**bulk("5000.00", "5000.01"), "requestedExecutionDate": on},
    }
    payment_id = paid(bank, kind, orders[kind])
    assert state_shown(bank, payment(bank, payment_id))["fundsAvailable"] is False
    give(bank, "kari", "0.01")
    assert state_shown(bank, payment(bank, payment_id))["fundsAvailable"] is True
    assert payment_views.view(bank, payment(bank, payment_id))["fundsAvailable"] is True
    give(bank, "kari", "-1.00")
    assert state_shown(bank, payment(bank, payment_id))["fundsAvailable"] is False


def test_the_clock_moves_in_whole_pieces_between_which_the_bank_may_be_used(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progression, "PIECE", 2)
    received = [initiate(bank, STRAKS, domestic()) for _ in range(6)]
    to = bank.clock.now() + timedelta(days=1)
    pieces = progression.move_clock(bank, now=to)
    assert next(pieces) == 2
    rejected = payment(bank, received[0])["history"][-1]["at"]
    assert rejected <= bank.clock.stamp() <= str(progression.next_due(bank)), "what is applied is not in the future"
    payments.cancel(bank, payment(bank, received[3]))  # meanwhile the fourth is cancelled and the fifth deleted
    bank.documents.delete(PAYMENT, received[4])
    list(pieces)
    assert [status(bank, received[place]) for place in (0, 1, 2, 3, 5)] == ["RJCT", "RJCT", "RJCT", "CANC", "RJCT"]
    assert progression.next_due(bank) is None
    assert bank.clock.now() == to
    assert not bank.advances


def test_the_clock_moves_no_further_where_the_bank_is_reset_meanwhile(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progression, "PIECE", 2)
    for _ in range(6):
        initiate(bank, STRAKS, domestic())
    pieces = progression.move_clock(bank, now=bank.clock.now() + timedelta(days=1))
    next(pieces)
    fixtures.reset(bank, "known-state", now=bank.begins.now, mode="frozen")
    standing = bank.clock.now()
    with pytest.raises(BankError, match="reset or deleted in the meantime"):
        next(pieces)
    assert bank.clock.now() == standing
    assert not bank.advances
