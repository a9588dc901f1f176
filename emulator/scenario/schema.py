"""The JSON Schema of scenario files, made from the effects and the step kinds, so that editors complete them."""

from __future__ import annotations

from typing import Any

from emulator.authority import FLAWS, TPP_NAME
from emulator.bank.definitions import Additions
from emulator.bank.settings import SCHEMAS
from emulator.scenario import conditions, loader, matching, persona, rule, start
from emulator.scenario.effects import effects
from emulator.scenario.steps import step_kinds
from emulator.scenario.vocabulary import CONTEXTS, METHODS, SERVICES, vocabulary

TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
ANY_TEXT_OR_NUMBER: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**shown, "required": list(required)} if required else shown


def _named(words: tuple[str, ...]) -> dict[str, Any]:
    """One of the words, a text with `*`, or a condition."""
    return {"anyOf": [{"enum": list(words)}, {"$ref": "#/$defs/condition"}]}


def scenario_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a scenario."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of the bank emulator",
        **_object(
            {
                "scenario": {"type": "string", "pattern": f"^{loader.NAME.pattern}$", "description": "Its name."},
                "summary": {**TEXT, "maxLength": 500, "description": "What it shows, in one sentence."},
                "start": {"$ref": "#/$defs/start"},
                "rules": {"type": "array", "items": {"$ref": "#/$defs/rule"}, "maxItems": loader.MOST_RULES},
                "as": {"$ref": "#/$defs/as"},
                "story": {"type": "array", "items": {"$ref": "#/$defs/step"}},
            },
            "scenario",
        ),
        "$defs": {
            "duration": {
                "type": "string",
                "description": "A length of time: 10s, 2m, 1h30m, 3d, 500ms, PT1H.",
                "pattern": r"^([0-9]+(\.[0-9]+)?(w|d|h|m|s|ms))+$|^P[0-9TYMWDHS.,]+$",
            },
            "condition": _condition(),
            "when": _when(),
            "rule": _rule(),
            "start": _start(),
            "as": _persona(),
            "expect": _expect(),
            **_additions(),
            "step": {"oneOf": [_step(name) for name in step_kinds()]},
        },
    }


def _condition() -> dict[str, Any]:
    number = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[+-]?[0-9]+(\.[0-9]+)?$"}]}
    operators = {
        "gt": number,
        "lt": number,
        "in": {"type": "array", "minItems": 1},
        "regex": TEXT,
        "absent": {"type": "boolean"},
    }
    known = {name: operators[name] for name in conditions.OPERATORS}
    return {
        "description": "An exact value, a text with * for any characters, or {gt, lt, in, regex, absent}.",
        "anyOf": [ANY_TEXT_OR_NUMBER, {**_object(known), "minProperties": 1}],
    }


def _when() -> dict[str, Any]:
    words = vocabulary()
    condition = {"$ref": "#/$defs/condition"}
    named = {"type": "object", "additionalProperties": condition}
    known: dict[str, Any] = {name: condition for name in matching.KNOWN if name != "status"}
    known |= {
        "operation": _named(words.operations),
        "product": _named(words.products),
        "service": _named(SERVICES),
        "method": _named(METHODS),
        "context": _named(CONTEXTS),
        "headers": named,
        "query": named,
        "body": {"description": "Members of the body, nested as they are there."},
    }
    return {**_object(known), "description": "Which requests are meant; all must hold."}


def _rule() -> dict[str, Any]:
    whole = {"type": "integer", "minimum": 1}
    times = {
        "first": {**whole, "description": "The first N matches."},
        "every": {**whole, "description": "Each Nth match."},
        "after": {"type": "integer", "minimum": 0, "description": "From match N+1 on."},
        "chance": {"type": "number", "minimum": 0, "maximum": 1, "description": "Drawn from the bank's seed."},
        "for": {"$ref": "#/$defs/duration", "description": "This long in bank time, counted from when it was added."},
    }
    known = {name: {**kind.schema, "description": kind.summary} for name, kind in effects().items()}
    return _object(
        {
            "name": TEXT,
            "unsigned": {"type": "boolean", "description": "Acts and counts before the signature is checked."},
            "when": {"$ref": "#/$defs/when"},
            "times": {**_object({name: times[name] for name in rule.TIMES}), "minProperties": 1, "maxProperties": 1},
            "then": {**_object(known), "minProperties": 1},
        },
        "then",
    )


def _start() -> dict[str, Any]:
    amount = {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}
    changes = {
        "balance": amount,
        "creditLine": amount,
        "paymentsRemoved": {"type": "boolean"},
        "demandsKid": {"type": "boolean"},
        "name": TEXT,
    }
    account = {name: changes[name] for name in start.ACCOUNT_CHANGES}
    agreement = {"signatures": {"enum": [1, 2]}, "persons": {"type": "array", "items": TEXT, "minItems": 1}}
    return _object(
        {
            "from": {**TEXT, "description": "known-state, empty, another fixture, current, or snapshot:NAME."},
            "clock": {**TEXT, "description": "A moment with its zone; bank time stands still there until advanced."},
            "settings": _object({name: dict(shape) for name, shape in SCHEMAS.items()}),
            "add": {"$ref": "#/$defs/Additions"},
            "change": {
                "type": "array",
                "items": {
                    "oneOf": [
                        {**_object({"account": TEXT, **account}, "account"), "minProperties": 2},
                        {**_object({"agreement": TEXT, **agreement}, "agreement"), "minProperties": 2},
                    ]
                },
            },
        }
    )


def _additions() -> dict[str, Any]:
    """What may stand under `add`, by the names of its definitions."""
    made = Additions.model_json_schema(by_alias=True)
    return {**made.pop("$defs"), "Additions": made}


def _persona() -> dict[str, Any]:
    name = {"type": "string", "pattern": f"^{TPP_NAME.pattern}$", "maxLength": persona.LONGEST_NAME}
    tpp = _object(
        {
            "name": name,
            "roles": {"type": "array", "items": {"enum": list(persona.ROLES)}, "minItems": 1},
            "organizationIdentifier": TEXT,
            "flaw": {"enum": list(FLAWS)},
        },
        "name",
    )
    return _object(
        {
            "tpp": {
                "anyOf": [name, tpp],
                "description": "The TPP whose certificate signs; a name alone: as it was described last.",
            },
            "nationalId": {**TEXT, "description": "The customer; left out: who owns the account that pays."},
            "context": {"enum": list(CONTEXTS)},
            "agreement": {**TEXT, "description": "psuCorporateId of the agreement."},
            "accounts": {"type": "array", "items": TEXT, "description": "What is shared: iban, bban or resourceId."},
            "session": {"type": "boolean", "description": "false: the TPP does not know the customer yet."},
        }
    )


def _expect() -> dict[str, Any]:
    condition = {"$ref": "#/$defs/condition"}
    return _object(
        {
            "status": condition,
            "json": {"description": "Members that the answer must have; others may be there too."},
            "headers": {"type": "object", "additionalProperties": condition},
            "body": condition,
            "lost": {"type": "boolean", "description": "The connection was closed without an answer."},
            "seconds": condition,
        }
    )


def _step(name: str) -> dict[str, Any]:
    kind = step_kinds()[name]
    common = {
        "expect": {"$ref": "#/$defs/expect"},
        "save": {"type": "object", "additionalProperties": TEXT, "description": "Name: path in the answer."},
        "as": {"$ref": "#/$defs/as"},
    }
    word = {**kind.schema, "description": kind.summary}
    return _object({name: word, **kind.members, **common}, name)
