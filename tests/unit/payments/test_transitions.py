"""The table of transitions, and the diagram drawn from it."""

from __future__ import annotations

import pytest

from emulator.bank import products
from emulator.bank.scheme.transitions import ALL, FINAL, STATUSES, TRANSITIONS, allowed, diagram, following, path

SPEC_STATUSES = {"ACCP", "ACSC", "ACSP", "ACTC", "ACWC", "ACWP", "RCVD", "PDNG", "RJCT", "CANC", "PART"}


def test_the_statuses_are_those_of_spec_2_8_and_patc() -> None:
    assert set(STATUSES) == SPEC_STATUSES | {"PATC"}
    assert {t.start for t in TRANSITIONS} | {t.end for t in TRANSITIONS} == set(STATUSES)


def test_nothing_follows_a_final_status_and_something_follows_every_other_that_a_flow_reaches() -> None:
    for flow in ALL:
        reached = {"RCVD"} | {t.end for t in TRANSITIONS if flow in t.flows}
        for status in reached:
            assert (following(flow, status) == ()) == (status in FINAL), (flow, status)


def test_no_edge_stands_in_the_table_twice_for_a_flow() -> None:
    for flow in ALL:
        edges = [(t.start, t.end) for t in TRANSITIONS if flow in t.flows]
        assert len(edges) == len(set(edges))


@pytest.mark.parametrize("flow", ALL)
def test_every_flow_leads_to_acsc_and_may_be_rejected_or_cancelled_before_approval(flow: str) -> None:
    assert path(flow, "RCVD", "ACSC")[0] == "ACTC"
    assert allowed(flow, "RCVD", "RJCT")
    assert allowed(flow, "RCVD", "CANC")


def test_the_ways_are_those_of_contract_6() -> None:
    assert path("instant", "RCVD", "ACSC") == ("ACTC", "ACSP", "ACSC")
    assert path("foreign", "RCVD", "ACSC") == ("ACTC", "ACSP", "ACWP", "ACSC")
    assert path("standing", "RCVD", "ACSC") == ("ACTC", "ACSC")
    assert path("batch", "ACSP", "PART") == ("PART",)
    assert not allowed("instant", "ACTC", "CANC")
    assert not allowed("instant", "RCVD", "ACWC")
    assert not allowed("dated", "ACSP", "ACWP")
    assert path("dated", "ACSC", "RJCT") == ()


def test_every_product_has_a_flow_of_the_table() -> None:
    assert {product.flow for product in products.table().values()} == set(ALL)


def test_the_diagram_has_an_arrow_for_each_row_of_the_table() -> None:
    lines = diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert "    [*] --> RCVD" in lines
    for edge in TRANSITIONS:
        arrows = [line for line in lines if line.startswith(f"    {edge.start} --> {edge.end}: {edge.when}")]
        assert len(arrows) == 1, edge
    assert "    ACTC --> CANC: cancelled (not straks)" in lines
    assert "    ACSP --> ACWP: sent, not credited yet (SEPA and cross-border)" in lines
    assert {line.split()[0] for line in lines if line.endswith("--> [*]")} == FINAL
