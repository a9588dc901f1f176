"""What a bank answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


class Headers(Mapping[str, str]):
    """Response headers; names in any case, values of a repeated name joined by a comma."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)
        self._values: dict[str, str] = {}
        for name, value in self.pairs:
            lower = name.lower()
            self._values[lower] = f"{self._values[lower]}, {value}" if lower in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Headers({list(self.pairs)!r})"


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers and the raw body of an answer."""

    status: int
    headers: Headers = field(repr=False)  # a failing test shows the beginning and the end: status and body tell why
    body: bytes

    @property
    def status_code(self) -> int:
        """The status, by the name that other HTTP clients give it."""
        return self.status

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as a JSON value; raise ValueError when it is none."""
        return json.loads(self.body)

    def link(self, name: str) -> str | None:
        """The href of `_links.<name>`, or None."""
        try:
            href = self.json()["_links"][name]["href"]
        except (ValueError, KeyError, TypeError):
            return None
        return href if isinstance(href, str) else None

    @property
    def sca_redirect(self) -> str | None:
        """Where to send the PSU's browser, when SCA is needed (SPEC 2.3)."""
        return self.link("scaRedirect")
