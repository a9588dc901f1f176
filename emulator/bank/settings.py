"""The settings of one bank, which `PUT /_emulator/settings`, scenarios and `serve` may change (settings.md).

They are a table and not a model of pydantic, because a bank with stored documents reads its settings before anything
else needs pydantic, whose import would make the start longer. Forms and JSON Schemas are derived from the table.

A setting is a member of `Settings`, declared once: type, default, the values that it takes, what it decides. The domain
reads it as `bank.settings.<name>`; forms, console and manual follow from the declaration. A default that a flag sets is
in `assemble/registry.py`. `tests/api/test_every_member.py` has a row for each setting; `python -m tests.docs.sections`
writes settings.md and the schema of scenarios. A limit is also in consents.md#all-limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from typing import Any, TypeVar

from emulator.bank.errors import BankError, Message
from emulator.bank.formats import YES_OR_NO, Format, matching, one_of, where, whole
from emulator.bank.problems import Problem, unknown, written

Value = TypeVar("Value")

# Rough weather also changes feeds, beside its rules (`scenario/rules`): ids of pending entries may change at booking.
ROUGH_FEED: tuple[Mapping[str, Any], ...] = ({"effect": "new-id", "chance": 0.2},)

_SECONDS = whole(0, 10**9, "of seconds ")

_PACES = ("time", "immediate", "manual")
_POLLS = whole(1, 1000)
_PACE = where(
    f'{", ".join(_PACES)} or {{"polls": N}} with N from 1 to {_POLLS.schema["maximum"]}',
    {
        "anyOf": [
            {"enum": list(_PACES)},
            {
                "type": "object",
                "properties": {"polls": _POLLS.schema},
                "required": ["polls"],
                "additionalProperties": False,
            },
        ]
    },
    lambda value: (
        value in _PACES or (isinstance(value, Mapping) and [*value] == ["polls"] and _POLLS.fits(value["polls"]))
    ),
)
_KRONER = matching(r"(?!0+\.00$)[0-9]{1,17}\.[0-9]{2}", 'an amount in NOK as text, such as "500000.00"')

_DRIFTS = 'a list of effects on the account feed, such as [{"effect": "new-id"}]; [] for a feed that does not drift'


def _feed_problems(value: list[Any]) -> list[Problem]:
    if not value:
        return []
    from emulator.bank import feed  # imports pydantic, which other settings do not need

    return feed.problems(value)


def _feed_schema() -> Mapping[str, Any]:
    from emulator.bank import feed

    return feed.schema()


_FEED = Format(
    _DRIFTS,
    _feed_schema,
    lambda value: None if isinstance(value, list) and not _feed_problems(value) else _DRIFTS,
    _feed_problems,
)


def setting(default: Value, takes: Format, decides: str) -> Value:
    """A member of `Settings`: its default, the values that it takes, and what it decides."""
    return field(default_factory=lambda: copy(default), metadata={"takes": takes, "decides": decides})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a bank; the defaults are the sandbox's."""

    profile: str = setting(
        "documented",
        one_of("documented", "lenient"),
        "How strictly headers and signatures are checked: as documented, or only as far as an operation needs.",
    )
    links: str = setting(
        "relative",
        one_of("relative", "absolute"),
        "The form of links in answers: relative or absolute; scaRedirect is always absolute.",
    )
    trust: str = setting(
        "any",
        one_of("any", "sandbox-ca"),
        "The issuers whose certificates are accepted: any issuer, or the sandbox CA only.",
    )
    date_skew: int = setting(300, _SECONDS, "The most seconds by which Date may differ from real time.")
    sign_responses: bool = setting(False, YES_OR_NO, "Whether the bank signs its answers.")
    pending: str = setting(
        "filtered",
        one_of("filtered", "unfiltered"),
        "Whether dates and limit filter pending transactions too; in production they do not.",
    )
    progression: str | dict[str, int] = setting(
        "time", _PACE, "How approved payments progress: time, immediate, manual, or by reads of the status (polls: N)."
    )
    funds_check: str = setting(
        "execution",
        one_of("execution", "initiation"),
        "When missing money is detected: at execution (ACCP), or at initiation (400 PAYMENT_FAILED).",
    )
    calendar: str = setting(
        "always-open",
        one_of("always-open", "norway"),
        "When payments are executed: on any day and at any hour, or at 14:00 on banking days; straks always at once.",
    )
    straks_limit: str = setting("500000.00", _KRONER, "The largest amount of an instant payment, in NOK.")
    payee_check: str = setting(
        "off",
        one_of("off", "warn", "refuse"),
        "Whether the creditor's name of straks and SEPA is verified: off, warn, or refuse (PAYMENT_FAILED).",
    )
    weather: str = setting(
        "calm",
        one_of("calm", "rough"),
        "Whether the bank is reliable (calm), or answers are lost, late or 503, and ids change (rough).",
    )
    known_issues: bool = setting(
        False,
        YES_OR_NO,
        "Whether a domestic payment cannot be read before it is approved, a known issue of production.",
    )
    conformance: bool = setting(
        True, YES_OR_NO, "Whether the bank checks the behaviour of its TPPs, for the conformance report."
    )
    notifications: bool = setting(
        False, YES_OR_NO, "Whether TPPs that send TPP-Notification-URI are notified of changes of status."
    )
    account_ids: str = setting(
        "same",
        one_of("same", "renewed"),
        "Whether an account keeps its resourceId, or gets another one each time when a consent is given or renewed.",
    )
    feed: list[dict[str, Any]] = setting(
        [], _FEED, "How account feeds change between reads of TPPs; stored transactions and balances stay correct."
    )

    @property
    def drift(self) -> Sequence[Mapping[str, Any]]:
        """The effects that act on account feeds: those of the setting, and those of rough weather."""
        return [*self.feed, *ROUGH_FEED] if self.weather == "rough" else self.feed

    def as_document(self) -> dict[str, Any]:
        """All settings by name, as in the answer to `GET settings`."""
        return asdict(self)

    def differences(self, defaults: Settings) -> dict[str, Any]:
        """The settings that differ from `defaults`."""
        return {name: value for name, value in self.as_document().items() if value != getattr(defaults, name)}


TAKES: Mapping[str, Format] = {member.name: member.metadata["takes"] for member in fields(Settings)}


@cache
def schemas() -> Mapping[str, Mapping[str, Any]]:
    """The JSON Schema of each setting; do not change it."""
    decides = {member.name: member.metadata["decides"] for member in fields(Settings)}
    return {name: {"description": decides[name], **takes.schema} for name, takes in TAKES.items()}


def from_text(name: str, text: str) -> Any:
    """The value of a setting as it is typed: JSON, or else the text itself; of a setting that takes text, text."""
    if polls := re.fullmatch("polls: *([0-9]{1,4})", text):
        return {"polls": int(polls[1])}
    takes = TAKES.get(name)
    return text if takes is not None and takes.schema.get("type") == "string" else json_or_text(text)


def json_or_text(text: str) -> Any:
    """The value of JSON, or else the text itself, which the bank may refuse."""
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def problems_in(changes: Mapping[str, Any]) -> list[Message]:
    """The problems of `changes`: unknown names and invalid values, one message each."""
    problems = []
    for name, value in changes.items():
        takes = TAKES.get(name)
        if takes is None:
            problems.append(Message("FORMAT_ERROR", unknown(name, TAKES, "There is no setting"), name))
        elif takes.problems is not None and isinstance(value, list):
            wrong = takes.problems(value)
            problems += [Message("FORMAT_ERROR", one.text, written((name, *one.path))) for one in wrong]
        elif not takes.fits(value):
            problems.append(Message("FORMAT_ERROR", f"The setting {name} must be {takes.words}.", name))
    return problems


def merged(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """`settings` with `changes`; raises BankError FORMAT_ERROR with every problem."""
    wrong = problems_in(changes)
    if wrong:
        raise BankError.several(wrong)
    return replace(settings, **changes)
