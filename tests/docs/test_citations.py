"""No text that users read cites SPEC or CONTRACT, which they do not have: it says the rule, or links to the manual.

The OpenAPI documents have a test of their own (tests/api/test_openapi.py), so have the pages of the manual.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from emulator import manual
from emulator.bank import fixtures
from emulator.cli.main import group
from emulator.scenario.model import scenario_schema
from tests.docs.sections import CITATION, ROOT, SECTIONS

CITED = re.compile(r"\b(?:SPEC|CONTRACT)\b.{0,40}")
PROGRAMS = sorted((ROOT / "emulator").rglob("*.py"))
# What others read beside the pages: files that commands print or copy, pages, and the Python interface for tests.
FILES = sorted(
    file
    for folder, pattern in (
        ("scenarios", "*"),
        ("fixtures", "*"),
        ("emulator/web/templates", "**/*.html"),
        ("emulator/web/static", "*.*s*"),
        ("emulator/conformance", "**/*.j2"),
        ("emulator/conformance/checks", "*.yaml"),
        ("emulator/manual/images", "*.svg"),
        ("emulator/testing", "*.py"),
        ("emulator/client", "*.py"),
        ("tests/examples", "[sS]ign*"),
        (".docker", "*"),
    )
    for file in (ROOT / folder).glob(pattern)
    if file.is_file()
)


def literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts of a program that are no docstrings."""
    about = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in about:
            yield node


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_message_cites_the_specification(file: Path) -> None:
    cited = [(one.lineno, one.value) for one in literals(ast.parse(file.read_text())) if CITED.search(str(one.value))]
    assert [(line, text) for line, text in cited if text not in REMOVES] == []


# the expression that takes citations out of descriptions
REMOVES = (CITATION.pattern,)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_file_that_users_read_cites_the_specification(file: Path) -> None:
    assert CITED.findall(file.read_text()) == []


def commands(command: click.Command, name: str) -> Iterator[str]:
    """The help of a command and of those below it."""
    context = click.Context(command, info_name=name)
    yield command.get_help(context)
    for inner in getattr(command, "commands", {}).values():
        yield from commands(inner, inner.name or "")


def test_no_help_cites_the_specification() -> None:
    shown = list(commands(group, "bank-emulator"))
    assert len(shown) > 50
    assert [CITED.findall(text) for text in shown if CITED.search(text)] == []


@pytest.mark.parametrize("schema", [scenario_schema(), fixtures.schema()], ids=["scenario", "fixture"])
def test_no_schema_cites_the_specification(schema: object) -> None:
    assert CITED.findall(json.dumps(schema)) == []


@pytest.mark.parametrize("name", SECTIONS)
def test_no_generated_part_cites_the_specification(name: str) -> None:
    assert CITED.findall(SECTIONS[name]()) == []


def test_only_the_page_for_those_who_work_on_the_code_names_it() -> None:
    named = {address for address, page in manual.pages().items() if CITED.search(page.text)}
    assert named == {"explanation/rules-and-code"}
