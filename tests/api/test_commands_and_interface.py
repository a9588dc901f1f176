"""What a command for a running bank asks is what the control interface takes: both state it, and here they meet.

The command line does not derive its commands from the operations, as importing these takes a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import click
from jsonschema import Draft202012Validator

from emulator.cli import control, requests, sca, scenario
from emulator.cli.bank import ControlCommand, members
from emulator.control.openapi import document


def rows() -> Iterator[ControlCommand]:
    for noun in control.NOUNS.values():
        yield from [noun] if isinstance(noun, ControlCommand) else noun[1].values()
    yield from (requests.COUNT, requests.CLEAR, sca.LIST, scenario.STATUS)
    for verb, (about, example, params) in sca.ACTIONS.items():
        yield ControlCommand(about, f"POST sca/{{target}}/{verb}", example, params)


@cache
def described() -> dict[str, Any]:
    return document("http://127.0.0.1:8080")


def operation_of(request: str) -> dict[str, Any]:
    """The operation in the document of the interface; the names of its path parameters may differ."""
    method, _, address = request.partition(" ")
    wanted = re.sub(r"{\w+}", "{}", f"/_emulator/{address.partition('?')[0]}")
    [path] = [path for path in described()["paths"] if re.sub(r"{\w+}", "{}", path) == wanted]
    operation: dict[str, Any] = described()["paths"][path][method.lower()]
    return operation


def taken(operation: dict[str, Any]) -> Draft202012Validator:
    """Whether an object of query parameters and members of the body is taken."""
    query = {one["name"]: one["schema"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    if query or not operation.get("requestBody"):
        schema: dict[str, Any] = {"properties": query, "additionalProperties": False}
    else:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": described()["components"]})


def values(parameter: click.Parameter) -> list[Any]:
    """Values at the edges of what a parameter takes."""
    kind = parameter.type
    if isinstance(kind, click.Choice):
        return list(kind.choices)
    if isinstance(kind, click.IntRange):
        return [edge for edge in (kind.min, kind.max, parameter.default) if isinstance(edge, int)]
    return [3] if kind is click.INT else []


def test_a_command_asks_for_what_the_interface_takes() -> None:
    for row in list(rows()):
        takes = taken(operation_of(row.request))
        own = [] if row.body is not None else row.params
        for parameter in own:
            assert parameter.name is not None, row.request
            for value in values(parameter):
                assert not list(takes.iter_errors(members({parameter.name: value}))), (parameter.name, value)
        # a name that is not known is refused, whatever its value
        names = members({str(parameter.name): "?" for parameter in own})
        unknown = [error for error in takes.iter_errors(names) if error.validator == "additionalProperties"]
        assert not unknown, names
