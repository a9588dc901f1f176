"""The expression engine agrees with Python's own where both apply, and does not run away where Python's does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.scenario.regex import Pattern, PatternRefused
from tests.unit.effort import calls

PIECES = st.sampled_from(
    [
        "a",
        "b",
        ".",
        "[ab]",
        "[^a]",
        "\\d",
        "\\W",
        "(a|b)",
        "(?:ab)",
        "(|a)",
        "^",
        "$",
        "\\.",
        "[a-c1-3]",
        "[^b-c.a-b]",
        "[c\\da]",
    ]
)
TIMES = st.sampled_from(["", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{1,}", "*?"])
PATTERNS = st.lists(st.tuples(PIECES, TIMES), min_size=0, max_size=5).map(
    lambda parts: "".join(p if p in "^$" else p + t for p, t in parts)
)


@given(PATTERNS, PATTERNS, st.text(alphabet="ab1. c", max_size=8))
def test_it_finds_what_python_finds(left: str, right: str, text: str) -> None:
    for pattern in (left, f"{left}|{right}", f"({left})*x?{right}"):
        assert Pattern(pattern).found_in(text) == (re.search(pattern, text) is not None), pattern


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*$", "(a*)*$", "a*a*a*a*a*a*a*a*$", "(.*)(.*)(.*)(.*)(.*)x", "(a?){50}a{50}$"]
)
def test_patterns_that_make_backtracking_engines_hang_are_answered_at_once(pattern: str) -> None:
    assert Pattern(pattern).found_in("a" * 2000 + "!") is False


@pytest.mark.parametrize(
    "pattern, why",
    [
        ("(a", "no closing"),
        ("a)", "no opening"),
        ("*a", "nothing to repeat"),
        ("a**", "repeated"),
        ("a{3,1}", "more than it allows"),
        ("a{x}", "number was expected"),
        ("[a", "ends too early"),
        ("[z-a]", "backwards"),
        ("a\\", "ends too early"),
        ("(?=a)", "not known"),
        ("(a)\\1", "not known"),
        ("a{9999}", "too large"),
        ("(((a{99}){99}){99})", "too large"),
        ("(" * 200 + ")" * 200, "deeper"),
        ("a" * 501, "longer than"),
    ],
)
def test_what_is_no_pattern_is_refused_with_the_reason(pattern: str, why: str) -> None:
    with pytest.raises(PatternRefused, match=why):
        Pattern(pattern)


def test_a_character_is_not_compared_with_every_member_of_a_set() -> None:
    letters = "".join(chr(0x400 + 2 * number) for number in range(460))
    short, long = Pattern("[az]{10}Q"), Pattern(f"[a{letters}z]{{10}}Q")
    text = "z" * 1000
    assert calls(lambda: long.found_in(text)) == calls(lambda: short.found_in(text))
