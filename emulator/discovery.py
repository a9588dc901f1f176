"""Discovery of the modules of a package: products, flows, effects, steps and operations are added by adding a file.

A malformed module stops the start.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TypeVar

Value = TypeVar("Value")


class MalformedModule(ValueError):
    """A module does not define what its package expects, or defines a second one with the same name."""


def modules(folder: Iterable[str], package: str) -> Iterator[ModuleType]:
    """The modules in `folder`, in alphabetical order."""
    for module in pkgutil.iter_modules(folder):
        yield importlib.import_module(f"{package}.{module.name}")


def discover(
    folder: Iterable[str],
    package: str,
    kind: type[Value],
    *,
    names: Callable[[Value], Iterable[str]],
) -> tuple[Value, ...]:
    """The values of type `kind` that the modules in `folder` define, alone or in tuples, in the order of their names.

    Raises MalformedModule for a module without such a value, and for a second one of a name.
    """
    values: list[Value] = []
    seen: set[str] = set()
    for module in modules(folder, package):
        named = [named if isinstance(named, tuple) else (named,) for named in vars(module).values()]
        own = [value for values in named for value in values if isinstance(value, kind)]
        if not own:
            raise MalformedModule(f"{module.__name__} has no {kind.__name__}")
        for value in own:
            for name in names(value):
                if name in seen:
                    raise MalformedModule(f"{module.__name__} is a second {name}")
                seen.add(name)
        values += own
    return tuple(values)
