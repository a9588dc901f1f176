"""The settings of one bank, which `PUT /_emulator/settings`, scenarios and `serve` may change (settings.md).

They are a table and not a model of pydantic, because a bank with stored documents reads its settings before anything
else needs pydantic, whose import would make the start longer. Forms and JSON Schemas are derived from the table.

A setting is a member of `Settings`, a row of `TAKES` and a member of `documents.SettingsDocument`; forms, console and
manual follow from these. A default that a flag sets is in `assemble/composition.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, cast

from emulator.bank.documents import SettingsDocument
from emulator.bank.errors import BankError, Message
from emulator.bank.formats import YES_OR_NO, Format, matching, one_of, where, whole
from emulator.bank.problems import Problem, unknown, written

# Rough weather also changes feeds, beside its rules (`scenario/weather`): ids of pending entries may change at booking.
ROUGH_FEED: tuple[Mapping[str, Any], ...] = ({"effect": "new-id", "chance": 0.2},)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a bank; the defaults are the sandbox's."""

    profile: str = "documented"
    links: str = "relative"
    trust: str = "any"
    date_skew: int = 300
    sign_responses: bool = False
    pending: str = "filtered"
    progression: str | dict[str, int] = "time"
    funds_check: str = "execution"
    calendar: str = "always-open"
    straks_limit: str = "500000.00"
    payee_check: str = "off"
    weather: str = "calm"
    known_issues: bool = False
    conformance: bool = True
    notifications: bool = False
    account_ids: str = "same"
    feed: list[dict[str, Any]] = field(default_factory=list)

    @property
    def drift(self) -> Sequence[Mapping[str, Any]]:
        """The effects that act on account feeds: those of the setting, and those of rough weather."""
        return [*self.feed, *ROUGH_FEED] if self.weather == "rough" else self.feed

    def as_document(self) -> dict[str, Any]:
        """All settings by name, as in the answer to `GET settings`."""
        return asdict(self)

    def differences(self, defaults: Settings) -> SettingsDocument:
        """The settings that differ from `defaults`."""
        changed = {name: value for name, value in self.as_document().items() if value != getattr(defaults, name)}
        return cast(SettingsDocument, changed)


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

TAKES: Mapping[str, Format] = {
    "profile": one_of("documented", "lenient").deciding(
        "How strictly headers and signatures are checked: as documented, or only as far as an operation needs."
    ),
    "links": one_of("relative", "absolute").deciding(
        "The form of links in answers: relative or absolute; scaRedirect is always absolute."
    ),
    "trust": one_of("any", "sandbox-ca").deciding(
        "The issuers whose certificates are accepted: any issuer, or the sandbox CA only."
    ),
    "date_skew": _SECONDS.deciding("The most seconds by which Date may differ from real time."),
    "sign_responses": YES_OR_NO.deciding("Whether the bank signs its answers."),
    "pending": one_of("filtered", "unfiltered").deciding(
        "Whether dates and limit filter pending transactions too; in production they do not."
    ),
    "progression": _PACE.deciding(
        "How approved payments progress: time, immediate, manual, or by reads of the status (polls: N)."
    ),
    "funds_check": one_of("execution", "initiation").deciding(
        "When missing money is detected: at execution (ACCP), or at initiation (400 PAYMENT_FAILED)."
    ),
    "calendar": one_of("always-open", "norway").deciding(
        "When payments are executed: on any day and at any hour, or at 14:00 on banking days; straks always at once."
    ),
    "straks_limit": _KRONER.deciding("The largest amount of an instant payment, in NOK."),
    "payee_check": one_of("off", "warn", "refuse").deciding(
        "Whether the creditor's name of straks and SEPA is verified: off, warn, or refuse (PAYMENT_FAILED)."
    ),
    "weather": one_of("calm", "rough").deciding(
        "Whether the bank is reliable (calm), or answers are lost, late or 503, and ids change (rough)."
    ),
    "known_issues": YES_OR_NO.deciding(
        "Whether a domestic payment cannot be read before it is approved, a known issue of production."
    ),
    "conformance": YES_OR_NO.deciding("Whether the bank checks the behaviour of its TPPs, for the conformance report."),
    "notifications": YES_OR_NO.deciding(
        "Whether TPPs that send TPP-Notification-URI are notified of changes of status."
    ),
    "account_ids": one_of("same", "renewed").deciding(
        "Whether an account keeps its resourceId, or gets another one each time when a consent is given or renewed."
    ),
    "feed": _FEED.deciding(
        "How account feeds change between reads of TPPs; stored transactions and balances stay correct."
    ),
}


@cache
def schemas() -> Mapping[str, Mapping[str, Any]]:
    """The JSON Schema of each setting; do not change it."""
    return {name: {"description": takes.decides, **takes.schema} for name, takes in TAKES.items()}


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
