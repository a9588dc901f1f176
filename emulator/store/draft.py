"""What TinyDB's own methods see of a table: number -> document, decoded when looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import orjson


class Picture(Mapping[str, Mapping[str, Any]]):
    """A table for reading; keys are numbers as text, as in TinyDB's file."""

    def __init__(self, rows: Mapping[int, bytes]) -> None:
        self._rows = rows

    def __getitem__(self, number: str) -> Mapping[str, Any]:
        document: dict[str, Any] = orjson.loads(self._rows[int(number)])
        return document

    def __iter__(self) -> Iterator[str]:
        return map(str, self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class Draft(MutableMapping[int, Mapping[str, Any]]):
    """A table for changing: what was looked at, set or deleted is held until it is written back as a whole."""

    def __init__(self, rows: Mapping[int, bytes]) -> None:
        self._rows = rows
        self._held: dict[int, Mapping[str, Any] | None] = {}

    def __getitem__(self, number: int) -> Mapping[str, Any]:
        if number not in self._held:
            self._held[number] = orjson.loads(self._rows[number])
        held = self._held[number]
        if held is None:
            raise KeyError(number)
        return held

    def __setitem__(self, number: int, document: Mapping[str, Any]) -> None:
        self._held[number] = document

    def __delitem__(self, number: int) -> None:
        if number not in self:
            raise KeyError(number)
        self._held[number] = None

    def __contains__(self, number: object) -> bool:
        if number in self._held:
            return self._held[number] is not None
        return number in self._rows

    def __iter__(self) -> Iterator[int]:
        known = [number for number in self._rows if number in self]
        return iter(known + [number for number in self._held if number not in self._rows and number in self])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def clear(self) -> None:
        self._held = dict.fromkeys(self._rows)

    def held(self) -> dict[int, Mapping[str, Any] | None]:
        """What to write back: number -> document, None for a deleted one."""
        return self._held
