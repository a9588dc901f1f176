"""How a kind of document is declared: its name, the members that find its documents, the members that sort them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

Document = dict[str, Any]
"""A JSON object with a text member `id`, unique in its kind."""

D = TypeVar("D", bound=Mapping[str, Any])
"""The form of a kind's documents, best a TypedDict."""


class Ordered(NamedTuple):
    """Documents sorted by the member `by` (all text or all int), apart for each text value of the member `group`."""

    by: str
    group: str | None = None


class Kind(Generic[D]):
    """A kind of document: `indexes` are the members searched for an equal value, `ordered` the named orders.

    `arrival` names a further order, that in which the documents were inserted; it costs nothing. A kind is declared
    once and passed to every method of the store; two kinds are equal only if they are the same object.
    """

    __slots__ = ("arrival", "indexes", "name", "ordered")

    def __init__(
        self,
        name: str,
        *,
        indexes: tuple[str, ...] = (),
        ordered: Mapping[str, Ordered] = MappingProxyType({}),
        arrival: str | None = None,
    ) -> None:
        self.name = name
        self.indexes = indexes
        self.ordered = ordered
        self.arrival = arrival

    def __repr__(self) -> str:
        return f"Kind({self.name!r})"

    def signature(self) -> list[Any]:
        """The declaration as JSON, to tell whether stored indexes still fit."""
        return [sorted(self.indexes), {name: [o.by, o.group] for name, o in sorted(self.ordered.items())}]


def by_name(kinds: Iterable[Kind[Any]]) -> dict[str, Kind[Any]]:
    """Name -> kind; raises ValueError for a name that appears more than once."""
    named: dict[str, Kind[Any]] = {}
    for kind in kinds:
        if named.setdefault(kind.name, kind) is not kind:
            raise ValueError(f"two kinds have the name {kind.name}")
    return named
