"""No false alarm: a TPP that behaves survives the search."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.conformance.explore.judge import play
from emulator.conformance.explore.schedule import TASKS, of
from emulator.conformance.explore.search import Budget, Search
from tests.explore.world import InProcess, house

BLAMED = {
    "for the address that two persons share": {
        "tasks": ["pay", "basket", "read-unattended"],
        "customer": ["approve", "somebody-else"],
    },
}


@pytest.mark.parametrize("document", BLAMED.values(), ids=BLAMED)
def test_it_is_not_blamed(document: dict[str, Any]) -> None:
    outcome = play(of(document), house(), InProcess(), "good")
    assert outcome.findings == []


@pytest.mark.parametrize(
    ("seed", "runs"),
    [(6, 8), *(pytest.param(seed, 700, marks=pytest.mark.long) for seed in (1, 2, 3, 4))],
)
def test_a_good_tpp_survives(seed: int, runs: int) -> None:
    search = Search(house(), InProcess(), TASKS, base=seed)
    done = search.run(Budget(runs))
    assert [(breakage.finding, breakage.outcome.schedule.text()) for breakage in done.found] == []
    assert done.drawn == runs
    assert len(done.kinds) >= 10
