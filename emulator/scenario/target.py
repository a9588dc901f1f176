"""Bringing a scenario's start and rules about, all or nothing (CONTRACT 9.5, 10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from emulator.api.log import RequestLog
from emulator.bank import fixtures
from emulator.bank.accounts import ledger
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time
from emulator.bank.customers import people
from emulator.bank.documents import Account, Agreement
from emulator.bank.errors import BankError, counted
from emulator.bank.fixtures import Fixture
from emulator.bank.fixtures.entries import DefinitionError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CONSENT, CUSTOMER, PAYMENT, SCENARIO, SESSION
from emulator.bank.money import plain, quantum
from emulator.bank.payment import progression
from emulator.bank.problems import Path, Problem
from emulator.bank.snapshots import Snapshots
from emulator.scenario.problems import Origin
from emulator.scenario.rules import AddedRule, RuleSet

if TYPE_CHECKING:
    from emulator.scenario.model import Scenario
    from emulator.scenario.start import AccountChange, AgreementChange, Start

SNAPSHOT = "snapshot:"


@dataclass(frozen=True, slots=True)
class ScenarioTarget:
    """A bank with all that a scenario changes: documents, clock, settings, rules, request log, snapshots."""

    bank: Bank
    rules: RuleSet
    log: RequestLog
    snapshots: Snapshots


class _Misfit(Exception):
    """What a scenario asks of this bank cannot be: the part at fault and a sentence."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(text)
        self.path = path
        self.text = text


def reset(scenario_target: ScenarioTarget, fixture: str | Fixture, scenario: Scenario | None = None) -> None:
    """Reset the bank: documents, clock, settings, rules, request log (CONTRACT 9.1); snapshots stay (assumed).

    Raises ScenarioRefused for a scenario that does not fit the bank, and then nothing has changed.
    """
    with _all_or_nothing(scenario_target, scenario):
        fixtures.reset(scenario_target.bank, fixture)
        if scenario is not None:
            _perform(scenario, scenario_target)
        progression.run_due(scenario_target.bank)
    scenario_target.log.clear()
    _publish(scenario_target.bank, "reset", scenario_target.bank.name, "made anew")


def apply(scenario: Scenario, scenario_target: ScenarioTarget) -> dict[str, Any]:
    """Start the bank as the scenario says and add its rules: `{scenario, reset, clock, rules, settings}` as done.

    Raises ScenarioRefused, and then nothing has changed. Its rules are asked after those that are there; rules of an
    earlier application of the scenario are replaced (CONTRACT 14).
    """
    _refuse_play_only(scenario)
    bank = scenario_target.bank
    with _all_or_nothing(scenario_target, scenario):
        _perform(scenario, scenario_target)
        progression.run_due(bank)
    if scenario.start.base.startswith(SNAPSHOT):
        scenario_target.rules.restart()
    if scenario.start.resets:
        scenario_target.log.clear()
    _publish(bank, "scenario", scenario.name, "applied")
    return _done(scenario, bank)


def _refuse_play_only(scenario: Scenario) -> None:
    if scenario.play_only:
        name = scenario.name
        text = f"{name} tells a story and changes nothing by itself; play it: bank-emulator scenario play {name}"
        raise scenario.origin.refused([Problem(("play",), f"{text}.")])


def _done(scenario: Scenario, bank: Bank) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "reset": scenario.start.resets,
        "clock": {"now": date_time(bank.clock.now()), "mode": bank.clock.mode},
        "rules": len(scenario.rules),
        "settings": dict(scenario.start.settings),
    }


_COUNTED = (
    (CUSTOMER, "customer"),
    (ACCOUNT, "account"),
    (SESSION, "session"),
    (CONSENT, "consent"),
    (PAYMENT, "payment"),
)


class _Previewed(Exception):
    """Ends the transaction of a preview, so that nothing stays."""


def preview(scenario: Scenario, scenario_target: ScenarioTarget) -> dict[str, Any]:
    """What `apply` would answer, and `lost`: what of the bank would be lost. Nothing is changed; ScenarioRefused."""
    _refuse_play_only(scenario)
    bank = scenario_target.bank
    lost = losses(scenario, bank)
    done: dict[str, Any] = {}
    try:
        with _all_or_nothing(scenario_target, scenario):
            _perform(scenario, scenario_target)
            done = _done(scenario, bank)
            raise _Previewed
    except _Previewed:
        return {**done, "lost": lost}


def losses(scenario: Scenario, bank: Bank) -> list[str]:
    """What of the bank applying the scenario would replace, one phrase each; empty where nothing is lost."""
    start, lost = scenario.start, []
    if start.resets:
        for kind, one in _COUNTED:
            number = bank.documents.count(kind)
            lost += [counted(number, one)] if number else []
        lost += ["the rules", "the settings", "the request log"]
    now = date_time(bank.clock.now())
    if start.clock is not None:
        lost.append(f"the clock ({now}, {bank.clock.mode}), which then stands still at {date_time(start.clock)}")
    elif start.resets:
        lost.append(f"the clock ({now}, {bank.clock.mode})")
    return lost


@contextmanager
def _all_or_nothing(scenario_target: ScenarioTarget, scenario: Scenario | None) -> Iterator[None]:
    """One transaction; what the bank finds wrong is told as a mistake of the scenario."""
    try:
        with scenario_target.bank.documents.transaction():
            yield
    except _Misfit as misfit:
        origin = scenario.origin if scenario is not None else Origin("scenario")
        raise origin.refused([Problem(misfit.path, misfit.text)]) from None


def _perform(scenario: Scenario, scenario_target: ScenarioTarget) -> None:
    _begin(scenario.start, scenario_target)
    scenario_target.rules.remove_scenario(scenario.name)
    scenario_target.rules.add(
        AddedRule(rule, source, scenario.name)
        for rule, source in zip(scenario.rules, scenario.rule_sources, strict=True)
    )
    SCENARIO.write(scenario_target.bank.documents, {"id": "scenario", "source": dict(scenario.source)})


def applied(bank: Bank) -> dict[str, Any] | None:
    """The scenario that was applied last, as JSON of exactly the YAML's shape."""
    kept = SCENARIO.read(bank.documents)
    return None if kept is None else kept["source"]


def withdraw(scenario_target: ScenarioTarget) -> None:
    """Forget the applied scenario with its rules, and what earlier ones have left of theirs.

    What it changed stays, and so do rules that came by themselves (assumed).
    """
    source = applied(scenario_target.bank)
    if source is not None:
        with scenario_target.bank.documents.transaction():
            SCENARIO.delete(scenario_target.bank.documents)
            scenario_target.rules.remove_scenarios()
        _publish(scenario_target.bank, "scenario", source["scenario"], "withdrawn")


def _publish(bank: Bank, kind: str, identity: str, status: str) -> None:
    bank.publish({"type": kind, "id": identity, "status": status, "at": bank.clock.stamp()})


def _begin(start: Start, scenario_target: ScenarioTarget) -> None:
    # The forms of changes are imported where there is a scenario: a start without one is quicker.
    from emulator.scenario.start import AccountChange

    bank = scenario_target.bank
    _base(start, scenario_target)
    if start.settings:
        bank.change_settings(start.settings)
    if start.add is not None:
        try:
            fixtures.add(bank, start.add)
        except DefinitionError as error:
            raise _Misfit(("start", "add", *error.path), error.text) from None
    for index, change in enumerate(start.change):
        path: Path = ("start", "change", index)
        if isinstance(change, AccountChange):
            _change_account(bank, change, path)
        else:
            _change_agreement(bank, change, path)


def _base(start: Start, scenario_target: ScenarioTarget) -> None:
    """Documents and clock; only a start from elsewhere may set the clock back (CONTRACT 13)."""
    bank = scenario_target.bank
    if not start.resets:
        if start.clock is not None and start.clock < bank.clock.now():
            standing = date_time(bank.clock.now())
            text = f"Bank time is {standing} already; only a start from a fixture or a snapshot sets it back."
            raise _Misfit(("start", "clock"), text)
    elif start.base.startswith(SNAPSHOT):
        try:
            scenario_target.snapshots.restore(bank, start.base.removeprefix(SNAPSHOT))
        except BankError as error:
            raise _Misfit(("start", "from"), error.messages[0].text) from None
    else:
        fixtures.reset(bank, start.base, now=start.clock, mode=None if start.clock is None else "frozen")
        return
    if start.clock is not None:
        bank.clock.set(now=start.clock, mode="frozen")


def _amount(text: str, currency: str, path: Path) -> Decimal:
    amount = Decimal(text)
    if amount != amount.quantize(quantum(currency)):
        raise _Misfit(path, f"{text} has more decimals than {currency}.")
    return amount


def _change_account(bank: Bank, change: AccountChange, path: Path) -> None:
    account = find_account(bank, change.account)
    if account is None:
        text = f"There is no account {change.account}; an IBAN, BBAN or resourceId was expected."
        raise _Misfit((*path, "account"), text)
    values = change.members()
    balance = values.pop("balance", None)
    if "creditLine" in values:
        line = _amount(values["creditLine"], account["currency"], (*path, "creditLine"))
        values["creditLine"] = plain(line, account["currency"])
    bank.documents.put(ACCOUNT, cast(Account, {**account, **values}))
    if balance is not None:
        ledger.restate(bank, account["id"], _amount(balance, account["currency"], (*path, "balance")))


def find_account(bank: Bank, name: str) -> Account | None:
    """The account of this IBAN, BBAN or resourceId."""
    documents = bank.documents
    by_number = documents.first(ACCOUNT, iban=name) or documents.first(ACCOUNT, bban=name)
    return by_number or documents.get(ACCOUNT, name)


def _change_agreement(bank: Bank, change: AgreementChange, path: Path) -> None:
    named = [
        agreement
        for agreement in bank.documents.all(AGREEMENT)
        if change.agreement in (agreement["id"], agreement["name"], agreement.get("organisationNumber"))
    ]
    if len(named) != 1:
        there_is = "There is no agreement" if not named else f"There are {len(named)} agreements called"
        text = f"{there_is} {change.agreement}; its name or psuCorporateId was expected."
        raise _Misfit((*path, "agreement"), text)
    agreement = cast(Agreement, {**named[0], **change.members()})
    _check_persons(bank, agreement["persons"], change.members(), path)
    if agreement["signatures"] > len(agreement["persons"]):
        raise _Misfit((*path, "signatures"), "Two signatures need two persons.")
    bank.documents.put(AGREEMENT, agreement)


def _check_persons(bank: Bank, persons: Sequence[str], changed: Mapping[str, Any], path: Path) -> None:
    for index, person in enumerate(persons if "persons" in changed else ()):
        if people.person(bank, person) is None:
            raise _Misfit((*path, "persons", index), f"The bank knows nobody with the number {person}.")
