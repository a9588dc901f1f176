"""The form of a scripted rule: when it matches, how often it acts, and its effects (scenario-language.md#rules)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import ConfigDict, Field, create_model, model_validator

from emulator.bank.conditions import is_absence
from emulator.bank.products import Product
from emulator.bank.validation import Mismatch, Model, Omittable, Text200, refuse, union
from emulator.scenario.effects import Effect, effects
from emulator.scenario.matching import When, is_person
from emulator.scenario.values import Duration

MOST_COUNTED = 10**9
MOST_RULES = 500
SHOWN = 8  # operations in the text of a problem


class Times(Model):
    """The matches on which a rule acts, by one of these; omitted: every match."""

    model_config = ConfigDict(title="times", json_schema_extra={"minProperties": 1, "maxProperties": 1})

    first: Omittable[Annotated[int, Field(ge=1, le=MOST_COUNTED)]] = Field(None, description="The first N matches.")
    every: Omittable[Annotated[int, Field(ge=1, le=MOST_COUNTED)]] = Field(None, description="Each Nth match.")
    after: Omittable[Annotated[int, Field(ge=0, le=MOST_COUNTED)]] = Field(None, description="From match N+1 on.")
    at: Omittable[Annotated[int, Field(ge=1, le=MOST_COUNTED)]] = Field(None, description="Match number N only.")
    chance: Omittable[Annotated[float, Field(ge=0, le=1)]] = Field(None, description="Drawn from the bank's seed.")
    for_: Omittable[Duration] = Field(
        None, alias="for", description="This long in bank time, from when the rule was added."
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            names = (field.alias or name for name, field in type(self).model_fields.items())
            refuse(Mismatch(text=f"Expected one of {', '.join(names)}."))
        return self

    def acts(self, matched: int, *, dice: float, since: timedelta) -> bool:
        """Whether a rule acts on match number `matched`; `dice`: 0 to 1; `since`: bank time since it was added."""
        if self.first is not None:
            return matched <= self.first
        if self.at is not None:
            return matched == self.at
        if self.every is not None:
            return matched % self.every == 0
        if self.after is not None:
            return matched > self.after
        if self.chance is not None:
            return dice < self.chance
        return self.for_ is None or since < self.for_


class EffectsModel(Model):
    """The effects of a rule, at least one."""

    model_config = ConfigDict(title="then", json_schema_extra={"minProperties": 1})

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if not self.model_fields_set:
            refuse(Mismatch(text=f"A rule needs an effect: one of {', '.join(effects())}."))
        wrong = [
            Mismatch(text=f"{name} has no effect beside {instead}, with which the bank does not act.", path=(name,))
            for instead, acting in self.effects.items()
            if acting.instead
            for name in self.effects
            if effects()[name].inside and name not in acting.leaves
        ]
        if wrong:
            refuse(*wrong)
        return self

    @cached_property
    def effects(self) -> Mapping[str, Effect]:
        known = effects()
        return {name: known[name].effect(getattr(self, name)) for name in known if name in self.model_fields_set}


if TYPE_CHECKING:
    Then = EffectsModel
else:
    Then = create_model(
        "Then",
        __base__=EffectsModel,
        **{name: (kind.form, Field(None, description=kind.summary)) for name, kind in effects().items()},
    )


class Rule(Model):
    """A scripted rule: the requests that it matches, on which of them it acts, and its effects."""

    model_config = ConfigDict(title="rule")

    name: Omittable[Text200] = None
    unsigned: bool = Field(False, description="Acts and counts before the signature is checked.")
    when: When = Field(default_factory=lambda: When.model_validate({}))
    times: Omittable[Times] = None
    then: Then

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        """Refuse what cannot act or match: nobody would notice the mistake."""
        wrong = []
        tpp = self.when.tpp
        if not self.unsigned and is_absence(tpp):
            wrong.append(Mismatch(text="Without unsigned: true every request has a TPP.", path=("when", "tpp")))
        if not self.unsigned and "psu" in self.when.model_fields_set and not is_person(self.when.psu):
            wrong.append(Mismatch(text="Expected a PSU-ID or a national identity number.", path=("when", "psu")))
        for name in self.then.effects:
            useful = effects()[name].operations
            meant = self.when.operations
            if useful and meant and not meant & frozenset(useful):
                acts_on = ", ".join(list(useful)[:SHOWN]) + (" and others" if len(useful) > SHOWN else "")
                text = f"{name} has no effect on {', '.join(sorted(meant))}; it acts on {acts_on}."
                wrong.append(Mismatch(text=text, path=("then", name)))
        if wrong:
            refuse(*wrong)
        return self

    def unfit(self, operation: str, product: Product) -> Mapping[str, str]:
        """The effects on an operation that cannot act on payments of this product, each with the reason."""
        asked = {name: effect.unfit for name, effect in self.then.effects.items() if effect.unfit is not None}
        reasons = ((name, why(product)) for name, why in asked.items() if operation in effects()[name].operations)
        return {name: reason for name, reason in reasons if reason is not None}

    @cached_property
    def notes(self) -> list[str]:
        """What its author may not expect: payments that it does not change, codes that the bank does not know."""
        warnings = [warning for effect in self.then.effects.values() for warning in effect.warnings]
        meant = [(one.row.id, one.product) for one in self.when.variants if one.product is not None]
        reasons = [reason for operation in meant for reason in self.unfit(*operation).values()]
        return list(dict.fromkeys((*warnings, *reasons)))


class RuleList(Model):
    """Several rules."""

    rules: Annotated[list[Rule], Field(max_length=MOST_RULES)]


def _form(value: Any) -> str:
    if isinstance(value, list):
        return "list"
    return "rules" if isinstance(value, RuleList) or (isinstance(value, dict) and "rules" in value) else "rule"


# The body of `POST rules`: a rule, or several.
RulesBody = union({"rule": Rule, "list": Annotated[list[Rule], Field(max_length=MOST_RULES)], "rules": RuleList}, _form)
