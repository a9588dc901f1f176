"""`${name}` in a story: values saved by earlier steps, and `${today}`, `${today+3d}` of bank time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from emulator.bank.problems import Path, guess

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,60}", re.ASCII)
PLACE = re.compile(r"\$\{([^{}]*)\}")
_DAY = re.compile(r"today(?:([+-]\d{1,4})d)?", re.ASCII)
_STEP = re.compile(r"([^.\[\]]+)|\[(-?\d{1,4})\]", re.ASCII)


class Unknown(Exception):
    """No step has saved a name, or an answer has no such member; the argument is a sentence."""


def is_day(name: str) -> bool:
    """Whether the name stands for a date relative to bank time."""
    return _DAY.fullmatch(name) is not None


def names_in(value: Any, path: Path = ()) -> Iterator[tuple[str, Path]]:
    """Every `${name}` in a value, with its path."""
    if isinstance(value, str):
        for name in PLACE.findall(value):
            yield name, path
    elif isinstance(value, dict):
        for member, inner in value.items():
            yield from names_in(inner, (*path, member))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from names_in(inner, (*path, index))


class Variables:
    """The values that a story has saved so far; `today` gives the date of the bank."""

    def __init__(self, today: Callable[[], date], saved: Mapping[str, Any] | None = None) -> None:
        self._saved: dict[str, Any] = dict(saved or {})
        self._today = today

    def save(self, name: str, value: Any) -> None:
        """Save a value; a later step that saves the name again replaces it."""
        self._saved[name] = value

    def fill(self, value: Any) -> Any:
        """A value with every `${name}` replaced; a string of one name only becomes the saved value itself."""
        if isinstance(value, str):
            whole = PLACE.fullmatch(value)
            if whole is not None:
                return self._of(whole[1])
            return PLACE.sub(lambda match: str(self._of(match[1])), value)
        if isinstance(value, dict):
            return {name: self.fill(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.fill(inner) for inner in value]
        return value

    def _of(self, name: str) -> Any:
        if name in self._saved:
            return self._saved[name]
        day = _DAY.fullmatch(name)
        if day is None:
            raise Unknown(f"No step has saved {name!r}{guess(name, self._saved) or '.'}")
        return (self._today() + timedelta(days=int(day[1] or 0))).isoformat()


def member_at(value: Any, path: str) -> Any:
    """The member of an answer at a path such as `transactions.booked[0].transactionId`; raises Unknown."""
    here = value
    for name, index in _STEP.findall(path):
        if index:
            if not isinstance(here, list) or not -len(here) <= int(index) < len(here):
                raise Unknown(f"The answer has no entry [{index}] at {path}.")
            here = here[int(index)]
        elif not isinstance(here, dict) or name not in here:
            near = guess(name, here) if isinstance(here, dict) else ""
            raise Unknown(f"The answer has no member {path}{near or '.'}")
        else:
            here = here[name]
    return here
