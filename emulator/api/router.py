"""Finds the row of a table for a method and a path: for the TPP interface, the control interface and the console.

The path of a row consists of fixed segments and of parameters in braces, `/v1/accounts/{id}/balances`. A fixed segment
takes precedence over a parameter; a parameter matches any non-empty text, or only the values that are allowed. The
row for GET also answers HEAD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from emulator.api.query import unescaped
from emulator.bank.errors import BankError

_LONGEST_CACHED = 256  # characters of a path whose route is cached, or that is compared with others
_SIMILAR = 0.75  # of 1


class RoutedRow(Protocol):
    """The members of a row that the router uses."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...


AnyRow = TypeVar("AnyRow", bound=RoutedRow)
Route = TypeVar("Route")


@dataclass(slots=True)
class _Node(Generic[AnyRow]):
    fixed: dict[str, _Node[AnyRow]] = field(default_factory=dict)
    named: list[tuple[str, tuple[str, ...] | None, _Node[AnyRow]]] = field(default_factory=list)
    methods: dict[str, AnyRow] = field(default_factory=dict)


def split_target(target: str) -> tuple[str, str]:
    """Path and query of a request target as sent; an absolute-form target loses scheme and authority."""
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        _, slashes, rest = path.partition("://")
        path = "/" + rest.partition("/")[2] if slashes else path
    return path, query


class Router(Generic[AnyRow, Route]):
    """The rows as a tree of segments, built once.

    `read` makes a route from a row and its decoded path parameters; it must not depend on anything else, because routes
    are cached. `hint` ends the text about an unknown path; `values`: the allowed values of parameters, by their names.
    """

    def __init__(
        self,
        rows: Iterable[AnyRow],
        read: Callable[[AnyRow, Mapping[str, str]], Route],
        *,
        hint: str = "",
        values: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self._root: _Node[AnyRow] = _Node()
        self._read = read
        self._hint = hint
        self._values = values
        self._cached = lru_cache(maxsize=1024)(self._search)
        for row in rows:
            self._add(row)

    def _add(self, row: AnyRow) -> None:
        node = self._root
        for segment in row.path.removeprefix("/").split("/"):
            node = self._child(node, segment)
        if row.method in node.methods:
            raise ValueError(f"two rows share the address {row.method} {row.path}")
        node.methods[row.method] = row

    def _child(self, node: _Node[AnyRow], segment: str) -> _Node[AnyRow]:
        if not segment.startswith("{"):
            return node.fixed.setdefault(segment, _Node())
        name = segment[1:-1]
        for other, _, child in node.named:
            if other == name:
                return child
        child = _Node()
        node.named.append((name, self._values.get(name), child))
        return child

    def find(self, method: str, path: str, prefix: str = "") -> Route:
        """The route of a request; NOT_FOUND (404) or MethodRefused (405), whose texts have `prefix` before paths."""
        try:
            return self._cached(method, path) if len(path) <= _LONGEST_CACHED else self._search(method, path)
        except _NoRoute:
            methods, params = self._lookup(path, prefix)
            raise MethodRefused(_allowed(methods), prefix + path, params) from None

    def methods(self, path: str, prefix: str = "") -> list[str]:
        """The methods of a path, in alphabetical order; NOT_FOUND for an unknown path."""
        return _allowed(self._lookup(path, prefix)[0])

    def _search(self, method: str, path: str) -> Route:
        methods, params = self._match(path) or ({}, {})
        row = methods.get("GET" if method == "HEAD" else method)
        if row is None:
            raise _NoRoute
        return self._read(row, params)

    def _match(self, path: str) -> tuple[Mapping[str, AnyRow], Mapping[str, str]] | None:
        return self._walk(self._root, path[1:].split("/"), 0, {})

    def _lookup(self, path: str, prefix: str) -> tuple[Mapping[str, AnyRow], Mapping[str, str]]:
        match = self._match(path)
        if match is not None:
            return match
        near = self._near(path) if len(path) <= _LONGEST_CACHED else None
        ending = f"{self._hint}." if near is None else f"; did you mean {prefix}{near}?"
        if near is not None and self._match(near) is None:
            ending = ": % must be followed by two hex digits, and the result must be UTF-8."
        raise BankError("NOT_FOUND", f"There is no address {prefix}{path[:200]}{ending}")

    def _near(self, path: str) -> str | None:
        """An address that is probably meant: without empty segments, with the base address once, or spelt right."""
        segments = [segment for segment in path.split("/") if segment]
        starts = [at for at, segment in enumerate(segments) if segment in self._root.fixed]
        readings = (segments, segments[starts[-1] :] if starts else [*list(self._root.fixed)[:1], *segments])
        for meant in readings if segments else ():
            spelt = self._spelt(meant)
            if spelt is not None:
                return "/" + "/".join(spelt)
        return None

    def _spelt(self, segments: Iterable[str]) -> list[str] | None:
        """The segments of the address that is most like these; None if none is similar."""
        node, spelt = self._root, []
        for segment in segments:
            children = dict(node.fixed)
            free: _Node[AnyRow] | None = None
            for _, allowed, child in node.named:
                children |= dict.fromkeys(allowed or (), child)
                free = child if allowed is None else free
            if segment not in children:
                segment = next(iter(get_close_matches(segment, children, n=1, cutoff=_SIMILAR)), segment)
            following = children.get(segment, free)
            if following is None:
                return None
            node = following
            spelt.append(segment)
        return spelt if node.methods else None

    def _walk(
        self, node: _Node[AnyRow], segments: list[str], at: int, params: Mapping[str, str]
    ) -> tuple[Mapping[str, AnyRow], Mapping[str, str]] | None:
        if at == len(segments):
            return (node.methods, params) if node.methods else None
        raw = segments[at]
        fixed = node.fixed.get(raw)
        if fixed is not None:
            match = self._walk(fixed, segments, at + 1, params)
            if match is not None:
                return match
        value = unescaped(raw)
        if not value:
            return None
        for name, allowed, child in node.named:
            if allowed is None or value in allowed:
                match = self._walk(child, segments, at + 1, {**params, name: value})
                if match is not None:
                    return match
        return None


def _allowed(methods: Iterable[str]) -> list[str]:
    return sorted({*methods, "OPTIONS", *(["HEAD"] if "GET" in methods else [])})


class _NoRoute(Exception):
    """There is no row; the text of the refusal depends on the prefix, and the cache does not."""


class MethodRefused(BankError):
    """405: the address exists, the method does not; its header Allow lists others. `params` are in the path."""

    def __init__(self, allowed: list[str], path: str, params: Mapping[str, str]) -> None:
        listed = ", ".join(allowed)
        super().__init__("BAD_REQUEST", f"{path[:200]} allows {listed}.", status=405, headers=[("Allow", listed)])
        self.params = params
