"""Every ready scenario plays green, and turns red when what it is about is taken out."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from emulator.assemble.composition import registry_for
from emulator.bank.clock import real_now
from emulator.bank.settings import Settings
from emulator.ca import CertificateAuthority
from emulator.scenario import loader
from emulator.scenario.model import scenario_schema
from emulator.scenario.player import play
from emulator.settings import ServeSettings
from tests.scenarios.conftest import Play

LIBRARY = loader.library()
SOURCES = {name: dict(loader.named(name).source) for name in LIBRARY}


def inside_where_sent(name: str, *more: Any, id: str | None = None) -> Any:
    """A story of notifications is told where they are sent, in the bank's own process."""
    return pytest.param(name, *more, id=id, marks=[pytest.mark.inside] if name.startswith("notifications-") else [])


@pytest.mark.parametrize("name", [inside_where_sent(name) for name in LIBRARY])
def test_the_story_plays_green(name: str, stage_play: Play) -> None:
    played = stage_play(SOURCES[name])
    assert played.passed, json.dumps([step.as_json() for step in played.steps if step.differences], indent=2)
    assert len(played.steps) == len(SOURCES[name]["story"])


def test_a_story_that_expects_an_address_plays_where_links_are_absolute() -> None:
    registry = registry_for(ServeSettings(ephemeral=True, links="absolute"), CertificateAuthority(None, clock=real_now))
    expecting = [name for name in LIBRARY if '"href"' in json.dumps(SOURCES[name]["story"])]
    assert "account-ids-renewed" in expecting
    assert [name for name in expecting if not play(loader.named(name), registry.transport()).passed] == []


def test_each_says_what_it_shows_and_starts_from_the_same_state_every_time() -> None:
    for name, source in SOURCES.items():
        assert source["scenario"] == name
        assert source["summary"].endswith("."), name
        start = source.get("story_start", source["start"])
        assert start["from"] == "known-state", name
        assert "clock" in start, name


def test_there_are_at_least_twenty() -> None:
    assert len(LIBRARY) >= 20


def test_the_schema_in_the_folder_is_the_one_the_bank_publishes() -> None:
    file = next(iter(LIBRARY.values())).with_name("scenario.schema.json")
    assert json.loads(file.read_text()) == scenario_schema()


def mutations(source: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The scenario without one of its rules or changes, or without what is special about a request of its story."""
    for index, rule in enumerate(source.get("rules", [])):
        yield f"rule {rule['name']}", without(source, "rules", index)
    for index, effect in enumerate(source["start"].get("feed", [])):
        yield f"effect {effect['effect']}", without(source, "start", "feed", index)
    for index, change in enumerate(source["start"].get("change", [])):
        yield f"change {', '.join(change)}", without(source, "start", "change", index)
    for name in source["start"].get("settings", {}):
        if source["start"]["settings"][name] != Settings().as_document()[name]:
            yield f"setting {name}", without(source, "start", "settings", name)
    for index, step in enumerate(source["story"]):
        if "tamper" in step:
            yield f"tampering {index + 1}", without(source, "story", index, "tamper")
        if isinstance(step.get("as", {}).get("tpp"), dict):
            yield f"certificate {index + 1}", without(source, "story", index, "as")


def without(source: Mapping[str, Any], *path: Any) -> dict[str, Any]:
    changed = copy.deepcopy(dict(source))
    here: Any = changed
    for name in path[:-1]:
        here = here[name]
    del here[path[-1]]
    return changed


CASES = [(name, what, mutant) for name in LIBRARY for what, mutant in mutations(SOURCES[name])]
# Some stories show how the same comes about by itself; that the rule or change does it to anybody is shown in
# tests/api/test_control_ready_scenarios.py. A bank that is down does not look at a signature.
MAKES_NO_DIFFERENCE = {
    ("consent-expired", "change consents"),
    ("consent-revoked", "change consents"),
    ("expired-certificate", "rule the certificate has expired"),
    ("late-booking", "rule booked days later"),
    ("moved-by-cut-off", "rule moved to the next day"),
    ("never-enough-money", "setting calendar"),
    ("quota-used-up", "change quotas"),
    ("session-over", "change sessions"),
    ("tampered-request", "rule changed on the way"),
    ("bank-down", "tampering 2"),
}


@pytest.mark.parametrize("name, what, mutant", [inside_where_sent(*case, id=f"{case[0]}: {case[1]}") for case in CASES])
def test_it_turns_red_without_what_it_is_about(name: str, what: str, mutant: dict[str, Any], stage_play: Play) -> None:
    assert stage_play(mutant).passed is ((name, what) in MAKES_NO_DIFFERENCE)


def test_every_scenario_has_something_to_take_out() -> None:
    without_parts = {"accept-fix-after", "accept-fix-before", "basket-with-bulk", "duplicate-refused", "first-contact"}
    assert {name for name, _, _ in CASES} | without_parts == set(LIBRARY)
