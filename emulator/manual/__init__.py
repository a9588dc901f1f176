"""The manual: Markdown pages in this folder, rendered as HTML, with a search; independent of the bank.

`index.md` is the table of contents: its second-level headings are the groups, the links below them the pages, in the
order in which they are listed. Pages link to each other by relative file names (`../reference/errors.md#conflict`),
which also work in the repository; links that start with `/` are addresses of the running bank.
Blocks between `<!-- generated: NAME -->` and `<!-- end: NAME -->` are written by `python -m tests.docs.sections`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
IMAGES = FOLDER / "images"
HOME = ""  # the address of index.md

_MARKER = re.compile(r"^<!-- .* -->\n", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^ *```")
_FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#{1,4}) (.+)$")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the text up to the next one; `anchor` is empty for the beginning of a page.

    `place`: the title of its page.
    """

    page: str
    place: str
    anchor: str
    title: str
    level: int
    text: str

    @property
    def address(self) -> str:
        """Below `/docs`: `/reference/errors#conflict`."""
        place = f"/{self.page}" if self.page else ""
        return f"{place}#{self.anchor}" if self.anchor else place


@dataclass(frozen=True)
class Page:
    """One file: its address below `/docs` without the suffix, and its Markdown."""

    address: str
    text: str

    @property
    def title(self) -> str:
        """The first-level heading."""
        return self.sections[0].title

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        sections: list[tuple[int, str, list[str]]] = [(1, "", [])]
        fenced = False
        for line in self.text.splitlines():
            fenced ^= _FENCE.match(line) is not None
            heading = None if fenced else _HEADING.match(line)
            if heading is None:
                sections[-1][2].append(line)
            elif len(heading[1]) == 1:
                sections[0] = (1, heading[2], [])
            else:
                sections.append((len(heading[1]), heading[2], []))
        title = plain(sections[0][1])
        return tuple(
            Section(
                page=self.address,
                place=title,
                anchor=slug(heading) if level > 1 else "",
                title=plain(heading),
                level=level,
                text="\n".join(lines),
            )
            for level, heading, lines in sections
        )


@dataclass(frozen=True, slots=True)
class Group:
    """A group of the table of contents: its heading and its pages."""

    title: str
    pages: tuple[Page, ...]


def plain(text: str) -> str:
    """The text of Markdown, without its markup."""
    words = re.sub(r"[`*]", "", _LINK.sub(r"\1", text))
    return " ".join(re.sub(r"\||^> ?|^ *[-#]+ |:?-{3,}:?", " ", words, flags=re.MULTILINE).split())


def slug(title: str) -> str:
    """The anchor of a heading, in the form of repository hosts."""
    return re.sub(r"[^\w\- ]", "", plain(title).lower()).replace(" ", "-")


@cache
def pages() -> dict[str, Page]:
    """All pages by address, `index.md` under HOME."""
    by_address = {}
    for file in sorted(FOLDER.rglob("*.md")):
        address = file.relative_to(FOLDER).with_suffix("").as_posix()
        address = HOME if address == "index" else address
        by_address[address] = Page(address, _MARKER.sub("", file.read_text(encoding="utf-8")))
    return by_address


@cache
def contents() -> tuple[Group, ...]:
    """The groups of `index.md`, each with the pages that it links to."""
    groups = []
    for section in pages()[HOME].sections:
        linked = [resolved(HOME, target)[0] for _, target in _LINK.findall(section.text)]
        if section.level == 2:
            groups.append(Group(section.title, tuple(pages()[address] for address in linked if address is not None)))
    return tuple(group for group in groups if group.pages)


def resolved(page: str, target: str) -> tuple[str | None, str]:
    """The page and the anchor that a link on `page` leads to; the page is None for a link out of the manual."""
    path, _, anchor = target.partition("#")
    if not path:
        return page, anchor
    if "://" in path or path.startswith("/") or not path.endswith(".md"):
        return None, anchor
    address = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)).removesuffix(".md")
    return (HOME if address == "index" else address), anchor


# Rendering


@cache
def _renderer() -> Any:
    """The Markdown renderer, imported on use. HTML in the text is escaped."""
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

    # the rules of markdown-it-py are called with (renderer, tokens, index, options, env)
    def heading_open(_renderer: Any, tokens: Sequence[Token], index: int, *_rest: Any) -> str:
        level = tokens[index].tag
        if level == "h1":
            return "<h1>"
        title = tokens[index + 1].content
        anchor, label = slug(title), escape(f"Link to {plain(title)}")
        return f'<{level} id="{anchor}"><a class="anchor" href="#{anchor}" aria-label="{label}" tabindex="-1">#</a>'

    def link_open(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        token = tokens[index]
        token.attrSet("href", _served(env["page"], str(token.attrGet("href") or ""), env["root"]))
        return renderer.renderToken(tokens, index, options, env)

    def image(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        token = tokens[index]
        token.attrSet("src", f"{env['root']}/docs/images/{posixpath.basename(str(token.attrGet('src')))}")
        token.attrSet("loading", "lazy")
        return renderer.image(tokens, index, options, env)

    def code(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        shown = renderer.fence(tokens, index, options, env)
        return shown.replace("<pre>", '<pre tabindex="0">', 1)

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.add_render_rule("heading_open", heading_open)
    reader.add_render_rule("link_open", link_open)
    reader.add_render_rule("image", image)
    reader.add_render_rule("fence", code)
    reader.add_render_rule("code_block", code)
    reader.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>')
    reader.add_render_rule("table_close", lambda *_: "</table></div>")
    return reader


def _served(page: str, target: str, root: str) -> str:
    """The address of a link in the served manual."""
    address, anchor = resolved(page, target)
    if address is None:
        return root + target if target.startswith("/") else target
    if target.startswith("#"):
        return target
    return f"{root}/docs" + (f"/{address}" if address else "") + (f"#{anchor}" if anchor else "")


@lru_cache(maxsize=256)
def rendered(address: str, root: str) -> str:
    """A page as HTML; `root` is the prefix of its links. Raises KeyError for an unknown page."""
    page = pages()[address]
    return str(_renderer().render(page.text, {"page": address, "root": root}))


# For language models (llmstxt.org)


def markdown(address: str, base: str) -> str | None:
    """The Markdown at this address below `/docs`: a page, `llms.txt` or `llms-full.txt`; None for anything else.

    `base` is the address of the bank. Links between pages hold, as each is served under the name of its file.
    """
    if address == "llms.txt":
        return _llms(base)
    if address == "llms-full.txt":
        in_order = (pages()[HOME], *(page for group in contents() for page in group.pages))
        return "\n\n".join(page.text.strip() for page in in_order)
    page = pages().get(HOME if address == "index.md" else address.removesuffix(".md"))
    return page.text if page is not None and address.endswith(".md") else None


def _llms(base: str) -> str:
    """The table of contents for language models: the pages in Markdown, each with its first sentence."""
    lines = ["# Bank emulator", "", f"> {_in_short(pages()[HOME])}", ""]
    lines += [f"The whole manual in one file: {base}/docs/llms-full.txt", ""]
    for group in contents():
        lines += [f"## {group.title}", ""]
        lines += [f"- [{page.title}]({base}/docs/{page.address}.md): {_in_short(page)}" for page in group.pages]
        lines.append("")
    lines += [
        "## Optional",
        "",
        f"- [OpenAPI document]({base}/openapi.json): every operation of the interface",
    ]
    return "\n".join(lines) + "\n"


def _in_short(page: Page) -> str:
    """The first sentence of a page; its headings if it begins with a table or an example."""
    paragraph = page.sections[0].text.strip().split("\n\n")[0]
    headings = ", ".join(section.title for section in page.sections[1:])
    if headings and (not paragraph or paragraph.startswith(("|", "$ ", "- ", "```"))):
        return headings
    return re.split(r"(?<=[^0-9][.]) ", re.sub(r"^1\. ", "", plain(paragraph)))[0].rstrip(":")


# Search


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching section, with the text around the first match; `parts` alternate plain and matching text."""

    entry: Section
    parts: tuple[str, ...]


@cache
def entries() -> tuple[Section, ...]:
    """What is searched: every section of every page, its text without markup and code blocks."""
    return tuple(
        replace(section, text=plain(_FENCED.sub("", section.text)))
        for page in pages().values()
        for section in page.sections
    )


MOST_HITS = 40
_WORD = re.compile(r"[^\s,;()\"']+")
_AROUND = 90  # characters of context on either side of a match


def search(query: str, among: Sequence[Section]) -> list[Hit]:
    """The entries with every word of `query`, best first; if there is none, those with the most words."""
    words = [word.casefold() for word in _WORD.findall(query)][:8]
    if not words:
        return []
    scored = [(_score(words, entry), order, entry) for order, entry in enumerate(among)]
    most = max((matched for (matched, _), _, _ in scored), default=0)
    if most == 0:
        return []
    best = sorted(
        ((-points, order, entry) for (matched, points), order, entry in scored if matched == most),
        key=lambda row: row[:2],
    )
    return [Hit(entry, tuple(_snippet(words, entry.text))) for _, _, entry in best[:MOST_HITS]]


def named(topic: str) -> Sequence[Page | Section]:
    """The page or the sections that `topic` names, by address or title; empty if it is but words to search for."""
    page, _, anchor = topic.strip("/").removeprefix("docs/").partition("#")
    fitting = [one for address, one in pages().items() if page in (address, address.rpartition("/")[2])]
    if fitting and not anchor:
        return fitting[:1]
    sections = [one for each in fitting or pages().values() for one in each.sections if one.anchor]
    return [one for one in sections if anchor == one.anchor or plain(one.title).casefold() == topic.casefold()]


def _score(words: Sequence[str], entry: Section) -> tuple[int, int]:
    """The number of words in the entry, and a score: whole words and titles count more."""
    title, place, text = entry.title.casefold(), entry.place.casefold(), entry.text.casefold()
    matched = points = 0
    for word in words:
        whole = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
        here = 0
        if word in title:
            here += 10 if whole.search(title) is None else 20 + (20 if title == word else 0)
        if word in place:
            here += 4
        if word in text:
            here += 2 if whole.search(text) is None else 6
        matched += here > 0
        points += here
    return matched, points


def _snippet(words: Sequence[str], text: str) -> Iterator[str]:
    fits = re.compile("|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)), re.IGNORECASE)
    first = fits.search(text)
    start = max(0, (first.start() if first else 0) - _AROUND)
    start = text.rfind(" ", 0, start) + 1 if start else 0
    shown = text[start : start + 3 * _AROUND]
    shown = ("… " if start else "") + shown + ("…" if start + len(shown) < len(text) else "")
    at = 0
    for match in fits.finditer(shown):
        yield shown[at : match.start()]
        yield match[0]
        at = match.end()
    yield shown[at:]
