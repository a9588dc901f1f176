"""`regex`: google-re2 answers at once where Python's engine hangs, and refuses what it does not know."""

from __future__ import annotations

from emulator.bank.conditions import LONGEST_TEXT, expression, matches
from tests.cases import cases
from tests.unit.scenario.reading import problems_of


@cases(
    "pattern, fits",
    [
        ("(a+)+$", False),
        ("(a|a)*$", True),
    ],
)
def test_patterns_that_make_backtracking_engines_hang_are_answered_at_once(pattern: str, fits: bool) -> None:
    assert matches(expression(pattern), "a" * 2000 + "!") is fits


def test_a_text_of_100000_characters_is_searched_and_no_longer_one() -> None:
    assert matches(expression("b$"), "a" * (LONGEST_TEXT - 1) + "b")
    assert not matches(expression("b$"), "a" * LONGEST_TEXT + "b")


@cases(
    "pattern, why",
    [
        ("(a", "missing )"),
        ("(?=a)", "invalid perl operator: (?="),
        ("a" * 501, "longer than 500 characters"),
        ("\\pL{900}", "too large"),
    ],
)
def test_what_is_no_pattern_is_refused_with_the_reason(pattern: str, why: str) -> None:
    (problem,) = problems_of({"regex": pattern})
    assert problem.startswith("regex: This ")
    assert why in problem
