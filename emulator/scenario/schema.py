"""The JSON Schema of scenario files, made from the effects and the step kinds, so that editors complete them."""

from __future__ import annotations

from functools import cache
from typing import Any

from emulator.bank import fixtures
from emulator.bank.fixtures.definitions import Additions
from emulator.bank.products import SERVICES
from emulator.bank.settings import SCHEMAS
from emulator.ca import FLAWS, TPP_NAME
from emulator.scenario import conditions, durations, loader, matching, persona, rule, start, stated, story, variables
from emulator.scenario.effects import effects
from emulator.scenario.model import CURRENT, SNAPSHOT
from emulator.scenario.part import MOMENT, text_schema
from emulator.scenario.steps import step_kinds
from emulator.scenario.vocabulary import CONTEXTS, METHODS, vocabulary

ONE_VALUE: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**shown, "required": list(required)} if required else shown


def _text(longest: int, description: str) -> dict[str, Any]:
    return {**text_schema(longest), "description": description}


def _named(words: tuple[str, ...]) -> dict[str, Any]:
    """One of the words, a text with `*`, or a condition."""
    word: dict[str, Any] = {"anyOf": [{"enum": list(words)}, {"type": "string", "pattern": r"\*"}]}
    return {"anyOf": [*word["anyOf"], _operators(word)]}


@cache
def scenario_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a scenario; made once, so not to be changed."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of the bank emulator",
        **_object(
            {
                "scenario": {"type": "string", "pattern": f"^{loader.NAME.pattern}$", "description": "Its name."},
                "summary": _text(500, "What it shows, in one sentence."),
                "start": {"$ref": "#/$defs/start"},
                "rules": {"type": "array", "items": {"$ref": "#/$defs/rule"}, "maxItems": loader.MOST_RULES},
                "as": {"$ref": "#/$defs/as"},
                "story": {"type": "array", "items": {"$ref": "#/$defs/step"}, "maxItems": story.MOST_STEPS},
            },
            "scenario",
        ),
        "$defs": {
            "duration": {
                "type": "string",
                "description": "A length of time: 10s, 2m, 1h30m, 3d, 500ms, PT1H.",
                "pattern": durations.SCHEMA_PATTERN,
            },
            "condition": {
                "description": "An exact value, a text with * for any characters, or {gt, lt, in, regex, absent}.",
                "anyOf": [ONE_VALUE, _operators(ONE_VALUE)],
            },
            "nested": _nested(),
            "when": _when(),
            "rule": _rule(),
            "start": _start(),
            "as": _persona(),
            "expect": _expect(),
            **_additions(),
            "step": {"oneOf": [_step(name) for name in step_kinds()]},
        },
    }


def _operators(choice: dict[str, Any]) -> dict[str, Any]:
    """`{gt, lt, in, regex, absent}`, each `choice` of `in` as that says; in a story a saved value may be named."""
    number = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"{conditions.NUMBER}|{variables.NAMED}"}]}
    operators = {
        "gt": number,
        "lt": number,
        "in": {"anyOf": [{"type": "array", "minItems": 1, "items": choice}, variables.SAVED]},
        "regex": text_schema(),
        "absent": {"type": "boolean"},
    }
    return {**_object({name: operators[name] for name in stated.OPERATORS}), "minProperties": 1}


def _nested() -> dict[str, Any]:
    """A condition, or members and entries that are such in their turn."""
    nested = {"$ref": "#/$defs/nested"}
    names = {"not": {"enum": [*stated.OPERATORS, *sorted(stated.FOREIGN)]}}
    members = {"type": "object", "propertyNames": names, "additionalProperties": nested}
    return {"anyOf": [{"$ref": "#/$defs/condition"}, {"type": "array", "items": nested}, members]}


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
        "body": {"$ref": "#/$defs/nested", "description": "Members of the body, nested as they are there."},
    }
    return {**_object(known), "description": "Which requests are meant; all must hold."}


def _rule() -> dict[str, Any]:
    whole = {"type": "integer", "minimum": 1, "maximum": rule.MOST_COUNTED}
    times = {
        "first": {**whole, "description": "The first N matches."},
        "every": {**whole, "description": "Each Nth match."},
        "after": {**whole, "minimum": 0, "description": "From match N+1 on."},
        "chance": {"type": "number", "minimum": 0, "maximum": 1, "description": "Drawn from the bank's seed."},
        "for": {"$ref": "#/$defs/duration", "description": "This long in bank time, counted from when it was added."},
    }
    known = {name: {**kind.schema, "description": kind.summary} for name, kind in effects().items()}
    return _object(
        {
            "name": text_schema(rule.LONGEST_NAME),
            "unsigned": {"type": "boolean", "description": "Acts and counts before the signature is checked."},
            "when": {"$ref": "#/$defs/when"},
            "times": {**_object({name: times[name] for name in rule.TIMES}), "minProperties": 1, "maxProperties": 1},
            "then": {**_object(known), "minProperties": 1},
        },
        "then",
    )


def _start() -> dict[str, Any]:
    changes = {
        **{name: {"type": "string", "pattern": f"^{form.pattern}$"} for name, form in start.AMOUNTS.items()},
        "paymentsRemoved": {"type": "boolean"},
        "demandsKid": {"type": "boolean"},
        "name": text_schema(start.LONGEST_ACCOUNT_NAME),
    }
    account = {name: changes[name] for name in start.ACCOUNT_CHANGES}
    persons = {"type": "array", "items": text_schema(start.LONGEST_PERSON), "minItems": 1}
    agreement = {"signatures": {"enum": [1, 2]}, "persons": persons}
    named = text_schema(start.LONGEST_NAME)
    bases = [{"enum": [*fixtures.names(), CURRENT]}, {"type": "string", "pattern": f"^{SNAPSHOT}.", "maxLength": 200}]
    return _object(
        {
            "from": {"anyOf": bases, "description": "A fixture, current, or snapshot:NAME."},
            "clock": {
                "type": "string",
                "pattern": f"^{MOMENT.pattern}$",
                "description": "A moment with its zone; bank time stands still there until advanced.",
            },
            "settings": _object({name: dict(shape) for name, shape in SCHEMAS.items()}),
            "add": {"$ref": "#/$defs/Additions"},
            "change": {
                "type": "array",
                "items": {
                    "oneOf": [
                        {**_object({"account": named, **account}, "account"), "minProperties": 2},
                        {**_object({"agreement": named, **agreement}, "agreement"), "minProperties": 2},
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
            "organizationIdentifier": text_schema(persona.LONGEST_IDENTIFIER),
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
            "nationalId": _text(persona.LONGEST, "The customer; left out: who owns the account that pays."),
            "context": {"enum": list(CONTEXTS)},
            "agreement": _text(persona.LONGEST, "psuCorporateId of the agreement."),
            "accounts": {
                "type": "array",
                "items": text_schema(),
                "description": "What is shared: iban, bban or resourceId.",
            },
            "session": {"type": "boolean", "description": "false: the TPP does not know the customer yet."},
        }
    )


def _expect() -> dict[str, Any]:
    condition = {"$ref": "#/$defs/condition"}
    return _object(
        {
            "status": condition,
            "json": {
                "$ref": "#/$defs/nested",
                "description": "Members that the answer must have; others may be there too.",
            },
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
        "save": {
            "type": "object",
            "propertyNames": {"pattern": f"^{variables.NAME.pattern}$"},
            "additionalProperties": text_schema(story.LONGEST_PATH),
            "description": "Name: path in the answer.",
        },
        "as": {"$ref": "#/$defs/as"},
    }
    word = {**kind.schema, "description": kind.summary}
    return _object({name: word, **kind.members, **common}, name)
