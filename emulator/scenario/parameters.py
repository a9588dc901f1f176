"""`parameters` of a scenario: values chosen when it is applied, `${name}` in its rules and start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from emulator.bank.operators import Scalar
from emulator.bank.problems import Problem, guess, unknown
from emulator.bank.validation import Maybe, Model
from emulator.scenario.variables import PLACE, names_in

FILLED = ("start", "rules")  # the members of a scenario that may contain parameters


class Parameter(Model):
    """A parameter with its default; `about` describes it."""

    model_config = ConfigDict(title="parameter")

    default: Scalar
    about: Maybe[Annotated[str, Field(pattern=r"\S", max_length=500)]] = None


def defaults(parameters: Any) -> dict[str, Any]:
    """The default of each declared parameter, as far as it can be read."""
    declared = parameters if isinstance(parameters, dict) else {}
    return {name: form["default"] for name, form in declared.items() if isinstance(form, dict) and "default" in form}


def fill(value: Any, values: Mapping[str, Any]) -> Any:
    """A value with every known `${name}` replaced; a string of one name only becomes the value itself."""
    if isinstance(value, str):
        whole = PLACE.fullmatch(value)
        if whole is not None:
            return values.get(whole[1], value)
        return PLACE.sub(lambda match: str(values.get(match[1], match[0])), value)
    if isinstance(value, dict):
        return {name: fill(inner, values) for name, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, values) for inner in value]
    return value


def filled(source: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with `values` filled into its rules and start."""
    return {name: fill(part, values) if name in FILLED else part for name, part in source.items()}


def chosen(source: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with `values` as defaults."""
    parameters = source.get("parameters")
    if not values or not isinstance(parameters, dict):
        return dict(source)
    changed = {
        name: {**form, "default": values[name]} if name in values and isinstance(form, dict) else form
        for name, form in parameters.items()
    }
    return {**source, "parameters": changed}


def unknown_values(source: Mapping[str, Any], values: Mapping[str, Any], *, at: str) -> Iterator[Problem]:
    """A problem for each of `values` without a parameter; `at`: the member that contains them."""
    declared = source.get("parameters")
    known = tuple(declared) if isinstance(declared, dict) else ()
    for name in values:
        if name not in known:
            text = unknown(name, known, "There is no parameter") if known else "The scenario has no parameters."
            yield Problem((at, name), text)


def unknown_names(source: Mapping[str, Any]) -> Iterator[Problem]:
    """A problem for each `${name}` in rules and start without a parameter."""
    declared = source.get("parameters")
    known = set(declared) if isinstance(declared, dict) else set()
    for member in FILLED:
        for name, path in names_in(source.get(member)):
            if name not in known:
                yield Problem((member, *path), f"There is no parameter {name!r}{guess(name, known) or '.'}")
