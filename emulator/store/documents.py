"""The documents of a bank as the rules of the domain, its interfaces and scenarios see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

from emulator.store.image import Image
from emulator.store.index import Value
from emulator.store.kinds import D, Document, Kind
from emulator.store.log import Event
from emulator.store.table import DocumentTable

Key = TypeVar("Key")
Cached = TypeVar("Cached")


class DependentCache(Generic[Key, Cached]):
    """Values by key, all forgotten at any change in the tables they were worked out from, and when there are many.

    It lives as long as the tables do.
    """

    def __init__(self, tables: Iterable[DocumentTable], *, most: int = 1024) -> None:
        self._most = most
        self._values: dict[Key, Cached] = {}
        for table in tables:
            table.dependants.append(self._forget)

    def _forget(self) -> None:
        # not cleared: what is being worked out while something changes goes with the old ones
        self._values = {}

    def values(self) -> dict[Key, Cached]:
        """What is still true, to look up and to add to; whoever takes a value must not change it."""
        if len(self._values) >= self._most:
            self._forget()
        return self._values


class Documents(Protocol):
    """All that the rooms above the store may do with documents; `Store` is what does it.

    Answers are fresh copies; KeyError for a kind that is not declared.
    """

    @property
    def sequence(self) -> int:
        """The number of the last change; it grows for ever."""
        ...

    # Reading

    def get(self, kind: Kind[D], identity: str) -> D | None: ...
    def text(self, kind: Kind[Any], identity: str) -> bytes | None: ...
    def exists(self, kind: Kind[Any], identity: str) -> bool: ...
    def content(self) -> object:
        """An object that is another one after the whole content was replaced (a reset) or discarded."""
        ...

    def all(self, kind: Kind[D]) -> Iterator[D]: ...
    def find(
        self, kind: Kind[D], /, *, limit: int | None = None, newest_first: bool = False, **equals: Value | None
    ) -> list[D]: ...
    def first(self, kind: Kind[D], /, **equals: Value | None) -> D | None: ...
    def count(self, kind: Kind[Any], /, **equals: Value | None) -> int: ...
    def range(
        self,
        kind: Kind[D],
        order: str,
        *,
        group: str | None = None,
        low: Value | None = None,
        high: Value | None = None,
        reverse: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[D]: ...
    def range_texts(
        self,
        kind: Kind[Any],
        order: str,
        *,
        group: str | None = None,
        low: Value | None = None,
        high: Value | None = None,
        reverse: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[bytes]: ...
    def range_count(
        self,
        kind: Kind[Any],
        order: str,
        *,
        group: str | None = None,
        low: Value | None = None,
        high: Value | None = None,
    ) -> int: ...
    def range_ids(self, kind: Kind[Any], order: str, *, group: str | None = None) -> list[str]: ...
    def ids_at(self, kind: Kind[Any], order: str, by: Value) -> list[str]: ...
    def first_key(self, kind: Kind[Any], order: str) -> Value | None: ...
    def dump(self) -> dict[str, list[Document]]: ...
    def json(self) -> bytes: ...

    # Changing

    def put(self, kind: Kind[D], document: D) -> None: ...
    def delete(self, kind: Kind[Any], identity: str) -> bool: ...
    def delete_several(self, kind: Kind[Any], identities: Iterable[str]) -> int: ...
    def transaction(self) -> AbstractContextManager[None]: ...
    def at_once(self) -> AbstractContextManager[None]: ...
    def image(self) -> Image: ...
    def restore(self, image: Image) -> None: ...

    # Following what changes

    def publish(self, event: Event) -> None: ...
    def listen(self, listener: Callable[[Event], None]) -> None: ...
    def follow(self, kind: Kind[Any], follower: Callable[[], None]) -> None: ...
    def dependent_cache(self, *kinds: Kind[Any]) -> DependentCache[Any, Any]: ...
