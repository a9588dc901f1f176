"""Bulk payments: entries are funded in order, what has no money is given up after three banking days."""

from __future__ import annotations

from emulator.api.operations.payments import details_shown, state_shown
from emulator.bank.accounts import ledger
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT
from emulator.bank.payment import progression
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.threads import run_to_end
from tests.unit.payments import world
from tests.unit.payments.world import (
    BULK,
    FIRM,
    advance,
    bulk,
    entries,
    give,
    life,
    money,
    paid,
    payment,
    status,
)

OSLO_MIDNIGHT = 15 * 3600  # of the next day, from NOW
DAY = 86400


def amounts(bank: Bank, account_id: str = "kari", shelf: str = "booked") -> list[str]:
    return sorted(entry["amount"] for entry in entries(bank, account_id, shelf))


def entry_statuses(bank: Bank, payment_id: str) -> list[str]:
    statuses: list[str] = details_shown(bank, payment(bank, payment_id))["entryStatuses"]
    return statuses


def test_a_bulk_with_money_for_all_is_booked_entry_by_entry(bank: Bank) -> None:
    body = bulk("100.00", "200.00")
    body["payments"][1]["creditorAccount"]["bban"] = "99901100019"
    payment_id = paid(bank, BULK, body)
    assert money(bank, "kari") == (10000, 300)
    assert amounts(bank, shelf="pending") == ["-100.00", "-200.00"]
    advance(bank, seconds=10)
    assert life(bank, payment_id) == [("RCVD", 0), ("ACTC", 0), ("ACSP", 1), ("ACSC", 3)]
    assert amounts(bank) == ["-100.00", "-200.00"]
    assert amounts(bank, shelf="pending") == []
    assert amounts(bank, "even") == ["200.00"]
    assert payment(bank, payment_id)["fundsAvailable"] is True
    assert entry_statuses(bank, payment_id) == ["ACSC", "ACSC"]
    assert run_to_end(ledger.reporting(bank))["balanced"]


def test_funds_available_of_a_bulk_that_waits_is_whether_its_open_entries_are_covered_now(bank: Bank) -> None:
    payment_id = paid(bank, BULK, bulk("6000.00", "5000.00"))
    advance(bank, seconds=10)
    for arrives, covered in (("0.00", False), ("999.99", False), ("0.01", True)):
        give(bank, "kari", arrives)
        assert state_shown(bank, payment(bank, payment_id))["fundsAvailable"] is covered, arrives


def test_entries_are_funded_in_order_and_the_rest_is_rejected_after_three_banking_days(bank: Bank) -> None:
    payment_id = paid(bank, BULK, bulk("6000.00", "5000.00", "4000.00"))
    assert payment(bank, payment_id)["fundsAvailable"] is False
    assert money(bank, "kari") == (10000, 0)
    advance(bank, seconds=10)
    assert status(bank, payment_id) == "ACSP"
    assert amounts(bank) == ["-4000.00", "-6000.00"]
    assert entry_statuses(bank, payment_id) == ["ACSC", "ACCP", "ACSC"]
    advance(bank, days=10)
    assert life(bank, payment_id)[2:] == [("ACSP", 1), ("PART", OSLO_MIDNIGHT + 2 * DAY)]
    assert entry_statuses(bank, payment_id) == ["ACSC", "RJCT", "ACSC"]
    assert run_to_end(ledger.reporting(bank))["balanced"]


def test_money_that_arrives_in_time_pays_the_waiting_entry_at_the_next_run(bank: Bank) -> None:
    payment_id = paid(bank, BULK, bulk("6000.00", "5000.00"))
    advance(bank, seconds=10)
    give(bank, "kari", "1000.00")
    advance(bank, days=1)
    assert life(bank, payment_id)[2:] == [("ACSP", 1), ("ACSC", OSLO_MIDNIGHT + 2)]
    assert payment(bank, payment_id)["fundsAvailable"] is True
    assert money(bank, "kari") == (0, 0)


def test_money_that_arrives_before_the_others_are_booked_waits_for_the_run_too(bank: Bank) -> None:
    payment_id = paid(bank, BULK, bulk("6000.00", "5000.00"))
    advance(bank, seconds=2)
    give(bank, "kari", "1000.00")
    advance(bank, seconds=1)
    assert entry_statuses(bank, payment_id) == ["ACSC", "ACCP"]
    assert money(bank, "kari") == (5000, 0)
    advance(bank, seconds=OSLO_MIDNIGHT - 3)
    assert entry_statuses(bank, payment_id) == ["ACSC", "ACSP"]
    assert money(bank, "kari") == (5000, 5000)
    advance(bank, seconds=2)
    assert entry_statuses(bank, payment_id) == ["ACSC", "ACSC"]


def test_an_entry_that_gets_its_money_at_the_last_run_is_paid(bank: Bank) -> None:
    payment_id = paid(bank, BULK, bulk("6000.00", "5000.00", "7000.00"))
    advance(bank, days=2)
    give(bank, "kari", "1000.00")
    advance(bank, days=2)
    assert life(bank, payment_id)[2:] == [("ACSP", 1), ("PART", OSLO_MIDNIGHT + 2 * DAY + 2)]
    assert entry_statuses(bank, payment_id) == ["ACSC", "ACSC", "RJCT"]


def test_a_bulk_without_money_goes_on_when_some_arrives(bank: Bank) -> None:
    payment_id = paid(bank, BULK, bulk("20000.00", "30000.00"))
    advance(bank, seconds=10)
    give(bank, "kari", "10000.00")
    advance(bank, days=10)
    midnight = OSLO_MIDNIGHT
    assert life(bank, payment_id)[2:] == [("ACCP", 1), ("ACSP", midnight), ("PART", midnight + 2 * DAY)]
    assert amounts(bank) == ["-20000.00", "10000.00"]


def test_a_firm_gets_one_entry_for_the_batch_when_it_asks_for_it(bank: Bank) -> None:
    body = bulk("100.00", "200.00", debtor="99911000012", batchBookingPreferred=True, paymentInformationId="WAGES-3")
    body["payments"][1]["creditorAccount"]["bban"] = "99901100019"
    payment_id = paid(bank, BULK, body, **FIRM)
    (pending,) = entries(bank, "firm", "pending")
    advance(bank, seconds=10)
    assert status(bank, payment_id) == "ACSC"
    (booked,) = entries(bank, "firm")
    assert booked["id"] == pending["id"]
    assert (booked["amount"], booked["endToEndId"], booked["debtorName"]) == ("-300.00", "WAGES-3", "Prøvebakeriet AS")
    first, second = booked["batch"]["entries"]
    assert (first["amount"], second["amount"]) == ("-100.00", "-200.00")
    assert first["creditorName"] == "Takstein Utleie AS"
    assert second["creditorAccount"] == {"bban": "99901100019", "iban": "NO4299901100019", "currency": "NOK"}
    assert amounts(bank, "even") == ["200.00"]
    assert run_to_end(ledger.reporting(bank))["balanced"]


def test_each_run_of_a_batch_is_an_entry_of_its_own(bank: Bank) -> None:
    body = bulk("30000.00", "30000.00", debtor="99911000012", batchBookingPreferred=True)
    paid(bank, BULK, body, **FIRM)
    advance(bank, seconds=10)
    give(bank, "firm", "10000.00")
    advance(bank, days=1)
    batches = [entry for entry in entries(bank, "firm") if "batch" in entry]
    assert [len(entry["batch"]["entries"]) for entry in batches] == [1, 1]
    assert money(bank, "firm") == (0, 0)


def test_a_batch_that_a_hand_pays_whole_leaves_nothing_pending(bank: Bank) -> None:
    body = bulk("30000.00", "30000.00", debtor="99911000012", batchBookingPreferred=True)
    payment_id = paid(bank, BULK, body, **FIRM)
    advance(bank, seconds=1)
    assert amounts(bank, "firm", "pending") == ["-30000.00"]
    progression.advance(bank, payment_id, "ACSC")
    assert (amounts(bank, "firm"), amounts(bank, "firm", "pending")) == (["-60000.00"], [])


def test_a_scripted_fee_is_charged_once_for_the_bulk(bank: Bank) -> None:
    payment_id = paid(bank, BULK, bulk("1.00", "2.00"), script=world.Script(fee="10.00"))
    assert details_shown(bank, payment(bank, payment_id))["transactionFees"] == {"amount": "10.00", "currency": "NOK"}
    assert money(bank, "kari") == (10000, 13)
    assert amounts(bank, shelf="pending") == ["-1.00", "-10.00", "-2.00"]
    advance(bank, seconds=10)
    assert amounts(bank) == ["-1.00", "-10.00", "-2.00"]


def test_a_hand_can_make_it_part_though_there_was_money_for_all(bank: Bank) -> None:
    payment_id = paid(bank, BULK, bulk("1.00", "2.00", "3.00"))
    assert progression.advance(bank, payment_id, "PART")["status"] == "PART"
    assert amounts(bank) == ["-1.00", "-2.00"]
    assert money(bank, "kari") == (9997, 0)
    assert amounts(bank, shelf="pending") == []
    assert run_to_end(ledger.reporting(bank))["balanced"]


def test_entries_without_money_have_all_their_tries_where_reads_bring_the_first_one_late() -> None:
    bank = world.build(progression={"polls": 1})
    payment_id = paid(bank, BULK, bulk("6000.00", "5000.00"))
    advance(bank, days=5)
    for _ in range(2):
        progression.read(bank, payment(bank, payment_id))
    assert (status(bank, payment_id), entry_statuses(bank, payment_id)) == ("ACSP", ["ACSC", "ACCP"])
    advance(bank, days=2)
    assert status(bank, payment_id) == "ACSP"
    advance(bank, days=1)
    assert (status(bank, payment_id), entry_statuses(bank, payment_id)) == ("PART", ["ACSC", "RJCT"])


def test_each_step_by_hand_brings_a_bulk_on_though_money_is_missing() -> None:
    bank = world.build(progression="manual")
    payment_id = paid(bank, BULK, bulk("6000.00", "5000.00"))
    seen = []
    for _ in range(4):
        progression.advance(bank, payment_id)
        seen.append((status(bank, payment_id), entry_statuses(bank, payment_id)))
    assert seen == [
        ("ACSP", ["ACSP", "ACCP"]),
        ("ACSP", ["ACSC", "ACCP"]),
        ("ACSP", ["ACSC", "ACSP"]),
        ("ACSC", ["ACSC", "ACSC"]),
    ]
    assert run_to_end(ledger.reporting(bank))["balanced"]


def test_a_hand_leads_a_bulk_on_whose_account_is_gone(bank: Bank) -> None:
    payment_id = paid(bank, BULK, bulk("60000.00", "50000.00"))
    advance(bank, seconds=1)
    run_to_end(sandbox_accounts.deleting(bank, ACCOUNT, "kari"))
    for _ in range(2):
        progression.advance(bank, payment_id)
    names = [name for name, _ in life(bank, payment_id)]
    assert names == ["RCVD", "ACTC", "ACCP", "ACSP", "ACSC"]
    assert entry_statuses(bank, payment_id) == ["ACSC", "ACSC"]


def test_a_hand_can_pay_what_waits_beside_what_has_money(bank: Bank) -> None:
    payment_id = paid(bank, BULK, bulk("6000.00", "5000.00"))
    advance(bank, seconds=1)
    assert money(bank, "kari") == (10000, 6000)
    assert progression.advance(bank, payment_id, "ACSC")["status"] == "ACSC"
    assert money(bank, "kari") == (-1000, 0)
    assert run_to_end(ledger.reporting(bank))["balanced"]
