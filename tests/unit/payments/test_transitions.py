"""The flows: their transitions, and the table of the manual."""

from __future__ import annotations

import pytest

from emulator.bank import products
from emulator.bank.bank import Bank
from emulator.bank.documents import Payment
from emulator.bank.payment import flows, payments
from emulator.bank.payment.flows import FLOWS, Flow
from emulator.bank.scheme.transitions import EXECUTED_ONCE, SIGNED, STATUSES, Transition
from tests.docs import sections
from tests.unit.payments.world import DOMESTIC, advance, domestic, paid, payment, status

FRAMEWORK_STATUSES = {"ACCP", "ACSC", "ACSP", "ACTC", "ACWC", "ACWP", "RCVD", "PDNG", "RJCT", "CANC", "PART"}


def test_the_statuses_are_those_of_the_framework_and_patc() -> None:
    assert set(STATUSES) == FRAMEWORK_STATUSES | {"PATC"}
    steps = [step for flow in FLOWS.values() for step in flow.transitions]
    assert {step.start for step in steps} | {step.end for step in steps} == set(STATUSES)


def test_every_flow_is_some_products() -> None:
    assert {product.flow for product in products.table().values()} == set(FLOWS)


def test_the_table_of_the_manual_has_a_row_for_each_step() -> None:
    rows = sections.transitions().splitlines()
    for step in {step for flow in FLOWS.values() for step in flow.transitions}:
        assert len([row for row in rows if row.startswith(f"| `{step.start}` | `{step.end}` | {step.when} |")]) == 1, (
            step
        )
    [cancelled] = [row for row in rows if row.startswith("| `ACTC` | `CANC` | cancelled |")]
    assert "all products" not in cancelled
    assert "| `ACSP` | `ACWP` | sent, not credited yet | SEPA and cross-border |" in rows


class _Checked(Flow):
    def finish(self, bank: Bank, payment: Payment, *, by_hand: bool) -> str | None:
        return "ACWP" if payment["status"] == "ACSP" else super().finish(bank, payment, by_hand=by_hand)

    def deletable(self, status: str) -> bool:
        return status != "ACTC"


def test_a_product_goes_the_way_of_its_flow(monkeypatch: pytest.MonkeyPatch, bank: Bank) -> None:
    """Statuses, links and cancellations follow, without a change of any other module."""
    steps = (Transition("ACSP", "ACWP", "checked"), Transition("ACWP", "ACSC", "booked"), *SIGNED, *EXECUTED_ONCE)
    checked = _Checked("checked", words="checked", steps=steps)
    monkeypatch.setattr(flows, "FLOWS", dict.fromkeys(FLOWS, checked))
    payment_id = paid(bank, DOMESTIC, domestic())
    assert not payments.deletable(payment(bank, payment_id))
    seen = [status(bank, payment_id)]
    for _ in range(5):
        advance(bank, seconds=1)
        seen.append(status(bank, payment_id))
    assert list(dict.fromkeys(seen)) == ["ACTC", "ACSP", "ACWP", "ACSC"]
    assert checked.path("RCVD", "ACSC") == ("ACTC", "ACSP", "ACWP", "ACSC")
