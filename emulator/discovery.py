"""Discovery of the modules of a package: products, flows, effects, steps and operations are added by adding a file.

Each module of such a package defines one constant, such as `PRODUCT`. A malformed module stops the start.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, TypeVar

Value = TypeVar("Value")


class MalformedModule(ValueError):
    """A module does not define what its package expects, or defines a second one with the same name."""


def modules(folder: Iterable[str], package: str) -> Iterator[ModuleType]:
    """The modules in `folder`, in alphabetical order."""
    for module in pkgutil.iter_modules(folder):
        yield importlib.import_module(f"{package}.{module.name}")


def instances(
    folder: Iterable[str], package: str, kind: type[Value], *, names: Callable[[Value], Iterable[str]]
) -> tuple[Value, ...]:
    """The values of type `kind` in the modules of `folder`; raises MalformedModule for a second one of a name."""
    values = [value for module in modules(folder, package) for value in vars(module).values() if type(value) is kind]
    seen: set[str] = set()
    for name in (name for value in values for name in names(value)):
        if name in seen:
            raise MalformedModule(f"there is a second {name}")
        seen.add(name)
    return tuple(values)


def discover(
    folder: Iterable[str],
    package: str,
    constant: str,
    *,
    name: Callable[[Value], str],
    problem: Callable[[object], str | None],
) -> dict[str, Value]:
    """The constants of the modules in `folder`, by `name`, in the order of the modules' names.

    `problem` says why a constant cannot be used, as the end of a sentence, or None. Raises MalformedModule.
    """
    values: dict[str, Value] = {}
    for module in modules(folder, package):
        value: Any = getattr(module, constant, None)
        reason = problem(value)
        if reason is not None:
            raise MalformedModule(f"{module.__name__} {reason}")
        if name(value) in values:
            raise MalformedModule(f"{module.__name__} is a second {name(value)}")
        values[name(value)] = value
    return values
