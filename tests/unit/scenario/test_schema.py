"""The published schema and the loader agree: what one takes or refuses, the other does too."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import jsonschema
import pytest

from emulator.bank.settings import TAKES, Settings
from emulator.scenario import loader
from emulator.scenario.effects import effects
from emulator.scenario.loader import ScenarioRefused
from emulator.scenario.model import scenario_schema
from emulator.scenario.steps import step_kinds
from tests.cases import cases

VALIDATOR = jsonschema.Draft202012Validator(scenario_schema())


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(scenario_schema())


def test_it_is_made_once() -> None:
    assert scenario_schema() is scenario_schema()


@cases("name", effects())
def test_the_example_of_every_effect_is_taken_by_both(name: str) -> None:
    scenario = {"scenario": "x", "rules": [{"then": {name: effects()[name].example}}]}
    loader.from_value(scenario)
    VALIDATOR.validate(scenario)


@cases("name", step_kinds())
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


@cases(
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


EVERYTHING: dict[str, Any] = {
    "scenario": "full",
    "summary": "All.",
    "start": {
        "from": "known-state",
        "clock": "2026-03-02T09:00:00+01:00",
        "settings": {
            "profile": "lenient",
            "links": "absolute",
            "trust": "any",
            "date_skew": 300,
            "sign_responses": True,
            "pending": "filtered",
            "progression": {"polls": 2},
            "funds_check": "execution",
            "calendar": "norway",
            "straks_limit": "1.00",
            "known_issues": False,
        },
        "add": {
            "people": [{"nationalId": "21909220006", "name": "Siri"}],
            "customers": [
                {"customerNumber": "41829310021", "name": "Nina", "type": "private", "organisationNumber": "310001007"}
            ],
            "accounts": [
                {
                    "customerNumber": "41829310021",
                    "accountName": "Ny",
                    "bban": "99901200021",
                    "iban": "NO8599901000014",
                    "currency": "NOK",
                    "product": "P",
                    "cashAccountType": "CACC",
                    "creditLine": "0.00",
                    "balance": "10.00",
                    "demandsKid": False,
                    "transactions": [
                        {
                            "date": "-3d",
                            "valueDate": "-3d",
                            "amount": "-1.00",
                            "name": "A",
                            "bban": "1",
                            "iban": "NO8599901000014",
                            "bic": "BEMUNO22XXX",
                            "text": ["a"],
                            "kid": "12",
                            "reference": "r",
                            "endToEndId": "e",
                            "purposeCode": "SALA",
                            "bankTransactionCode": "PMNT",
                            "code": "x",
                            "exchange": {
                                "sourceCurrency": "NOK",
                                "targetCurrency": "EUR",
                                "unitCurrency": "EUR",
                                "exchangeRate": "11.2",
                                "contractIdentification": "c",
                            },
                            "batch": [{"amount": "-1.00", "name": "b", "bban": "1", "text": "t", "kid": "12"}],
                        },
                        {"date": "-3d", "amounts": ["1.00", "2.00"], "every": "7d", "text": "t"},
                        {"date": "0d", "amount": 5, "pending": True, "books": "+1d"},
                    ],
                }
            ],
            "cards": [
                {
                    "customerNumber": "41829310021",
                    "name": "K",
                    "maskedPan": "4500********1234",
                    "product": "V",
                    "currency": "NOK",
                    "creditLimit": "10.00",
                    "balance": "0.00",
                    "account": "99901200021",
                    "transactions": [
                        {
                            "date": "-1d",
                            "transactionDate": "-2d",
                            "amount": "-5.00",
                            "originalAmount": "-1.00",
                            "originalCurrency": "EUR",
                            "markupFee": "1.00",
                            "markupFeePercentage": "1.5",
                            "name": "x",
                            "merchantCategoryCode": "1234",
                            "city": "O",
                            "country": "NO",
                            "invoiced": True,
                        }
                    ],
                }
            ],
            "agreements": [
                {
                    "owner": "41829310021",
                    "name": "N",
                    "organisationNumber": "310001007",
                    "persons": ["41829310021"],
                    "signatures": 1,
                    "engagements": [
                        {
                            "account": "99901200021",
                            "customer": "41829310021",
                            "roles": ["VIEW"],
                            "registerLimit": "1.00",
                            "approvalLimit": "1.00",
                        }
                    ],
                }
            ],
            "transactions": [{"account": "99901000014", "date": "-1d", "amount": -412.5}],
        },
        "change": [
            {
                "account": "99901000014",
                "balance": "0.00",
                "creditLine": "1.00",
                "paymentsRemoved": True,
                "demandsKid": False,
                "name": "n",
            },
            {"agreement": "x", "signatures": 2, "persons": ["21909220006", "41829310021"]},
        ],
    },
    "rules": [
        {
            "name": "a",
            "unsigned": True,
            "when": {
                "operation": {"in": ["createPayment", "getUser*"]},
                "service": "payments",
                "product": "sepa-credit-transfers",
                "method": "POST",
                "path": "/v1/*",
                "tpp": {"regex": "^a"},
                "psu": {"absent": False},
                "context": "PRIVATE",
                "headers": {"A": "b", "B": {"gt": 1, "lt": "2.5"}},
                "query": {"q": 1},
                "body": {"a": {"b": ["c", {"gt": 5}]}},
            },
            "times": {"first": 2},
            "then": {
                "answer": {
                    "status": 503,
                    "code": "SYSTEM_ERROR",
                    "text": "t",
                    "category": "ERROR",
                    "headers": {"R": "1", "Set-Cookie": ["a=1", "b=2"]},
                }
            },
        },
        {"name": "b", "when": {"payment": "x"}, "times": {"every": 3}, "then": {"answer": {"json": {"a": [1, None]}}}},
        {
            "name": "c",
            "when": {"account": "y"},
            "times": {"after": 5},
            "then": {"delay": {"min": "1s", "max": "2s"}, "malformed": "empty"},
        },
        {
            "name": "d",
            "times": {"chance": 0.5},
            "then": {
                "delay": "1m",
                "disconnect": "after",
                "sca": "reject",
                "fee": "10.00",
                "permission": "remove",
                "progress": ["ACTC", {"PDNG": "30s"}, {"RJCT": "5s"}],
            },
        },
        {"name": "e", "times": {"for": "10m"}, "then": {"quota": "exhausted"}},
        {"name": "f", "then": {"progress": {"any": [["ACTC", {"ACSP": "1s"}], ["ACTC"]]}}},
    ],
    "as": {
        "tpp": {"name": "shop", "roles": ["PISP", "AISP"], "organizationIdentifier": "PSD", "flaw": "expired"},
        "nationalId": "14888520059",
        "context": "PRIVATE",
        "agreement": "a",
        "accounts": ["x"],
        "session": True,
    },
    "story": [
        {
            "tpp": "GET /v1/accounts",
            "headers": {"A": "b", "C": None, "D": 5},
            "tamper": "bit-flipped",
            "save": {"a": "accounts[0].id"},
            "expect": {
                "status": 200,
                "json": {"a": {"in": [1, "x"]}},
                "headers": {"A": {"absent": True}},
                "body": {"regex": "a"},
                "lost": False,
                "seconds": {"lt": 5},
            },
            "as": {"tpp": "demo"},
        },
        {"tpp": "POST /v1/x", "json": {"a": "${a}", "d": "${today+3d}"}},
        {"tpp": "POST /v1/x", "body": "raw"},
        {"psu": "approve ${a}", "method": "HA2", "context": "PRIVATE", "agreement": "x", "accounts": ["y"]},
        {"psu": "fail latest", "status": 500, "code": "SYSTEM_ERROR", "message": "m", "system": "core"},
        {"psu": "reject latest"},
        {"psu": "expire latest"},
        {"clock": "advance 1h30m"},
        {"clock": "set 2026-03-03T09:00:00+01:00"},
        {"control": "POST reset", "json": {"fixtures": "empty"}},
    ],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the parts of a value stand, the innermost first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield from places(part, (*path, name))
        yield (*path, name)


def replaced(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The part of EVERYTHING in which the path lies, of a list its one entry, with another value there.

    The rest is read as in all other cases, and the schema takes its time.
    """
    head, *rest = path
    part = EVERYTHING[head]
    if isinstance(part, list) and rest:
        part, path = [part[rest[0]]], (head, 0, *rest[1:])
    elif head == "start" and rest:
        part = {rest[0]: part[rest[0]]}
        if rest[0] == "add" and len(rest) > 1:
            part = {"add": {rest[1]: part["add"][rest[1]]}}
    changed = copy.deepcopy({"scenario": EVERYTHING["scenario"], head: part})
    here: Any = changed
    for name in path[:-1]:
        here = here[name]
    here[path[-1]] = value
    return changed


def mistakes(scenario: dict[str, Any]) -> list[str]:
    """What the loader refuses; a schema cannot know what a step saves."""
    try:
        loader.from_value(scenario)
    except ScenarioRefused as refused:
        return [one.text for one in refused.problems if not one.text.startswith("No earlier step saves")]
    return []


def test_of_everything_at_once_both_refuse_the_same_parts() -> None:
    assert VALIDATOR.is_valid(EVERYTHING)
    assert mistakes(EVERYTHING) == []
    verdicts = {}
    for path, value in zip(places(EVERYTHING), cycle((None, {"other": 1}))):
        changed = replaced(path, value)
        verdicts[path] = VALIDATOR.is_valid(changed), not mistakes(changed)
    assert {path: verdict for path, verdict in verdicts.items() if len(set(verdict)) > 1} == {}
    assert {verdict for verdict, _ in verdicts.values()} == {True, False}


# Beside the mistakes in test_loader.py.
WRONG: list[dict[str, Any]] = [
    {},
    {"scenario": "X"},
    {"scenario": "x", "start": {"form": "empty"}},
    {"scenario": "x", "start": {"settings": {"calender": "norway"}}},
    {"scenario": "x", "start": {"change": [{"agreement": "a", "signatures": 3}]}},
    *({"scenario": "x", "start": {"settings": {name: "x"}}} for name in TAKES),
    {"scenario": "x", "start": {"settings": {"date_skew": -1}}},
    {"scenario": "x", "start": {"settings": {"progression": {"polls": 0}}}},
    {"scenario": "x", "start": {"settings": {"straks_limit": "0.00"}}},
    *({"scenario": "x", "start": {"add": {name: [{"x": 1}]}}} for name in ADDED),
    {"scenario": "x", "start": {"change": [{"account": "a", "creditLine": "-5.00"}]}},
    {"scenario": "x", "rules": [{"then": {"fee": "1"}, "when": {"operation": {"in": ["createPaymnt"]}}}]},
    {"scenario": "x", "rules": [{"then": {"fee": "1"}, "when": {"body": {"amount": {"gte": 5}}}}]},
    *(
        {"scenario": "x", "rules": [{"then": {"delay": wait}}]}
        for wait in ("1s1h", "1.5h", "P", "PT", "P1M", "P1.5DT1H")
    ),
    {"scenario": "x", "rules": [{"then": {"answer": {"status": 500, "headers": {"A b": "c"}}}}]},
    {"scenario": "x", "rules": [{"then": {"delay": {"min": "1s"}}}]},
    {"scenario": "x", "rules": [{"then": {"progress": []}}]},
    {"scenario": "x", "rules": [{"then": {"permission": "add"}}]},
    {"scenario": "x", "rules": [{"then": {"quota": "full"}}]},
    {"scenario": "x", "rules": [{"then": {"fee": "1"}, "times": {"chance": 1.1}}]},
    {"scenario": "x", "rules": [{"then": {"fee": "1"}, "when": {"tpp": {"gte": 1}}}]},
    {"scenario": "x", "as": {"session": "no"}},
    {"scenario": "x", "story": [{}]},
    {"scenario": "x", "story": [{"tpp": "GET /v1/accounts", "save": {"1a": "b"}}]},
    {"scenario": "x", "story": [{"psu": "approve latest", "method": "HA3"}]},
    {"scenario": "x", "story": [{"psu": "fail latest", "code": "SYSTEM_ERR"}]},
    {"scenario": "x", "story": [{"tpp": "FETCH /v1/accounts"}]},
    {"scenario": "x", "story": [{"psu": "like it"}]},
    {"scenario": "x", "rules": [{"when": {"path": {}}, "then": {"delay": "1s"}}]},
    {"scenario": "x", "story": [{"clock": "stop"}]},
]


TAKEN: list[dict[str, Any]] = [
    *({"rules": [{"then": {"delay": wait}}]} for wait in ("10s", "1m30s", "500ms", "1.5s", "PT1H", "PT0.5H")),
    {"start": {"from": "snapshot:monday"}},
    {"rules": [{"then": {"delay": "1s"}, "when": {"operation": "get*", "product": {"regex": "^sepa"}}}]},
    {
        "story": [
            {"control": "GET payments", "save": {"status": "status", "context": "context"}},
            {"psu": "approve latest", "context": "${context}", "accounts": "${context}"},
            {"control": "GET payments", "expect": {"status": {"in": "${status}"}, "json": {"a": {"gt": "${status}"}}}},
            {"psu": "fail latest", "status": "${status}", "code": "${context}"},
        ]
    },
]


@cases("scenario", TAKEN)
def test_what_one_takes_the_other_takes(scenario: dict[str, Any]) -> None:
    assert mistakes({"scenario": "x", **scenario}) == []
    VALIDATOR.validate({"scenario": "x", **scenario})


@cases("scenario", WRONG)
def test_what_one_refuses_the_other_refuses(scenario: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(scenario)
    with pytest.raises(ScenarioRefused):
        loader.from_value(scenario)
