"""What a value must be like: exact, with *, {gt, lt, in, not, regex, absent}, nested."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emulator.bank import conditions
from emulator.bank.conditions import ABSENT
from emulator.bank.problems import written
from tests.cases import cases
from tests.unit.effort import calls
from tests.unit.scenario.reading import condition, problems_of


def fits(wanted: Any, value: Any, *, strict: bool = False) -> bool:
    return conditions.fits(condition(wanted), value, strict=strict)


@cases(
    "wanted, value, expected",
    [
        ("ACME*", "ACME Ltd", True),
        ("ACME*", "acme Ltd", False),
        ("*", "", True),
        ("*", {"any": "thing"}, True),
        ("*", ABSENT, False),
        ("10.00", "10.00", True),
        ("10.00", "10.0", False),
        ("4*", 401, True),
        ("4*", 500, False),
        ("1*.5", 10.5, True),
        ("4*", [401], False),
        ({"in": ["4*", "5*"]}, 503, True),
        (10, "10.00", True),  # numbers are compared also where they stand in text
        (10, 11, False),
        ("10", 10, True),
        (True, True, True),
        (True, "true", True),
        (True, 1, False),
        (1, True, False),
        (None, None, True),
        (None, ABSENT, False),
        ({"gt": 10}, "10.01", True),
        ({"gt": 10}, "10.00", False),
        ({"gt": "10", "lt": 20}, 15, True),
        ({"gt": 10, "lt": 20}, 20, False),
        ({"gt": 10}, "ten", False),
        ({"gt": 10}, ABSENT, False),
        ({"gt": "${name}"}, ABSENT, False),  # no story has filled it
        ({"lt": "${name}"}, "ten", False),
        ({"gt": 10}, 10**400, True),
        ({"gt": 10}, float("nan"), False),
        ({"lt": 10}, float("-inf"), False),
        (10, float("nan"), False),
        ({"gt": 0}, "99999999999999999999.99", True),
        ({"in": ["NOK", "EUR"]}, "EUR", True),
        ({"in": ["NOK", "E*"]}, "EUR", True),
        ({"in": ["NOK"]}, ABSENT, False),
        ({"in": ["10", "x"]}, 10, True),
        ({"in": ["10", "true"]}, True, True),
        ({"in": ["null", "x"]}, ABSENT, False),
        ({"in": ["x", "*"]}, {"any": "thing"}, True),
        ({"in": ["x", 10]}, "10.00", True),
        ({"not": "NOK"}, "EUR", True),
        ({"not": "N*"}, "NOK", False),
        ({"not": "NOK"}, ABSENT, True),
        ({"not": 10}, "10.00", False),
        ({"not": {"in": ["NOK", "E*"]}}, "EUR", False),
        ({"not": {"gt": 10}}, 10, True),
        ({"not": {"absent": False}}, "x", False),
        ({"not": "NOK", "absent": False}, ABSENT, False),
        ({"gt": 10, "not": {"in": [20, 30]}}, 20, False),
        ({"a": {"not": "x"}}, {"a": "y"}, True),
        ({"regex": "^NO[0-9]{13}$"}, "NO8599901000014", True),
        ({"regex": "^NO[0-9]{13}$"}, "NO859990100001", False),
        ({"absent": True}, ABSENT, True),
        ({"absent": True}, None, False),
        ({"absent": False}, None, True),
        ({"absent": False}, ABSENT, False),
        ({"a": {"b": "x*"}}, {"a": {"b": "xy", "c": 1}}, True),
        ({"a": {"b": "x"}}, {"a": {}}, False),
        ({"a": {"b": {"absent": True}}}, {}, True),
        ({"payments": {"creditorName": "B"}}, {"payments": [{"creditorName": "A"}, {"creditorName": "B"}]}, True),
        (["a", "c"], ["a", "b", "c"], True),
        (["c", "a"], ["a", "b", "c"], False),
        ([], [], True),
        ([], ["a"], False),
        ([{"code": "X"}], [{"code": "Y"}, {"code": "X", "text": "t"}], True),
    ],
)
def test_a_rule_fits(wanted: Any, value: Any, expected: bool) -> None:
    assert fits(wanted, value) is expected


@cases(
    "wanted, value, expected",
    [
        (10, "10", False),
        ("10", 10, False),
        (10, 10.0, True),
        ("*", 5, True),
        ("2*", 200, True),
        ("2*", 404, False),
        ({"a": 1}, [{"a": 1}], False),
    ],
)
def test_an_expectation_is_strict_about_types(wanted: Any, value: Any, expected: bool) -> None:
    assert fits(wanted, value, strict=True) is expected


def test_a_text_is_not_compared_with_each_of_many_others() -> None:
    few, many = (
        conditions.matcher(condition({"in": [f"x{n}" for n in range(size)]}), strict=False) for size in (2, 1000)
    )
    assert few("x1")
    assert many("x1")
    assert calls(lambda: many("y")) == calls(lambda: few("y"))


@cases(
    "wanted, values, expected",
    [
        ("a", ("a", "b"), True),
        ("a", (), False),
        ({"absent": True}, (), True),
        ({"not": "a"}, ("b", "c"), True),
        ({"not": "a"}, ("a", "b"), False),
        ({"not": "a"}, (), True),
        ({"not": {"in": ["a", "b"]}, "absent": False}, (), False),
        ({"regex": "^b", "not": "a"}, ("a", "b"), False),
    ],
)
def test_of_several_values_one_fits_and_none_is_excluded(wanted: Any, values: tuple[str, ...], expected: bool) -> None:
    assert conditions.meets(condition(wanted), values) is expected


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="ab", max_size=8))
def test_wildcards_are_those_of_the_shell(pattern: str, text: str) -> None:
    assert conditions.wildcard(pattern, text) == bool(re.match(fnmatch.translate(pattern), text))


@cases(
    "wanted, problems",
    [
        ({"gte": 5}, ["gte: There is no member 'gte'; did you mean gt?"]),
        ({"a": [{"b": {"gte": 5}}]}, ["a[0].b.gte: There is no member 'gte'; did you mean gt?"]),
        ({"gt": "much"}, ["gt: Expected a number, found the text 'much'."]),
        ({"in": []}, ["in: Expected a list of at least 1 entry, found an empty list."]),
        ({"in": "x"}, ["in: Expected a list, found the text 'x'."]),
        ({"absent": "yes"}, ["absent: Expected true or false, found the text 'yes'."]),
        ({"regex": "(a"}, ["regex: This is not a regular expression of RE2: missing ): (a."]),
        (
            {"gt": 1, "amount": 2},
            ["amount: There is no member 'amount'; expected one of absent, gt, in, lt, not, regex."],
        ),
        ({"a": {"b": {"lt": None}}}, ["a.b.lt: Expected a number, found nothing."]),
        ({"not": ["a"]}, ["not: Expected one value; several are written as {in: [...]}."]),
        ({"not": {"eq": "a"}}, ["not.eq: There is no member 'eq'; expected one of absent, gt, in, lt, not, regex."]),
        ({"not": None}, ["not: No request has null here; {absent: true} means that there is nothing."]),
        ({"not": "a", "absent": True}, [": absent: true allows no other operator."]),
    ],
)
def test_a_condition_with_a_mistake_is_explained(wanted: Any, problems: list[str]) -> None:
    assert problems_of(wanted) == problems


def test_a_header_has_one_value() -> None:
    assert problems_of(["a"], nested=False) == [": Expected one value; several are written as {in: [...]}."]
    assert problems_of({"name": "a"}, nested=False)[0].startswith("name: There is no member 'name'")


def test_differences_say_where_and_why() -> None:
    wanted = condition({"a": {"b": "x", "c": {"not": {"in": [1, 2]}}}, "list": [{"code": "X", "n": 1}]})
    value = {"a": {"b": 5, "c": 2}, "list": [{"code": "X", "n": 2}, {"code": "Z"}]}
    differences = conditions.differences(wanted, value, strict=True)
    assert [(written(path), text) for path, text in differences] == [
        ("a.b", "expected the text 'x', found the number 5"),
        ("a.c", "expected anything but one of 1, 2, found the number 2"),
        ("list[0].n", "expected the number 1, found the number 2"),
    ]
