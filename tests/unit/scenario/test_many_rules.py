"""Rules that are found by the constants they ask for are those that fit, in their order."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from emulator.api.messages import Request
from emulator.scenario import rules
from emulator.scenario.facts import Facts
from emulator.scenario.rule import Rule

WORDS = ["ACME", "Acme*", "*", "10", "10.00", "true"]
FACTS = st.sampled_from([*WORDS, 10, 10.5, True, {"in": ["ACME", "Nett"]}, {"in": ["A*"]}, {"absent": True}])
BODIES = st.recursive(
    st.sampled_from(["ACME", "Acme AS", "Nett", "10", "10.00", 10, 10.0, True, None, "", "true"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "amount"]), inner, max_size=2),
    max_leaves=6,
)
CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "body": st.recursive(
            st.dictionaries(st.sampled_from(["name", "amount"]), FACTS, min_size=1, max_size=2),
            lambda inner: st.dictionaries(st.sampled_from(["name", "amount"]), inner, min_size=1, max_size=2),
            max_leaves=3,
        ),
        "headers": st.dictionaries(st.sampled_from(["X-A", "x-b"]), FACTS, min_size=1, max_size=2),
        "query": st.dictionaries(st.sampled_from(["a", "b"]), FACTS, min_size=1, max_size=1),
        "path": st.sampled_from(["/v1/accounts", "/v1/*"]),
    },
)


def active(when: dict[str, Any]) -> Any:
    source = {"when": when, "then": {"delay": "1s"}}
    added = rules.AddedRule(Rule.model_validate(source), source)
    return rules._ActiveRule(added, "2026-03-02T08:00:00.000000+00:00", Random(1), "1")


@given(
    st.lists(CONDITIONS, min_size=1, max_size=12),
    BODIES,
    st.lists(st.tuples(st.sampled_from(["X-A", "X-B"]), st.sampled_from(["ACME", "10", "x"])), max_size=3),
    st.sampled_from(["", "?a=ACME", "?a=10&a=x&b=10.00"]),
)
def test_none_that_fits_is_passed_over(whens: list[Any], body: Any, headers: list[tuple[str, str]], query: str) -> None:
    request = Request("POST", f"/v1/accounts{query}", tuple(headers), json.dumps(body).encode())
    facts = Facts(request, None)
    named = [(str(number), active(when)) for number, when in enumerate(whens)]
    fitting = [name for name, one in named if one.rule.when.matcher.fits(facts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "MANY", 0)
        about = list(rules._OperationRules(named).candidates(facts))
    assert [name for name, one in about if one.rule.when.matcher.fits(facts)] == fitting


def test_of_a_thousand_rules_those_with_the_constant_are_asked() -> None:
    named = [(str(n), active({"body": {"creditor": {"name": f"Firm {n}"}}})) for n in range(1000)]
    named.append(("any", active({"body": {"creditor": {"name": "Firm*"}}})))
    asked = rules._OperationRules(named)
    body = json.dumps({"creditor": {"name": "Firm 7"}}).encode()
    assert [name for name, _ in asked.candidates(Facts(Request("POST", "/", body=body), None))] == ["7", "any"]
