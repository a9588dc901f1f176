"""The scripted rules of one bank: evaluated for every request, the first match wins per effect.

A request comes here twice, before (`signed` False: rules with `unsigned`) and after its signature is checked. For each
rule of its operation, in the order in which they were added, the rules of the setting `weather` last:

1. A rule is skipped if earlier ones, of this or the first round, have taken all of its effects, or if its `when` does
   not match. Nothing is counted.
2. Effects that cannot act on the payment's product are left out, with a note for the request log. A rule without any
   other effect is skipped too.
3. The match is counted (`matched`), and `times` decides whether the rule acts on it (`acted`). Dice are drawn from the
   bank's seed, the rule and the number of the match, so that other rules and other requests do not change them.
4. Its effects that no earlier rule has taken act: first those inside the bank (they set `call.script`), then those
   that answer instead of it, and after the answer those that change it or its delivery.

Where the rules are, and who may change them:

    what                    where                         changed by
    rules                   document `meta/rules`         `add`, `remove`, ..., undone with their transaction
    rules of `weather`      built from the setting        `PUT settings`, and what restores settings
    counters, dice          in memory, by `serial`        matches; a refused request, which changes no document, counts
    rules in use            derived (`_set`)              a change of the document or the setting, also an undone one

A rule keeps its counters when others come or go, and when its removal is undone; a rule that is added again begins at
zero, as do all after a snapshot is restored (`restart`). Where processes share banks, an orderly end hands them to the
bank's next home (`counters`, `count_from`); else they end with the process. An entry that this version cannot read is
left out: a bank always starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from emulator.api.messages import Response
from emulator.api.operation import Call, Reply
from emulator.api.service import MatchedRules
from emulator.bank import products
from emulator.bank.bank import Bank
from emulator.bank.clock import moment
from emulator.bank.documents import RuleEntry, RulesDocument
from emulator.bank.kinds import RULES, SETTINGS

if TYPE_CHECKING:
    from emulator.scenario.effects import Effect
    from emulator.scenario.rule import Rule

# The rules of the setting `weather`. `rough` disturbs requests at random and at low rates, on operations with data of
# customers, not on sandbox data and contact information; a client that follows the documented rules loses nothing.
WORK = {
    "in": [
        "/v1/accounts*",
        "/v1/card-accounts*",
        "/v1/consents*",
        "/v1/bank-offered-consents*",
        "/v1/user*",
        "/v1/agreements*",
        "/v1/payments/*",
        "/v1/periodic-payments/*",
        "/v1/bulk-payments/*",
        "/v1/signing-baskets*",
    ]
}
UNAVAILABLE = {"status": 503, "text": "The bank is unavailable for a moment.", "headers": {"Retry-After": "1"}}

_ROUGH: Sequence[tuple[str, float, Mapping[str, Any], Mapping[str, Any]]] = (
    ("lost answer", 0.03, {"disconnect": "after"}, {"method": {"in": ["POST", "DELETE"]}}),
    ("lost request", 0.01, {"disconnect": "before"}, {}),
    ("unavailable", 0.02, {"answer": UNAVAILABLE}, {}),
    ("slow answer", 0.05, {"delay": {"min": "500ms", "max": "3s"}}, {}),
    ("slow SCA", 0.2, {"sca": {"slow": "3s"}}, {}),
)
WEATHER: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "calm": (),
    "rough": tuple(
        {"name": f"weather: {name}", "when": {**when, "path": WORK}, "times": {"chance": chance}, "then": then}
        for name, chance, then, when in _ROUGH
    ),
}


MOST_REMOVED = 100  # removed rules whose counters are kept, as their removal may be undone


@dataclass(slots=True, eq=False)
class _ActiveRule:
    """A rule in use. Its counters are in memory, as a refused request does not change documents."""

    rule: Rule
    entry: RuleEntry
    serial: str
    purpose: str  # the name of its random stream
    setting: str | None = None  # that added it
    name: str = ""  # that it is shown by
    matched: int = 0
    acted: int = 0

    def acts(self, bank: Bank) -> Random | None:
        """Count a match; returns the dice for its effects if the rule acts on it, else None.

        The dice depend only on seed, rule and number of the match, so they are the same in every process.
        """
        self.matched += 1
        dice = bank.ids.random(f"{self.purpose} {self.matched}")
        times = self.rule.times
        if times is not None and not times.acts(
            self.matched,
            dice=dice.random() if times.chance is not None else 0.0,
            since=bank.clock.now() - moment(self.entry["added"]),
        ):
            return None
        self.acted += 1
        return dice


@dataclass(slots=True)
class ActingRules:
    """The effects that act on one request, each with the dice of its rule."""

    names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # why rules that match do not act
    effects: dict[str, tuple[Effect, Random]] = field(default_factory=dict)

    def before(self, call: Call) -> Reply[Any] | None:
        """Pass scripted behaviour to the domain (`call.script`); returns the reply of an effect that has one."""
        reply: Reply[Any] | None = None
        # A scripted answer may open an SCA, so the script for that one must be set before.
        for effect, _ in sorted(self.effects.values(), key=lambda acting: acting[0].instead):
            instead = effect.before(call) if effect.before is not None else None
            reply = reply or instead
        return reply

    def after(self, response: Response) -> None:
        """Change the answer and its delivery."""
        for effect, dice in self.effects.values():
            if effect.after is not None:
                effect.after(response, dice)


def _unfit(rule: Rule, call: Call) -> Mapping[str, str]:
    """The effects of a rule that cannot act on the payment of a request, each with the reason."""
    product = products.table().get((call.params.get("payment-service", ""), call.params.get("payment-product", "")))
    return {} if product is None else rule.unfit(call.operation.id, product)


def _count(rules: Iterable[_ActiveRule], counters: Mapping[str, Sequence[int]]) -> None:
    """Set the counters of rules, to zero where there are none."""
    for active in rules:
        active.matched, active.acted = counters.get(active.serial, (0, 0))


class RuleSet:
    """The rules in evaluation order, with their counters: of the document `meta/rules`, then of `weather`."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self.rules: list[_ActiveRule] = []
        self._stored: list[_ActiveRule] = []
        self._weather = (bank.settings.weather, self._weather_rules(bank.settings.weather))
        self._by_operation: dict[str, list[_ActiveRule]] = {}  # those that an operation can match
        self._known: dict[str, _ActiveRule] = {}  # by serial; those of changes that may be undone too
        self._additions = count(1)
        RULES.follow(bank.documents, self._follow)
        # after the bank, which follows them since before there were rules, and whose `settings` are then the new ones
        SETTINGS.follow(bank.documents, self._follow_weather)

    def _follow(self, stored: RulesDocument | None) -> None:
        """Use the rules of the document from now on; a rule that was already there keeps its counters."""
        rules: list[_ActiveRule] = []
        for place, entry in enumerate(stored["rules"] if stored is not None else ()):
            active = self._known.get(entry["serial"]) or self._read(place, entry)
            if active is not None:
                self._known[active.serial] = active
                rules.append(active)
        if len(self._known) > 2 * len(rules) + MOST_REMOVED:
            self._known = {active.serial: active for active in rules}
        self._set(rules)

    def _follow_weather(self, _settings: Mapping[str, Any] | None) -> None:
        """Use the rules of the setting from now on."""
        weather, before = self._bank.settings.weather, self._weather
        if weather != before[0]:
            self._bank.documents.undoing(lambda: self._use_weather(before))
            self._use_weather((weather, self._weather_rules(weather)))

    def _use_weather(self, weather: tuple[str, list[_ActiveRule]]) -> None:
        self._weather = weather
        self._set(self._stored)

    def _weather_rules(self, weather: str) -> list[_ActiveRule]:
        if not WEATHER[weather]:
            return []
        from emulator.scenario.rule import Rule

        rules = []
        for place, source in enumerate(WEATHER[weather]):
            entry = self._entry(source, f"weather {place}")
            rules.append(self._active(place, Rule.model_validate(source), entry, setting="weather"))
        return rules

    def _read(self, place: int, entry: RuleEntry) -> _ActiveRule | None:
        """The rule of an entry; None for one that this version cannot read, so that the start does not fail."""
        # Imported on use, as a start without rules is faster without the forms.
        from emulator.bank.validation import validate
        from emulator.scenario.rule import Rule

        rule, _ = validate(Rule, entry["rule"])
        return None if rule is None else self._active(place, rule, entry)

    def _entry(self, source: Mapping[str, Any], serial: str, scenario: str | None = None) -> RuleEntry:
        return {"rule": dict(source), "scenario": scenario, "added": self._bank.clock.stamp(), "serial": serial}

    def _active(self, place: int, rule: Rule, entry: RuleEntry, *, setting: str | None = None) -> _ActiveRule:
        # Each rule has a random stream of its own, independent of how often other rules match.
        return _ActiveRule(rule, entry, entry["serial"], f"rule {place} {rule.name}", setting)

    def _set(self, rules: list[_ActiveRule]) -> None:
        self._stored = rules
        self.rules = [*rules, *self._weather[1]]
        self._by_operation = {}
        given = {active.rule.name for active in self.rules}
        for number, active in enumerate(self.rules, 1):
            place = f"rule {number}"  # a rule without a name gets one from its position that no other rule has
            active.name = active.rule.name or (f"{place} without a name" if place in given else place)

    def match(self, call: Call, signed: bool, earlier: Sequence[MatchedRules]) -> ActingRules | None:
        """The effects that act on a request: of unsigned rules before the signature is checked, of the others after it.

        `earlier`: what acts on it already.
        """
        if not self.rules:
            return None
        operation = call.operation.id
        rules = self._by_operation.get(operation)
        if rules is None:
            rules = [active for active in self.rules if operation in active.rule.when.operations]
            self._by_operation[operation] = rules
        if not rules:
            return None
        from emulator.scenario.matching import Facts

        taken = {kind for one in earlier for kind in one.effects}
        facts = Facts(call.request, call)
        acting = ActingRules()
        for active in rules:
            rule, effects = active.rule, active.rule.then.effects
            other_round = rule.unsigned == signed
            if other_round or taken.issuperset(effects) or not rule.when.fits(facts):
                continue
            unfit = _unfit(rule, call)
            acting.notes += [f"{active.name}: {reason}" for reason in unfit.values()]
            usable = {kind: effect for kind, effect in effects.items() if kind not in unfit}
            if taken.issuperset(usable):  # not counted
                continue
            dice = active.acts(self._bank)
            if dice is None:
                continue
            acting.names.append(active.name)
            for kind, effect in usable.items():
                if kind not in taken:
                    taken.add(kind)
                    acting.effects[kind] = (effect, dice)
        return acting if acting.names or acting.notes else None

    def sources(self) -> list[dict[str, Any]]:
        """The rules in evaluation order, as JSON of the same structure as their YAML."""
        return [dict(active.entry["rule"]) for active in self.rules]

    def counts(self) -> list[dict[str, Any]]:
        """How often each rule has matched and acted since it was added."""
        return [
            {
                "name": active.name,
                "scenario": active.entry["scenario"],
                **({"setting": active.setting} if active.setting else {}),
                "matched": active.matched,
                "acted": active.acted,
                **({"notes": notes} if (notes := active.rule.notes) else {}),
            }
            for active in self.rules
        ]

    def counters(self) -> dict[str, tuple[int, int]]:
        """How often each rule has matched and acted, by its serial."""
        return {active.serial: (active.matched, active.acted) for active in self.rules}

    def count_from(self, counters: Mapping[str, Sequence[int]]) -> None:
        """Continue from `counters` of another process."""
        _count(self.rules, counters)

    def add(self, rules: Iterable[tuple[Rule, Mapping[str, Any]]], *, scenario: str | None = None) -> None:
        """Append rules behind the others, ahead of those of the setting `weather`, with counters at zero.

        Each comes with its JSON, of the same structure as its YAML; `scenario`: the one that adds them.
        """
        change, stored = self._bank.documents.sequence + 1, list(self._stored)
        for rule, source in rules:  # serials that no other rule of this bank has, in any process
            entry = self._entry(source, f"{change}.{next(self._additions)}", scenario)
            stored.append(self._active(len(stored), rule, entry))
        self._store(stored)

    def restart(self) -> None:
        """Set the counters of every rule to zero, in the transaction that restores a snapshot."""
        before = self.rules, self.counters()
        self._bank.documents.undoing(lambda: _count(*before))
        _count(self.rules, {})

    def remove(self, name: str) -> bool:
        """Remove the rules of this name; whether there was one."""
        return self._keep([active for active in self._stored if active.name != name])

    def remove_scenario(self, scenario: str) -> None:
        self._keep([active for active in self._stored if active.entry["scenario"] != scenario])

    def remove_scenarios(self) -> None:
        self._keep([active for active in self._stored if active.entry["scenario"] is None])

    def clear(self) -> None:
        self._keep([])

    def _keep(self, remaining: list[_ActiveRule]) -> bool:
        """Remove all other rules; whether there was one."""
        removes = len(remaining) < len(self._stored)
        if removes:
            self._store(remaining)
        return removes

    def _store(self, rules: list[_ActiveRule]) -> None:
        self._known.update((active.serial, active) for active in rules)
        RULES.write(self._bank.documents, {"id": "rules", "rules": [active.entry for active in rules]})
