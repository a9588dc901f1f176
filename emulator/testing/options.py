"""The options of a bank for a test: the types of `bank_factory` and its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict, Unpack

from emulator.settings import ConfigurationError, ServeSettings, read


class BankOptions(TypedDict, total=False):
    """The flags of `serve` that apply to a bank in a test, with underscores, and two more.

    `now`: the bank time at which the clock stands (default: the time of the start), a datetime with a zone or a string
    such as `2026-03-02T09:00:00+01:00`; `settings`: settings of the bank, such as `{"progression": "manual"}`.
    `scenario`, `allow_host`, `frame_ancestors` and `allow_notify` (default: 127.0.0.1) may be one or several. Data is
    in memory unless `state` names a directory or `ephemeral` is False.
    """

    fixtures: str
    scenario: str | Path | Sequence[str | Path]
    profile: str
    links: str
    weather: str
    ids: str
    seed: int
    control_token: str
    public_url: str
    allow_host: str | Sequence[str]
    frame_ancestors: str | Sequence[str]
    allow_notify: str | Sequence[str]
    ephemeral: bool
    state: Path
    durability: str
    now: datetime | str
    settings: Mapping[str, Any]


def settings_for(**options: Unpack[BankOptions]) -> ServeSettings:
    """Settings of a bank for one test: by default in memory, on a free port; raises TypeError and ValueError."""
    if unknown := sorted(set(options) - set(BankOptions.__annotations__)):
        raise TypeError(f"a bank for a test takes {', '.join(BankOptions.__annotations__)}, not {unknown[0]}")
    options.setdefault("allow_notify", "127.0.0.1")
    flags = {name: _texts(value) for name, value in options.items() if name not in ("now", "settings")}
    try:
        return read({"port": "0", "ephemeral": str(options.get("state") is None), **flags}, environment={})
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


def _texts(value: object) -> str | list[str] | None:
    """A value as on the command line."""
    if isinstance(value, (list, tuple)):
        return list(map(str, value))
    return None if value is None else str(value)


def moment_of(options: BankOptions) -> datetime | None:
    """The bank time that `options` set; raises ValueError."""
    now = options.get("now")
    at = datetime.fromisoformat(now) if isinstance(now, str) else now
    if at is not None and getattr(at, "tzinfo", None) is None:  # a date has none either
        raise ValueError(f"now requires a time zone, as in 2026-03-02T09:00:00+01:00, not {now}")
    return at


FILTERS = {"operation": str, "status": int, "tpp": str, "payment_id": str, "limit": int}


def filters_for(**filters: Any) -> dict[str, Any]:
    """The filters of `RunningBank.requests`, by parameter name; raises TypeError for one that could match nothing."""
    filters = {{"paymentId": "payment_id"}.get(name, name): value for name, value in filters.items()}
    for name, value in filters.items():
        if name not in FILTERS or not isinstance(value, FILTERS[name] | None):
            allowed = ", ".join(f"{known}: {kind.__name__}" for known, kind in FILTERS.items())
            raise TypeError(f"requests are filtered by {allowed}, not by {name}={value!r}")
    return filters
