"""The report of a failure, as it is read on a terminal."""

from __future__ import annotations

import pytest

from emulator.explore import report
from emulator.explore.judge import Finding, RunOutcome
from emulator.explore.play import Row
from emulator.explore.schedule import of
from emulator.explore.search import Breakage

AT = "2026-11-27T21:35:49+01:00"
ROWS = [
    Row(AT, "fault", "createPayment 1: the payment goes ACTC, ACCP, RJCT after 3d", fault=True),
    Row(AT, "tpp", "createPayment cb9dfb34 -> 201 [statuses: createPayment 1]", fault=True),
    *[Row(AT, "bank", "payment cb9dfb34 is ACTC")] * 2,
]
FINDING = Finding(2, "believed-paid", "It is failed.", "paid", "failed (RJCT)")


def test_a_timeline_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert report.drawing(ROWS, FINDING).splitlines() == [
        "  bank time      what the TPP did                       what was true",
        "! 11-27 21:35:49                                        fault: createPayment 1:",
        "                                                        the payment goes ACTC,",
        "                                                        ACCP, RJCT after 3d",
        "! 11-27 21:35:49 createPayment cb9dfb34 -> 201",
        "                 [statuses: createPayment 1]",
        "  11-27 21:35:49                                        payment cb9dfb34 is ACTC",
        "                                                        (2 times)",
        "! at the end     believes: paid                         true: failed (RJCT)",
    ]


@pytest.mark.parametrize(("failed", "how"), [(1, "as it was drawn"), (2, "made smaller")])
def test_a_failure_that_is_not_made_smaller_says_so(failed: int, how: str) -> None:
    outcome = RunOutcome(of({"tasks": ["pay"]}), [FINDING], ROWS)
    text = report.failure_text(Breakage(FINDING, outcome, failed, played=3))
    assert f"fails {failed} of 3; {how}:" in text
