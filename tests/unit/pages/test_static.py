"""Static files, and what every style sheet and template keeps to."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from emulator.web.pages.rendering import STATIC
from tests.unit.pages.living import Living, living
from tests.unit.pages.visitor import Visitor


@pytest.fixture(scope="module")
def emulator() -> Iterator[Living]:
    with living() as emulator:
        yield emulator


def test_every_static_file_is_served_with_its_type(browser: Visitor) -> None:
    for name in sorted(path.name for path in STATIC.iterdir()):
        answer = browser.get(f"/static/{name}")
        assert answer.status == 200, name
        assert answer.headers["content-type"].split(";")[0] in ("text/css", "text/javascript", "image/svg+xml"), name
        assert answer.headers["cache-control"] == "no-cache", name
        again = browser.get(f"/static/{name}", If_None_Match=answer.headers["etag"])
        assert (again.status, again.source) == (304, ""), name


def test_nothing_else_is_served(browser: Visitor) -> None:
    for name in ("", "none.css", "../rendering.py", "..%2Fdocs.html", "%2e%2e/x", "base.css/", "base.css%00"):
        assert browser.get(f"/static/{name}").status == 404


def test_static_files_are_only_read(browser: Visitor) -> None:
    assert browser.send("POST", "/static/base.css").status == 405


def test_no_file_asks_anything_from_elsewhere() -> None:
    for path in [*STATIC.iterdir(), *(STATIC.parent / "templates").rglob("*.html")]:
        text = (
            path.read_text(encoding="utf-8")
            .replace("http://www.w3.org/2000/svg", "")
            .replace("redirect.startswith", "")
        )
        for word in ("http://", "https://", "//cdn", "@import", "url(", "innerHTML ="):
            assert word not in text.replace("('http://')", "").replace("('https://')", ""), (path.name, word)


def test_only_the_console_has_a_script_and_no_template_carries_style_or_script_of_its_own() -> None:
    for path in (STATIC.parent / "templates").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert " style=" not in text, path.name
        assert "<style" not in text, path.name
        assert "<script>" not in text, path.name
        assert "<script" not in text or path.parent.name == "console", path.name
        assert "|safe" not in text, path.name
        assert " on" + "click=" not in text, path.name


def test_the_console_listens_to_every_kind_of_event_that_a_bank_publishes() -> None:
    named = re.compile(r'publish(?:_to_all)?\((?:[\w.]+, |\s*\{\s*"type": )?"([a-z]+)"')
    kinds = {kind for path in STATIC.parents[1].rglob("*.py") for kind in named.findall(path.read_text("utf-8"))}
    assert len(kinds) > 15
    listed = (STATIC / "console.js").read_text("utf-8").partition("const KINDS = [")[2].partition("]")[0]
    assert kinds - set(re.findall('"([a-z]+)"', listed)) == set()


PAIRS = (
    "ink/paper ink/surface soft/paper soft/surface soft/sunk soft/sand-wash soft/sea-wash soft/red-wash sea/surface "
    "sea/paper sea/sea-wash on-sea/sea on-sea/sea-deep sand/sand-wash sand/surface sand-wash/sand red/red-wash "
    "red/surface red/sand-wash surface/red green/green-wash green/paper blue/blue-wash"
)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_can_be_told_from_what_is_behind_it(scheme: int) -> None:
    """WCAG AA: a contrast of 4.5 for text of any size, in both colour schemes."""
    sheet = (STATIC / "base.css").read_text(encoding="utf-8").split("prefers-color-scheme: dark")[scheme]
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", sheet))
    faint = {}
    for pair in PAIRS.split():
        lighter, darker = sorted((_luminance(colours[name]) for name in pair.split("/")), reverse=True)
        contrast = (lighter + 0.05) / (darker + 0.05)
        if contrast < 4.5:
            faint[pair] = round(contrast, 2)
    assert faint == {}
