"""A scenario as its file states it, checked and ready (CONTRACT 10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from emulator.scenario.mistakes import Origin

if TYPE_CHECKING:
    from emulator.bank.fixtures.definitions import Additions
    from emulator.scenario.rule import Rule
    from emulator.scenario.step import Step

CURRENT = "current"
SNAPSHOT = "snapshot:"


@dataclass(frozen=True, slots=True)
class Change:
    """A change to what is there: `kind` is account or agreement, `name` what it is called, `members` what changes."""

    kind: str
    name: str
    members: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Start:
    """What the bank starts from: `base` is a fixture, `current` or `snapshot:NAME`."""

    base: str = CURRENT
    clock: datetime | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    add: Additions | None = None
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole scenario; `source` is its JSON, exactly of the YAML's shape, `origin` the file that it stands in."""

    name: str
    summary: str
    start: Start
    rules: tuple[Rule, ...]
    story: tuple[Step, ...]
    source: Mapping[str, Any]
    origin: Origin
