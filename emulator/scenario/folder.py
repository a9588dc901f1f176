"""Parts that are loaded from a folder: one file each; a missing name or a duplicate is an error."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Protocol, TypeVar


class Named(Protocol):
    """A part with the name under which it is found."""

    @property
    def name(self) -> str: ...


Kind = TypeVar("Kind", bound=Named)


class MalformedFolder(ValueError):
    """A file of the folder has no part, or a second one of the same name; the argument names it."""


def parts(folder: Iterable[str], package: str, constant: str, kind: type[Kind]) -> dict[str, Kind]:
    """The parts of the files in `folder`, by name, in the order of the files' names."""
    named: dict[str, Kind] = {}
    for module in pkgutil.iter_modules(folder):
        part = getattr(importlib.import_module(f"{package}.{module.name}"), constant, None)
        if not isinstance(part, kind) or not part.name:
            raise MalformedFolder(f"{package}.{module.name} has no {constant} of the class {kind.__name__} with a name")
        if part.name in named:
            raise MalformedFolder(f"{package}.{module.name} is a second {part.name}")
        named[part.name] = part
    return named
