"""No false alarm: a TPP that behaves survives the search."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.explore.judge import play
from emulator.explore.schedule import TASKS, of
from emulator.explore.search import Search
from tests.explore.merchant import Merchant
from tests.explore.unusual import (
    ListsTheBalances,
    NamesNoOrder,
    ReadsEveryDetail,
    ReadsInParallel,
    SignsOneByOne,
    TriesThreeTimes,
)
from tests.explore.world import InProcess, house

UNUSUAL: dict[str, tuple[type[Merchant], dict[str, Any]]] = {
    "for the address that two persons share": (
        Merchant,
        {"tasks": ["pay", "basket", "read-unattended"], "customer": ["approve", "somebody-else"]},
    ),
    "for many different requests": (ReadsEveryDetail, {"tasks": ["read"]}),
    "for a balance that a list of accounts has shown": (
        ListsTheBalances,
        {"tasks": ["read"], "faults": [{"fault": "money", "of": "getTransactions", "at": 20}]},
    ),
    "for requests that were under way when the consent was withdrawn": (
        ReadsInParallel,
        {"tasks": ["read"], "faults": [{"fault": "access", "of": "getAccounts", "at": 2, "ends": "consent-revoked"}]},
    ),
    "for payments of a basket that are signed one by one": (SignsOneByOne, {"tasks": ["basket"]}),
    "for two orders without an id": (NamesNoOrder, {"tasks": ["pay", "pay"]}),
    "for a status that it has asked for in vain": (
        TriesThreeTimes,
        {
            "tasks": ["pay", "read", "read"],
            "faults": [
                {"fault": "statuses", "of": "createPayment", "at": 1, "path": ["ACTC", "PDNG", {"RJCT": "1d"}]},
                {"fault": "unavailable", "of": "getPaymentStatus", "at": 3, "count": 3, "status": 503},
            ],
            "time": [{"after": 5, "passes": "25h"}],
        },
    ),
}


@pytest.mark.parametrize(("shop", "document"), UNUSUAL.values(), ids=UNUSUAL)
def test_it_is_not_blamed(shop: type[Merchant], document: dict[str, Any]) -> None:
    outcome = play(of(document), house(), InProcess(shop), "good")
    assert outcome.findings == []


@pytest.mark.parametrize(
    ("seed", "runs"),
    [(6, 8), *(pytest.param(seed, 700, marks=pytest.mark.long) for seed in (1, 2, 3, 4))],
)
def test_a_good_tpp_survives(seed: int, runs: int) -> None:
    search = Search(house(), InProcess(), TASKS, base=seed)
    done = search.run(runs)
    assert [(breakage.finding, breakage.outcome.schedule.text()) for breakage in done.found] == []
    assert done.drawn == runs
    assert len(done.kinds) >= 10
