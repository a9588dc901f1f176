"""Which operation a method and path mean, read from the operation table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from emulator.api.operation import Operation
from emulator.api.query import unescaped
from emulator.api.route import Route
from emulator.bank.errors import BankError

_LONGEST_KNOWN = 256  # characters of a path that is remembered


@dataclass(slots=True)
class _Node:
    fixed: dict[str, _Node] = field(default_factory=dict)
    named: list[tuple[str, tuple[str, ...] | None, _Node]] = field(default_factory=list)
    methods: dict[str, Operation] = field(default_factory=dict)


def split_target(target: str) -> tuple[str, str]:
    """Path and query of a request target as sent; an absolute-form target loses scheme and authority."""
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        _, slashes, rest = path.partition("://")
        path = "/" + rest.partition("/")[2] if slashes else path
    return path, query


class Router:
    """Routes built once from the table; a fixed segment beats a parameter."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._root = _Node()
        self._known = lru_cache(maxsize=1024)(self._search)  # a TPP asks for the same things again and again
        for operation in operations:
            self._add(operation)

    def _add(self, operation: Operation) -> None:
        node = self._root
        for segment in operation.path.strip("/").split("/"):
            node = self._child(node, segment, operation)
        if operation.method in node.methods:
            raise ValueError(f"{operation.id} and {node.methods[operation.method].id} share one address")
        node.methods[operation.method] = operation

    def _child(self, node: _Node, segment: str, operation: Operation) -> _Node:
        if not segment.startswith("{"):
            return node.fixed.setdefault(segment, _Node())
        name = segment[1:-1]
        values = operation.values.get(name)
        for known, allowed, child in node.named:
            if allowed == values and known == name:
                return child
        child = _Node()
        node.named.append((name, values, child))
        return child

    def find(self, method: str, path: str) -> Route:
        """The operation with its decoded path parameters; NOT_FOUND (404) or BAD_REQUEST (405)."""
        return self._known(method, path) if len(path) <= _LONGEST_KNOWN else self._search(method, path)

    def _search(self, method: str, path: str) -> Route:
        if not path.startswith("/"):
            raise BankError("NOT_FOUND", "There is no such address.")
        segments = path[1:].split("/")
        found = self._straight(segments) or self._walk(self._root, segments, 0, {})
        if found is None:
            raise BankError("NOT_FOUND", f"There is no address {path[:200]}.")
        methods, params = found
        operation = methods.get(method)
        if operation is None:
            raise MethodRefused(sorted(methods), path)
        return Route.of(operation, params)

    def _straight(self, segments: list[str]) -> tuple[dict[str, Operation], dict[str, str]] | None:
        """What `_walk` finds where each first choice leads on; None: perhaps another one does."""
        node = self._root
        params = {}
        for segment in segments:
            child = node.fixed.get(segment)
            if child is None:
                if not node.named or not segment or "%" in segment:
                    return None
                name, allowed, child = node.named[0]
                if allowed is not None and segment not in allowed:
                    return None
                params[name] = segment
            node = child
        return (node.methods, params) if node.methods else None

    def _walk(
        self, node: _Node, segments: list[str], at: int, params: dict[str, str]
    ) -> tuple[dict[str, Operation], dict[str, str]] | None:
        if at == len(segments):
            return (node.methods, params) if node.methods else None
        raw = segments[at]
        fixed = node.fixed.get(raw)
        if fixed is not None:
            found = self._walk(fixed, segments, at + 1, params)
            if found is not None:
                return found
        value = unescaped(raw)
        if not value:
            return None
        for name, allowed, child in node.named:
            if allowed is None or value in allowed:
                found = self._walk(child, segments, at + 1, {**params, name: value})
                if found is not None:
                    return found
        return None


class MethodRefused(BankError):
    """405: the address exists, the method does not; `allowed` becomes the Allow header."""

    def __init__(self, allowed: list[str], path: str) -> None:
        super().__init__("BAD_REQUEST", f"{path[:200]} takes {', '.join(allowed)}.", status=405)
        self.allowed = allowed
