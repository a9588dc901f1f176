"""How a kind of document is declared: which members find it, which members sort it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

Document = dict[str, Any]
"""A JSON object with a text member `id`, unique in its kind."""


class Ordered(NamedTuple):
    """Documents sorted by the member `by` (all text or all int), apart for each text value of the member `group`."""

    by: str
    group: str | None = None


class Kind(NamedTuple):
    """The members that are searched for an equal value, and the named orders.

    `arrival` names an order too, that in which the documents came: it costs nothing to keep.
    """

    indexes: tuple[str, ...] = ()
    ordered: Mapping[str, Ordered] = MappingProxyType({})
    arrival: str | None = None

    def signature(self) -> list[Any]:
        """The declaration as JSON, to tell whether stored indexes still fit."""
        return [sorted(self.indexes), {name: [o.by, o.group] for name, o in sorted(self.ordered.items())}]
