"""What code, tests and checks cite can be opened: an address in the manual, never a text outside the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from emulator import manual
from tests.docs.sections import ROOT

FOLDERS = ("emulator", "tests", "fixtures", "scenarios", ".ci", ".docker", ".github")
FILES = ("Makefile", "README.md", "CHANGELOG.md", "pyproject.toml")
# The texts from which the project began, and its issues. The brackets keep this pattern from finding itself.
UNREADABLE = re.compile(r"\b(?:SP[E]C|CONTR[A]CT|DES[I]GN|issu[e] #?[0-9])\b.{0,40}")
# `page.md#anchor` in comments and texts; the whole path without `.md` in checks, templates and links of the program.
SHORT = re.compile(r"(?<![\w/-])([a-z][a-z-]*)\.md\b(?:#([\w-]+))?")
LONG = re.compile(r"\b((?:tutorials|how-to|reference|explanation)/[a-z-]+)(?:\.md)?(?:#([\w-]+))?")


@cache
def sources() -> dict[str, str]:
    """Every text file of the repository, by its path."""
    files = [ROOT / name for name in FILES]
    files += [
        file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*")) if "__pycache__" not in file.parts
    ]
    return {str(file.relative_to(ROOT)): text for file in files if file.is_file() and (text := _text(file)) is not None}


def _text(file: Path) -> str | None:
    """The text of a file; None for a picture, a key store and the like."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


@cache
def anchors() -> dict[str, set[str]]:
    """The anchors of every page of the manual, by its address and by its name alone."""
    matches: dict[str, set[str]] = {}
    for address, page in manual.pages().items():
        matches[address] = {section.anchor for section in page.sections}
        matches[address.rpartition("/")[2] or "index"] = matches[address]
    return matches


def dangling(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The addresses of the manual in a text that lead nowhere."""
    for match in pattern.finditer(text):
        page, anchor = match.groups()
        if page not in anchors() or (anchor and anchor not in anchors()[page]):
            yield match[0]


def test_nothing_cites_a_text_that_is_not_in_the_repository() -> None:
    assert {path: cited for path, text in sources().items() if (cited := UNREADABLE.findall(text))} == {}


def test_the_names_of_pages_are_unique() -> None:
    """So that a comment may name a page without its folder."""
    names = [address.rpartition("/")[2] for address in manual.pages()]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("pattern", "folders"),
    [(SHORT, ("emulator/", "tests/")), (LONG, ("emulator/", "fixtures/", "scenarios/", ".github/"))],
    ids=["by name", "by path"],
)
def test_every_address_of_the_manual_opens(pattern: re.Pattern[str], folders: tuple[str, ...]) -> None:
    """The manual's own links have a test that knows their form (test_manual)."""
    named = {
        path: pattern.findall(text)
        for path, text in sources().items()
        if path.startswith(folders) and not path.startswith("emulator/manual/") and not __file__.endswith(path)
    }
    assert sum(map(len, named.values())) > 30
    lost = {path: matches for path in named if (matches := list(dangling(sources()[path], pattern)))}
    assert lost == {}


@pytest.mark.parametrize("address", ["payments.md#cancelling", "payment.md", "reference/payments#cancelling"])
def test_an_address_that_leads_nowhere_is_found(address: str) -> None:
    assert [*dangling(address, SHORT), *dangling(address, LONG)] == [address]
