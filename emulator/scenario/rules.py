"""The scripted rules of one bank: asked about every request, first match wins per effect (CONTRACT 10, 13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from emulator.api.messages import Response
from emulator.api.operation import Call, Reply
from emulator.bank.bank import Bank
from emulator.bank.clock import moment
from emulator.bank.documents import RuleEntry
from emulator.bank.kinds import RULES
from emulator.scenario.part import Part

if TYPE_CHECKING:
    from emulator.scenario.effect import Effect
    from emulator.scenario.rule import Rule


@dataclass(slots=True, eq=False)
class _Live:
    """A rule at work. Its counters live in memory: a refused request leaves the documents as they were."""

    rule: Rule
    scenario: str | None
    added: str
    dice: Random
    matched: int = 0
    acted: int = 0

    def acts(self, bank: Bank) -> bool:
        """Count a match, and whether the rule acts on it."""
        self.matched += 1
        times = self.rule.times
        if times.kind == "first":
            acts = self.matched <= times.value
        elif times.kind == "every":
            acts = self.matched % int(times.value) == 0
        elif times.kind == "after":
            acts = self.matched > times.value
        elif times.kind == "chance":
            acts = self.dice.random() < times.value
        elif times.kind == "for":
            acts = (bank.clock.now() - moment(self.added)).total_seconds() < times.value
        else:
            acts = True
        self.acted += acts
        return acts

    def document(self) -> RuleEntry:
        return {"rule": dict(self.rule.source), "scenario": self.scenario, "added": self.added}


@dataclass(slots=True)
class ActingRules:
    """The effects that act on one request, each with the dice of its rule."""

    names: list[str] = field(default_factory=list)
    effects: dict[str, tuple[Effect, Random]] = field(default_factory=dict)

    def before(self, call: Call) -> Reply | None:
        """Tell the domain what was scripted; the reply that an effect gives in the bank's place."""
        reply: Reply | None = None
        # An answer may send the customer to an SCA, and what is scripted for that one has to be known by then.
        for effect, _ in sorted(self.effects.values(), key=lambda acting: acting[0].instead):
            given = effect.before(call) if effect.before is not None else None
            reply = reply or given
        return reply

    def after(self, response: Response) -> None:
        """The late faults."""
        for effect, dice in self.effects.values():
            if effect.after is not None:
                effect.after(response, dice)


class RuleSet:
    """The rules in the order in which they are asked; kept in the document `meta/rules`, counted in memory."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self.rules: list[_Live] = []
        self._taken: tuple[Call, set[str]] | None = None
        self.refresh()

    def refresh(self, going_on: Iterable[_Live] = ()) -> None:
        """Read the rules from the documents again; those of `going_on` that stand there count on, the others anew."""
        kept = RULES.read(self._bank.documents)
        known = list(going_on)
        self.rules = []
        self._taken = None
        for entry in kept["rules"] if kept is not None else ():
            live = next((live for live in known if live.document() == entry), None)
            if live is not None:
                known.remove(live)
                self.rules.append(live)
            else:
                self._read(entry)

    def _read(self, entry: RuleEntry) -> None:
        # The language of rules is imported where there are any: a start is quicker without it.
        from emulator.scenario import rule

        read = rule.read(Part(entry["rule"]))
        if read is not None:
            self.rules.append(self._live(len(self.rules), read, entry.get("scenario"), entry["added"]))

    def _live(self, place: int, added: Rule, scenario: str | None, at: str) -> _Live:
        # Each rule draws for itself, so that the draws of one do not depend on how often another matches.
        return _Live(added, scenario, at, self._bank.ids.random(f"rule {place} {added.name}"))

    def match(self, call: Call, signed: bool) -> ActingRules | None:
        """The effects that act on a request: unsigned rules are asked before the signature, the others after it.

        A rule all of whose effects an earlier rule has taken is not asked, and does not count the request.
        """
        from emulator.scenario.facts import Facts

        taken = self._taken_by(call)
        facts = Facts.of_call(call)
        acting = ActingRules()
        for name, live in self._by_name():
            if live.rule.unsigned == signed or taken.issuperset(live.rule.effects):
                continue
            if live.rule.matcher.fits(facts) and live.acts(self._bank):
                acting.names.append(name)
                for kind, effect in live.rule.effects.items():
                    if kind not in taken:
                        taken.add(kind)
                        acting.effects[kind] = (effect, live.dice)
        return acting if acting.names else None

    def _by_name(self) -> Iterator[tuple[str, _Live]]:
        """The rules with what they are called: one without a name by its place, in a way that no other is called."""
        given = {live.rule.name for live in self.rules}
        for number, live in enumerate(self.rules, 1):
            place = f"rule {number}"
            yield live.rule.name or (f"{place} without a name" if place in given else place), live

    def _taken_by(self, call: Call) -> set[str]:
        """The effects that have a rule already, also from before the signature of the same request."""
        if self._taken is None or self._taken[0] is not call:
            self._taken = (call, set())
        return self._taken[1]

    def sources(self) -> list[dict[str, Any]]:
        """The rules in their order, as JSON of exactly the YAML's shape."""
        return [dict(live.rule.source) for live in self.rules]

    def counts(self) -> list[dict[str, Any]]:
        """How often each rule has matched and acted since it was added."""
        return [
            {"name": name, "scenario": live.scenario, "matched": live.matched, "acted": live.acted}
            for name, live in self._by_name()
        ]

    def add(self, rules: Iterable[Rule], *, scenario: str | None = None) -> None:
        """Append rules; they are asked after those that are there."""
        at = self._bank.clock.stamp()
        new = [self._live(place, added, scenario, at) for place, added in enumerate(rules, len(self.rules))]
        self._keep([*self.rules, *new])

    def remove(self, name: str) -> int:
        """Take out the rules of this name; how many there were."""
        return self._remove([live for called, live in self._by_name() if called != name])

    def remove_scenario(self, scenario: str) -> int:
        """Take out the rules that a scenario brought."""
        return self._remove([live for live in self.rules if live.scenario != scenario])

    def remove_scenarios(self) -> int:
        """Take out the rules that any scenario brought."""
        return self._remove([live for live in self.rules if live.scenario is None])

    def clear(self) -> int:
        """Take out all rules."""
        return self._remove([])

    def _remove(self, remaining: list[_Live]) -> int:
        removed = len(self.rules) - len(remaining)
        if removed:
            self._keep(remaining)
        return removed

    def _keep(self, rules: list[_Live]) -> None:
        """Write the rules, and only then go by them: what cannot be kept has not happened."""
        RULES.write(self._bank.documents, {"id": "rules", "rules": [live.document() for live in rules]})
        self.rules = rules
