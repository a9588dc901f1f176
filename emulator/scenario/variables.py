"""`${name}` in a scenario: parameters in its start and rules, saved values and `${today+3d}` in its story.

The functions about parameters read a scenario that is not validated yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from emulator.bank.problems import Path, Problem, guess, unknown
from emulator.bank.settings import json_or_text

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,60}", re.ASCII)
FILLED = ("start", "rules")  # the members of a scenario that may contain parameters
_PLACE = re.compile(r"\$\{([^{}]*)\}")
_DAY = re.compile(r"today(?:([+-]\d{1,4})d)?", re.ASCII)
_STEP = re.compile(r"([^.\[\]]+)|\[(-?\d{1,4})\]", re.ASCII)


def fill(value: Any, value_of: Callable[[str], Any]) -> Any:
    """A value with every `${name}` replaced; a string of one name only becomes the value itself."""
    if isinstance(value, str):
        whole = _PLACE.fullmatch(value)
        return value_of(whole[1]) if whole is not None else _PLACE.sub(lambda match: str(value_of(match[1])), value)
    if isinstance(value, dict):
        return {name: fill(inner, value_of) for name, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, value_of) for inner in value]
    return value


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Everything in a value that is no mapping and no list, with its path."""
    if isinstance(value, dict | list):
        for part, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, part))
    else:
        yield path, value


def _names_in(value: Any) -> Iterator[tuple[str, Path]]:
    for path, text in leaves(value):
        for name in _PLACE.findall(text) if isinstance(text, str) else ():
            yield name, path


# Parameters


def _declared(source: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = source.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def defaults(source: Mapping[str, Any]) -> dict[str, Any]:
    """The default of each parameter of a scenario, as far as it can be read."""
    declared = _declared(source)
    return {name: form["default"] for name, form in declared.items() if isinstance(form, dict) and "default" in form}


def filled(source: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with `values` filled into its rules and start; other names stay."""

    def value_of(name: str) -> Any:
        return values.get(name, f"${{{name}}}")

    return {name: fill(part, value_of) if name in FILLED else part for name, part in source.items()}


def with_defaults(source: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with `values` as the defaults of its parameters."""
    if not values or not _declared(source):
        return dict(source)
    changed = {
        name: {**form, "default": values[name]} if name in values and isinstance(form, dict) else form
        for name, form in _declared(source).items()
    }
    return {**source, "parameters": changed}


def typed(source: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """`values`, with text for a parameter whose default is no text read as JSON: forms and command lines send text."""
    declared = defaults(source)
    return {
        name: _scalar(value) if isinstance(value, str) and not isinstance(declared.get(name, ""), str) else value
        for name, value in values.items()
    }


def _scalar(text: str) -> Any:
    value = json_or_text(text)
    return text if isinstance(value, dict | list) else value


def unknown_values(source: Mapping[str, Any], values: Mapping[str, Any], *, at: str) -> Iterator[Problem]:
    """A problem for each of `values` that has no parameter, or is null; `at`: the member that contains them."""
    known = tuple(_declared(source))
    for name, value in values.items():
        if name not in known:
            text = unknown(name, known, "There is no parameter") if known else "The scenario has no parameters."
            yield Problem((at, name), text)
        elif value is None:
            yield Problem((at, name), "Expected a value, found nothing; omit the parameter to use its default.")


def unknown_parameters(source: Mapping[str, Any]) -> Iterator[Problem]:
    """A problem for each `${name}` in rules and start without a parameter."""
    known = set(_declared(source))
    for member in FILLED:
        for name, path in _names_in(source.get(member)):
            if name not in known:
                yield Problem((member, *path), f"There is no parameter {name!r}{guess(name, known) or '.'}")


# Values that steps save


class Unknown(Exception):
    """No step has saved a name, or an answer has no such member; the argument is a sentence."""


class Variables:
    """The values that a story has saved so far; `today` gives the date of the bank."""

    def __init__(self, today: Callable[[], date], saved: Mapping[str, Any] | None = None) -> None:
        self._saved: dict[str, Any] = dict(saved or {})
        self._today = today

    def save(self, name: str, value: Any) -> None:
        """Save a value; a later step that saves the name again replaces it."""
        self._saved[name] = value

    def fill(self, value: Any) -> Any:
        """A value with every `${name}` replaced; raises Unknown for a name that no step has saved."""
        return fill(value, self._of)

    def _of(self, name: str) -> Any:
        if name in self._saved:
            return self._saved[name]
        day = _DAY.fullmatch(name)
        if day is None:
            raise Unknown(f"No step has saved {name!r}{guess(name, self._saved) or '.'}")
        return (self._today() + timedelta(days=int(day[1] or 0))).isoformat()


def unsaved_names(story: Any, known: Collection[str]) -> Iterator[Problem]:
    """A problem for each name in a step that no earlier step saves and that is not in `known`."""
    saved = set(known)
    for index, step in enumerate(story if isinstance(story, list) else ()):
        for name, path in _names_in(step):
            if name not in saved and _DAY.fullmatch(name) is None:
                yield Problem(("story", index, *path), f"No earlier step saves {name!r}{guess(name, saved) or '.'}")
        # A step with problems saves its names too, so that later steps have no further problems.
        save = step.get("save") if isinstance(step, dict) else None
        saved |= save.keys() if isinstance(save, dict) else set()


def member_at(value: Any, path: str) -> Any:
    """The member of an answer at a path such as `transactions.booked[0].transactionId`; raises Unknown."""
    here = value
    for name, index in _STEP.findall(path):
        if index:
            if not isinstance(here, list) or not -len(here) <= int(index) < len(here):
                raise Unknown(f"The answer has no entry [{index}] at {path}.")
            here = here[int(index)]
        elif not isinstance(here, dict) or name not in here:
            near = guess(name, here) if isinstance(here, dict) else ""
            raise Unknown(f"The answer has no member {path}{near or '.'}")
        else:
            here = here[name]
    return here
