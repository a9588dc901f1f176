"""Every command whose result a program may want prints it as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from emulator.cli.main import group
from tests.e2e.process import command

# They run until they are stopped, or what they print is the form that a program reads.
WITHOUT = {"serve", "proxy", "mcp", "request", "openapi", "collection", "completion"}


def commands(of: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(of, click.Group):
        for name in of.commands:
            yield from commands(of.commands[name], *path, name)
    else:
        yield " ".join(path), of


def test_every_command_has_it_but_those_without_a_result() -> None:
    lacking = {
        name for name, one in commands(group) if not any("--output" in parameter.opts for parameter in one.params)
    }
    assert lacking <= WITHOUT


@pytest.mark.parametrize(
    ("arguments", "members"),
    [
        (["tpp", "new", "shop"], {"name", "tppId", "roles", "validUntil", "folder", "certificate", "key", "keystore"}),
        (["conformance", "show", "digest-of-the-sent-bytes"], {"check", "level", "about", "seen", "expect"}),
        (["docs"], {"pages"}),
        (["docs", "flags"], {"page", "title", "text"}),
        (["docs", "payee_check"], {"sections"}),
        (["docs", "kill -9"], {"hits"}),
    ],
)
def test_what_is_printed_is_json(tmp_path: Path, arguments: list[str], members: set[str]) -> None:
    done = command(*arguments, "--output", "json", environment={"BANK_EMULATOR_STATE": str(tmp_path / "state")})
    shown: Any = json.loads(done.stdout)
    assert (done.returncode, members - shown.keys()) == (0, set())
    assert all(shown.values())
