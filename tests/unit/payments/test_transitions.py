"""The flows: found by their folder, their transitions, and the table of the manual."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from emulator.bank import products
from emulator.bank.bank import Bank
from emulator.bank.payment import flows, payments
from emulator.bank.payment.flows import Flow
from emulator.bank.scheme.transitions import FINAL, STATUSES
from emulator.discovery import MalformedModule
from tests.docs import sections
from tests.unit.payments.world import DOMESTIC, advance, domestic, package_of, paid, payment, status

FRAMEWORK_STATUSES = {"ACCP", "ACSC", "ACSP", "ACTC", "ACWC", "ACWP", "RCVD", "PDNG", "RJCT", "CANC", "PART"}
FLOWS = flows.table()


def test_the_statuses_are_those_of_the_framework_and_patc() -> None:
    assert set(STATUSES) == FRAMEWORK_STATUSES | {"PATC"}
    steps = [step for flow in FLOWS.values() for step in flow.transitions]
    assert {step.start for step in steps} | {step.end for step in steps} == set(STATUSES)


@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_nothing_follows_a_final_status_and_something_follows_every_other_that_a_flow_reaches(flow: Flow) -> None:
    for reached in {"RCVD"} | {step.end for step in flow.transitions}:
        assert (flow.following(reached) == ()) == (reached in FINAL), reached


@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_every_flow_leads_to_acsc_and_may_be_rejected_or_cancelled_before_approval(flow: Flow) -> None:
    assert flow.path("RCVD", "ACSC")[0] == "ACTC"
    assert flow.allowed("RCVD", "RJCT")
    assert flow.allowed("RCVD", "CANC")


def test_the_ways_are_those_of_the_manual() -> None:
    assert FLOWS["instant"].path("RCVD", "ACSC") == ("ACTC", "ACSP", "ACSC")
    assert FLOWS["foreign"].path("RCVD", "ACSC") == ("ACTC", "ACSP", "ACWP", "ACSC")
    assert FLOWS["standing"].path("RCVD", "ACSC") == ("ACTC", "ACSC")
    assert FLOWS["batch"].path("ACSP", "PART") == ("PART",)
    assert not FLOWS["instant"].allowed("ACTC", "CANC")
    assert not FLOWS["instant"].allowed("RCVD", "ACWC")
    assert not FLOWS["dated"].allowed("ACSP", "ACWP")
    assert FLOWS["dated"].path("ACSC", "RJCT") == ()


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


NEW = """
from emulator.bank.payment.flows.once import STEPS, Dated
from emulator.bank.scheme.transitions import BOOKED, Transition


class Checked(Dated):
    def step(self, bank, payment, at, *, by_hand):
        return "ACWP" if payment["status"] == "ACSP" else super().step(bank, payment, at, by_hand=by_hand)

    def deletable(self, status):
        return status != "ACTC"


FLOW = Checked("{name}", words="checked", service="{service}", steps=({steps}))
"""
STEPS = 'Transition("ACSP", "ACWP", "checked"), Transition("ACWP", "ACSC", "booked"), *STEPS'


def _load(folder: Path, **files: str) -> dict[str, Flow]:
    with package_of(folder, files) as (path, name):
        return flows.load(path, name)


def _new(name: str = "checked", service: str = "payments", steps: str = STEPS) -> str:
    return NEW.format(name=name, service=service, steps=steps)


def test_a_file_in_the_folder_is_a_flow_and_touches_no_other_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bank: Bank
) -> None:
    """A product that names it goes its way: statuses, links and cancellations follow."""
    checked = _load(tmp_path, checked=_new())["checked"]
    monkeypatch.setattr(flows, "_of_products", lambda: dict.fromkeys(products.table(), checked))
    payment_id = paid(bank, DOMESTIC, domestic())
    assert not payments.deletable(payment(bank, payment_id))
    seen = [status(bank, payment_id)]
    for _ in range(5):
        advance(bank, seconds=1)
        seen.append(status(bank, payment_id))
    assert list(dict.fromkeys(seen)) == ["ACTC", "ACSP", "ACWP", "ACSC"]
    assert checked.path("RCVD", "ACSC") == ("ACTC", "ACSP", "ACWP", "ACSC")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"one": _new(), "two": _new()}, "two is a second checked"),
        ({"one": "FLOW = 1"}, "one has no Flow"),
        ({"one": _new(service="cheques")}, "one names the service cheques"),
        ({"one": _new(steps="*STEPS, BOOKED, BOOKED")}, "one has the same step twice"),
        ({"one": _new(steps='*STEPS, Transition("ACSP", "GONE", "lost")')}, "one names the status GONE"),
    ],
)
def test_a_doubled_or_malformed_flow_is_refused_by_name(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(MalformedModule, match=message):
        _load(tmp_path, **files)


@pytest.mark.parametrize("flow", ["standing", "batch", "unheard-of"])
def test_a_product_whose_flow_is_none_of_its_service_is_refused_by_name(flow: str) -> None:
    sepa = products.find("payments", "sepa-credit-transfers")
    message = f"sepa-credit-transfers names the flow {flow}; the flows of payments are dated, foreign, instant"
    with pytest.raises(MalformedModule, match=message):
        flows.by_product(FLOWS, {(sepa.service, sepa.name): dataclasses.replace(sepa, flow=flow)})
