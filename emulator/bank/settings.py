"""The settings of one bank: what `PUT /_emulator/settings`, scenarios and `serve` may change (CONTRACT 9.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from typing import Any

from emulator.bank.errors import BankError, Message


@dataclass(frozen=True, slots=True)
class Settings:
    """What a bank may be told to do differently; the defaults are the sandbox's (CONTRACT 1, 3.1, 5, 6)."""

    profile: str = "documented"  # or lenient: only the headers an operation needs to work
    links: str = "relative"  # or absolute
    trust: str = "any"  # or sandbox-ca
    date_skew: int = 300  # seconds between Date and real time
    sign_responses: bool = False
    pending: str = "filtered"  # or unfiltered: SPEC 8's production rule
    progression: str | dict[str, int] = "time"  # immediate, manual, {"polls": N}
    funds_check: str = "execution"  # or initiation
    calendar: str = "always-open"  # or norway
    straks_limit: str = "500000.00"
    known_issues: bool = False

    def as_document(self) -> dict[str, Any]:
        """All settings by name, as `GET settings` answers them."""
        return asdict(self)

    def beside(self, defaults: Settings) -> dict[str, Any]:
        """The settings that are other than `defaults`."""
        return {name: value for name, value in self.as_document().items() if value != getattr(defaults, name)}


_YES_OR_NO = {"type": "boolean"}
# What each setting takes, as JSON Schema.
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "profile": {"enum": ["documented", "lenient"]},
    "links": {"enum": ["relative", "absolute"]},
    "trust": {"enum": ["any", "sandbox-ca"]},
    "date_skew": {"type": "integer", "minimum": 0, "maximum": 10**9},
    "sign_responses": _YES_OR_NO,
    "pending": {"enum": ["filtered", "unfiltered"]},
    "progression": {
        "anyOf": [
            {"enum": ["time", "immediate", "manual"]},
            {
                "type": "object",
                "properties": {"polls": {"type": "integer", "minimum": 1, "maximum": 1000}},
                "required": ["polls"],
                "additionalProperties": False,
            },
        ]
    },
    "funds_check": {"enum": ["execution", "initiation"]},
    "calendar": {"enum": ["always-open", "norway"]},
    "straks_limit": {"type": "string", "pattern": r"^(?!0+\.00$)[0-9]{1,17}\.[0-9]{2}$"},
    "known_issues": _YES_OR_NO,
}


def _one_of(setting: str) -> Callable[[Any], str | None]:
    names = SCHEMAS[setting]["enum"]
    return lambda value: None if value in names and isinstance(value, str) else f"one of {', '.join(names)}"


def _boolean(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _whole_seconds(value: Any) -> str | None:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**9
    return None if good else "a whole number of seconds, 0 or more"


def _progression(value: Any) -> str | None:
    if value in ("time", "immediate", "manual") and isinstance(value, str):
        return None
    if isinstance(value, Mapping) and set(value) == {"polls"}:
        polls = value["polls"]
        if isinstance(polls, int) and not isinstance(polls, bool) and 1 <= polls <= 1000:
            return None
    return 'time, immediate, manual or {"polls": N} with N from 1 to 1000'


def _krone_amount(value: Any) -> str | None:
    expected = 'an amount in NOK as text, such as "500000.00"'
    if not isinstance(value, str) or len(value) > 20:
        return expected
    whole, _, fraction = value.partition(".")
    digits = whole + fraction
    if not (digits.isascii() and digits.isdigit() and whole and len(fraction) == 2):
        return expected
    return None if Decimal(value) > 0 else expected


CHECKS: dict[str, Callable[[Any], str | None]] = {
    "profile": _one_of("profile"),
    "links": _one_of("links"),
    "trust": _one_of("trust"),
    "date_skew": _whole_seconds,
    "sign_responses": _boolean,
    "pending": _one_of("pending"),
    "progression": _progression,
    "funds_check": _one_of("funds_check"),
    "calendar": _one_of("calendar"),
    "straks_limit": _krone_amount,
    "known_issues": _boolean,
}

SETTING_NAMES = tuple(field.name for field in fields(Settings))


def mistakes(changes: Mapping[str, Any]) -> list[Message]:
    """What is wrong with `changes`: unknown names and values out of range, one message each."""
    found = []
    for name, value in changes.items():
        if name not in CHECKS:
            known = ", ".join(SETTING_NAMES)
            found.append(Message("FORMAT_ERROR", f"There is no setting {name}; there are {known}.", name))
        elif (expected := CHECKS[name](value)) is not None:
            found.append(Message("FORMAT_ERROR", f"The setting {name} takes {expected}.", name))
    return found


def merged(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """`settings` with `changes` laid over them; raises BankError FORMAT_ERROR naming every mistake."""
    wrong = mistakes(changes)
    if wrong:
        raise BankError.several(wrong)
    return replace(settings, **changes)
