"""The published schema and the loader agree: what one takes or refuses, the other does too."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from emulator.bank.settings import SCHEMAS, Settings
from emulator.scenario import loader
from emulator.scenario.effects import effects
from emulator.scenario.mistakes import ScenarioRefused
from emulator.scenario.schema import scenario_schema
from emulator.scenario.steps import step_kinds

VALIDATOR = jsonschema.Draft202012Validator(scenario_schema())


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(scenario_schema())


@pytest.mark.parametrize("name", effects())
def test_the_example_of_every_effect_is_taken_by_both(name: str) -> None:
    scenario = {"scenario": "x", "rules": [{"then": {name: effects()[name].example}}]}
    loader.from_value(scenario)
    VALIDATOR.validate(scenario)


@pytest.mark.parametrize("name", step_kinds())
def test_the_example_of_every_step_is_taken_by_both(name: str) -> None:
    saves = {"control": "GET payments", "save": {"payment": "payments[0].paymentId"}}
    scenario = {"scenario": "x", "story": [saves, step_kinds()[name].example]}
    loader.from_value(scenario)
    VALIDATOR.validate(scenario)


ADDED: dict[str, dict[str, Any]] = {
    "people": {"nationalId": "21909220006", "name": "Siri Skisse"},
    "customers": {"customerNumber": "41829310021", "name": "Nina Ny", "type": "private"},
    "accounts": {"customerNumber": 41829310021, "accountName": "Ny", "bban": "99901200021", "balance": "10.00"},
    "cards": {"customerNumber": "14888520059", "name": "Kort", "product": "Visa", "maskedPan": "4500********1234"},
    "agreements": {"owner": "14888520059", "name": "Ny", "persons": ["14888520059"]},
    "transactions": {"account": "99901000014", "date": "-1d", "amount": -412.5, "name": "REMA"},
}


def test_what_is_added_is_taken_by_both() -> None:
    scenario = {"scenario": "x", "start": {"add": {name: [added] for name, added in ADDED.items()}}}
    loader.from_value(scenario)
    VALIDATOR.validate(scenario)


@pytest.mark.parametrize(
    "settings",
    [
        Settings().as_document(),
        {"progression": {"polls": 2}, "profile": "lenient", "straks_limit": "0.01", "date_skew": 0},
    ],
)
def test_settings_are_taken_by_both(settings: dict[str, Any]) -> None:
    scenario = {"scenario": "x", "start": {"settings": settings}}
    loader.from_value(scenario)
    VALIDATOR.validate(scenario)


WRONG: list[dict[str, Any]] = [
    {},
    {"scenario": "X"},
    {"scenario": "x", "summery": "y"},
    {"scenario": "x", "start": {"form": "empty"}},
    {"scenario": "x", "start": {"settings": {"calender": "norway"}}},
    {"scenario": "x", "start": {"change": [{"account": "a", "balance": 5}]}},
    {"scenario": "x", "start": {"change": [{"account": "a"}]}},
    {"scenario": "x", "start": {"change": [{"agreement": "a", "signatures": 3}]}},
    *({"scenario": "x", "start": {"settings": {name: "x"}}} for name in SCHEMAS),
    {"scenario": "x", "start": {"settings": {"date_skew": -1}}},
    {"scenario": "x", "start": {"settings": {"progression": {"polls": 0}}}},
    {"scenario": "x", "start": {"settings": {"straks_limit": "0.00"}}},
    *({"scenario": "x", "start": {"add": {name: [{"x": 1}]}}} for name in ADDED),
    {"scenario": "x", "start": {"add": {"things": []}}},
    {"scenario": "x", "rules": [{}]},
    {"scenario": "x", "rules": [{"then": {}}]},
    {"scenario": "x", "rules": [{"then": {"delay": "-1s"}}]},
    {"scenario": "x", "rules": [{"then": {"delay": {"min": "1s"}}}]},
    {"scenario": "x", "rules": [{"then": {"disconnect": "later"}}]},
    {"scenario": "x", "rules": [{"then": {"malformed": "odd"}}]},
    {"scenario": "x", "rules": [{"then": {"answer": {"text": "no"}}}]},
    {"scenario": "x", "rules": [{"then": {"answer": {"status": 99}}}]},
    {"scenario": "x", "rules": [{"then": {"progress": []}}]},
    {"scenario": "x", "rules": [{"then": {"progress": ["DONE"]}}]},
    {"scenario": "x", "rules": [{"then": {"fee": 10}}]},
    {"scenario": "x", "rules": [{"then": {"permission": "add"}}]},
    {"scenario": "x", "rules": [{"then": {"quota": "full"}}]},
    {"scenario": "x", "rules": [{"then": {"sca": "approve"}}]},
    {"scenario": "x", "rules": [{"then": {"fee": "1"}, "times": {"chance": 1.1}}]},
    {"scenario": "x", "rules": [{"then": {"fee": "1"}, "times": {"first": 0}}]},
    {"scenario": "x", "rules": [{"then": {"fee": "1"}, "times": {"first": 1, "every": 2}}]},
    {"scenario": "x", "rules": [{"then": {"fee": "1"}, "when": {"status": 200}}]},
    {"scenario": "x", "rules": [{"then": {"fee": "1"}, "when": {"tpp": {"gte": 1}}}]},
    {"scenario": "x", "as": {"session": "no"}},
    *({"scenario": "x", "as": {"tpp": tpp}} for tpp in ("", "x" * 58, "a&b", {"name": "-"}, {"flaw": "expired"})),
    *({"scenario": "x", "as": {"tpp": {"name": "x", **more}}} for more in ({"roles": []}, {"flaw": "expird"})),
    {"scenario": "x", "story": [{}]},
    {"scenario": "x", "story": [{"tpp": "FETCH /v1/accounts"}]},
    {"scenario": "x", "story": [{"tpp": "GET /v1/accounts", "clock": "advance 1s"}]},
    {"scenario": "x", "story": [{"psu": "like it"}]},
    {"scenario": "x", "story": [{"psu": "approve x y"}]},
    {"scenario": "x", "rules": [{"when": {"path": {}}, "then": {"delay": "1s"}}]},
    {"scenario": "x", "story": [{"tpp": "GET /v1/accounts", "expect": {"status": {}}}]},
    {"scenario": "x", "story": [{"clock": "stop"}]},
    {"scenario": "x", "story": [{"tpp": "GET /v1/accounts", "expect": {"code": 1}}]},
]


@pytest.mark.parametrize("scenario", WRONG, ids=str)
def test_what_one_refuses_the_other_refuses(scenario: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(scenario)
    with pytest.raises(ScenarioRefused):
        loader.from_value(scenario)
