"""The manual and the README: generated parts are up to date, nothing that has a name is missing, every link holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from emulator import manual
from emulator.api.description import openapi as tpp_openapi
from emulator.api.operations import table
from emulator.bank.errors import STATUS
from emulator.bank.scheme.transitions import STATUSES
from emulator.bank.settings import TAKES
from emulator.cli import requests
from emulator.cli.main import COMMANDS, PAGES, run
from emulator.control import openapi as control_openapi
from emulator.control.operations import table as control_table
from emulator.scenario import loader
from emulator.scenario.effects import effects
from emulator.scenario.steps import step_kinds
from emulator.settings import FLAGS
from emulator.web.pages.operation_reference import Reference
from tests.docs.pictures import layers, statuses_picture
from tests.docs.sections import PICTURES, README, ROOT, SECTIONS, renewed, texts

LINK = re.compile(r"\]\(([^)\s]+)\)")
[INTERFACE] = [group for group in manual.contents() if group.title == "Reference: the interface"]


@cache
def books() -> dict[str, Reference]:
    return {
        "operations": Reference("operations", tpp_openapi.document()),
        "control": Reference("control", control_openapi.document("")),
    }


def test_the_generated_blocks_are_up_to_date() -> None:
    for file in texts():
        text = file.read_text()
        assert renewed(text) == text, f"{file}: python -m tests.docs.sections writes them"


def test_the_drawn_pictures_are_up_to_date() -> None:
    for name, draw in PICTURES.items():
        assert (manual.IMAGES / name).read_text() == draw(), f"{name}: python -m tests.docs.sections draws them"


def test_every_generated_block_has_its_place() -> None:
    manual_text = "".join(file.read_text() for file in texts())
    assert [name for name in SECTIONS if f"<!-- generated: {name} -->" not in manual_text] == []


# Where each name must stand: the page that a reader would open.
def names() -> Iterator[tuple[str, str]]:
    yield from (("reference/operations", f"`{row.id}`") for row in table())
    yield from (("reference/control", f"`{row.id}`") for row in control_table())
    yield from (("reference/flags", f"`--{flag.name}") for flag in FLAGS)
    yield from (("reference/flags", f"`{flag.variable}`") for flag in FLAGS)
    yield from (("reference/settings", f"## {name}\n") for name in TAKES)
    yield from (("reference/scenario-language", f"`{name}`") for name in (*effects(), *step_kinds()))
    yield from (("reference/ready-scenarios", f"`{name}`") for name in loader.library())
    yield from (("reference/command-line", f"`{name}") for name in COMMANDS)
    yield from (("reference/errors", f"### {code}\n") for code in STATUS)
    yield from (("reference/payment-statuses", f"| `{status}` |") for status in STATUSES)


def test_nothing_that_has_a_name_is_missing() -> None:
    assert [(page, name) for page, name in names() if name not in manual.pages()[page].text] == []


def test_every_error_says_when_it_comes_and_what_to_do_next() -> None:
    for code in STATUS:
        [section] = [one for one in manual.pages()["reference/errors"].sections if one.title == code]
        assert "**When:**" in section.text, code
        assert "**Next:**" in section.text, code


def test_every_page_is_in_the_table_of_contents_once() -> None:
    listed = Counter(page.address for group in manual.contents() for page in group.pages)
    assert listed == Counter({address: 1 for address in manual.pages() if address != manual.HOME})


def test_a_page_has_the_title_that_the_contents_give_it() -> None:
    contents = manual.pages()[manual.HOME].text
    for address, page in manual.pages().items():
        assert address == manual.HOME or f"[{page.title}]({address}.md)" in contents, address


def test_the_anchors_of_a_page_are_its_own() -> None:
    for address, page in manual.pages().items():
        anchors = Counter(manual.slug(section.title) for section in page.sections)
        assert [anchor for anchor, number in anchors.items() if number > 1] == [], address


def test_every_link_of_a_page_holds() -> None:
    for address, page in manual.pages().items():
        for target in LINK.findall(re.sub(r"^```.*?^```$", "", page.text, flags=re.M | re.S)):
            assert holds(address, target), (address, target)


def holds(address: str, target: str) -> bool:
    page, anchor = manual.resolved(address, target)
    if page is not None:
        return page in manual.pages() and (
            not anchor or anchor in {section.anchor for section in manual.pages()[page].sections}
        )
    if target.startswith("/docs/") and target.split("/")[2] in books():
        book, _, operation = target.removeprefix("/docs/").partition("/")
        return not operation or operation in books()[book].operations
    if target.startswith("../images/"):
        return (manual.IMAGES / target.removeprefix("../images/")).exists()
    return target in ("/console", "/console/requests", "/openapi.json", "/docs/search", "/my")


def test_every_link_of_the_readme_holds() -> None:
    text = README.read_text()
    anchors = {manual.slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    for target in LINK.findall(text):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif "://" not in target:
            path, _, anchor = target.partition("#")
            assert (ROOT / path).exists(), target
            page = path.removeprefix("emulator/manual/").removesuffix(".md")
            assert not anchor or anchor in {section.anchor for section in manual.pages()[page].sections}, target


def test_the_readme_stays_short() -> None:
    assert len(README.read_bytes()) < 16_500


def test_every_code_path_that_is_named_exists() -> None:
    path = re.compile(r"`((?:emulator|tests|fixtures|scenarios|\.ci|\.docker)/[A-Za-z0-9_./-]+)`")
    named = {(file, one) for file in texts() for one in path.findall(file.read_text())}
    assert [(file, one) for file, one in named if not (ROOT / one).exists()] == []


def test_every_page_of_the_interface_leads_to_its_code() -> None:
    text = manual.pages()["explanation/rules-and-code"].text
    addresses = {page.address for page in INTERFACE.pages} - {"reference/berlin-group"}
    assert [address for address in addresses if f"](../{address}.md" not in text] == []


def test_pictures_stay_small() -> None:
    for picture in manual.IMAGES.iterdir():
        assert picture.stat().st_size < 150_000, picture.name


def test_every_picture_is_shown() -> None:
    shown = "".join(file.read_text() for file in texts())
    assert [picture.name for picture in manual.IMAGES.iterdir() if picture.name not in shown] == []


# The pictures


def test_the_picture_of_the_packages_has_every_layer_and_what_stands_beside() -> None:
    drawn = PICTURES["packages.svg"]()
    layered = [package for row in layers(ROOT / "pyproject.toml") for package in row]
    packages = [folder.parent.name for folder in (ROOT / "emulator").glob("*/__init__.py")]
    assert set(layered) <= set(packages)
    for package in packages:
        assert f">{package}</text>" in drawn


def test_the_picture_of_the_statuses_has_them_all() -> None:
    for status in STATUSES:
        assert f">{status}</text>" in statuses_picture()


@pytest.mark.parametrize(
    "topic, shown",
    [
        (("flags",), "# Flags"),
        (("/docs/reference/errors",), "# Errors"),
        (("payee_check",), "reference/settings#payee_check"),
        (("a", "close", "match"), "reference/payments#verification-of-payee"),
        ((), "Your first payment"),
    ],
)
def test_the_command_line_prints_the_manual(
    topic: tuple[str, ...], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["docs", *topic]) == 0
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        ["docs", "xyzzy"],
        ["serve", "--port", "much"],
        ["serve", "--port", "0", "--ephemeral", "--fixtures", "no-such"],
        ["serve", "--port", "0", "--ephemeral", "--scenario", "no-such"],
    ],
)
def test_an_error_names_a_page_that_there_is(line: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(line) == 2
    error = capfd.readouterr().err.splitlines()[-1]
    named = re.search(r"bank-emulator docs ([\w-]*)", error)
    assert named is not None, error
    assert named[1] == "lists" or run(["docs", named[1]]) == 0


def test_every_page_that_errors_name_exists() -> None:
    sources = "".join(file.read_text() for file in (ROOT / "emulator").rglob("*.py"))
    named = {*PAGES.values(), *re.findall(r'(?i)\bpage ?= ?"([\w-]+)"', sources)}
    assert "recover-data" in named
    assert named <= {address.rpartition("/")[2] for address in manual.pages()}


@pytest.mark.parametrize(
    "body, code",
    [
        (b'{"tppMessages": [{"category": "ERROR", "code": "SCA_NOT_FOUND"}, {"code": "CONFLICT"}]}', "SCA_NOT_FOUND"),
        (b'{"tppMessages": [{"code": "SOMETHING_ELSE"}]}', None),
        (b'{"tppMessages": []}', None),
        (b'{"tppMessages": [{"code": 7}]}', None),
        (b"[1]", None),
        (b"<html>", None),
    ],
)
def test_a_refusal_leads_to_what_the_manual_says_of_its_code(body: bytes, code: str | None) -> None:
    assert requests._code(body) == code


def test_the_command_line_prints_what_the_manual_says_of_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    for code in STATUS:
        assert run(["docs", code]) == 0
        assert capsys.readouterr().out.startswith(f"reference/errors#{code.lower()}")
