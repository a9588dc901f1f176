"""The clauses of a check, on observations in a few letters: what each passes, fails and leaves undecided.

`s` is the occasion, `a` matches the clause, `b` does not, `e` and `f` end it; a number lets that many seconds pass.
"""

from __future__ import annotations

import re

import pytest

from emulator.conformance.auditor import Auditor
from emulator.conformance.check import read
from emulator.conformance.facts import Observation

CHECK = """
check: a-check
about: Something that a TPP does.
practice: Banks do so.
advice: Do it well.
level: must
group: signing
role: any
spec: signature
seen: {event: consent}
expect: {%s, of: {event: page}}
"""
LETTERS = {
    "s": ("consent", {}),
    "a": ("page", {"link": "given"}),
    "b": ("page", {"link": "altered"}),
    "e": ("return", {"outcome": "finalised"}),
    "f": ("customer", {"present": True}),
}


def counted(clause: str, seen: str, *, bank: float = 1.0, real: float = 1.0) -> tuple[int, int, int]:
    """How many occasions passed, failed and are undecided; `bank`, `real`: the share of time by each clock."""
    auditor = Auditor([read(CHECK % clause, "a-check.yaml")])
    passed = 0.0
    for letters in re.findall(r"[a-z]|\d+", seen):
        if letters.isdigit():
            passed += float(letters)
        else:
            event, values = LETTERS[letters]
            auditor.observe(Observation(event, at=passed * bank, received=passed * real, tpp="tpp", values=values))
    record = auditor.verdicts(passed * bank, passed * real)["a-check"]
    return record.passed, record.failed, record.undecided


NEXT, EACH, NEVER = (
    "next: {event: page, link: given}",
    "each: {event: page, link: given}",
    "never: {event: page, link: altered}",
)
UNTIL = "until: [{event: return}, {event: customer}]"


def test_a_clause_counts_its_occasions() -> None:
    for clause, seen, verdict in (
        (NEXT, "s", (0, 0, 1)),
        (NEXT, "sa", (1, 0, 0)),
        (NEXT, "sab", (1, 0, 0)),
        (NEXT, "sb", (0, 1, 0)),
        (NEXT, "sasasb", (2, 1, 0)),
        (f"{NEXT}, within: end", "s", (0, 1, 0)),
        (f"{NEXT}, within: end", "sas", (1, 1, 0)),
        (f"{NEXT}, within: PT1M", "s50", (0, 0, 1)),
        (f"{NEXT}, within: PT1M", "s70", (0, 1, 0)),
        (f"{NEXT}, within: PT1M", "s70sa", (1, 1, 0)),
        (EACH, "s", (0, 0, 1)),
        (EACH, "saaa", (1, 0, 0)),
        (EACH, "saab", (0, 1, 0)),
        (f"{EACH}, {UNTIL}", "saeb", (1, 0, 0)),
        (f"{EACH}, {UNTIL}", "safb", (1, 0, 0)),
        (f"{EACH}, {UNTIL}", "saesb", (1, 1, 0)),
        (f"{EACH}, {UNTIL}", "se", (0, 0, 0)),
        (f"{EACH}, within: PT1M", "sa70b", (1, 0, 0)),
        (f"{EACH}, within: PT1M", "s70sb", (0, 1, 0)),
        (NEVER, "s", (1, 0, 0)),
        (NEVER, "saab", (0, 1, 0)),
        (f"{NEVER}, within: PT1M", "s70b", (1, 0, 0)),
        (f"{NEVER}, within: PT1M", "s40s40b", (0, 1, 0)),  # the first is over, the second is not
        (f"{NEVER}, within: PT1M", "s70s10b", (1, 1, 0)),
        (f"{NEXT}, within: PT1M", "s40s40", (0, 1, 0)),
        ("seen: {event: return}, never: {event: page, link: altered}", "sbeb", (0, 1, 0)),
        ("at_most: 1", "sab", (0, 1, 0)),
        ("at_most: 1, within: PT1M", "sa70b", (1, 0, 0)),
    ):
        assert counted(clause, seen) == verdict, (clause, seen)


def test_a_fact_with_several_values_has_none_at_another_event() -> None:
    assert counted("never: {event: page, code: FORBIDDEN}", "sa") == (1, 0, 0)
    assert counted("never: {event: page, code: {not: FORBIDDEN}}", "sa") == (0, 1, 0)


@pytest.mark.parametrize("clause", ["at_most: 1, within: PT1M", f"{NEVER}, within: PT1M"])
def test_a_real_window_is_over_when_either_clock_has_passed_it(clause: str) -> None:
    real = f"{clause}, clock: real"
    assert counted(real, "sa10b") == (0, 1, 0)
    assert counted(real, "sa70b", bank=0.0) == (1, 0, 0)  # the client slept
    assert counted(real, "sa70b", real=0.0) == (1, 0, 0)  # the test advanced a frozen clock
    assert counted(real, "sa70b", bank=0.1, real=0.1) == (0, 1, 0)
    assert counted(clause, "sa70b", bank=0.0) == (0, 1, 0)
