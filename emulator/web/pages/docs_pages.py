"""The handler for `/docs`: pages of the manual and of the operations, the search, and the manual as Markdown.

Pages are rendered on the server and need neither JavaScript nor a network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from emulator import manual
from emulator.api.messages import Request, Response
from emulator.api.service import BankService
from emulator.web.pages.browser import FormRefused, Guard, path_below, read_query, root_of
from emulator.web.pages.rendering import BarePages, bare, html

if TYPE_CHECKING:
    from emulator.web.pages.operation_reference import Reference

_IMAGE_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Book:
    """One OpenAPI document: the path of its page, its title, its address, where a browser reads it, and its builder.

    A link cannot send the control token, so a browser that has logged in reads the control document at the console.
    """

    path: str
    title: str
    lead: str
    document: str
    source: str
    make: Callable[[], Mapping[str, Any]]

    @cached_property
    def reference(self) -> Reference:
        from emulator.web.pages.operation_reference import Reference  # only on use, to keep the start fast

        return Reference(self.path, self.make())


class DocsPage(BarePages):
    """The handler for `/docs`; `operations` and `control` build the two OpenAPI documents."""

    def __init__(
        self,
        guard: Guard,
        *,
        operations: Callable[[], Mapping[str, Any]],
        control: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._guard = guard
        self._books = {
            "operations": Book(
                "operations",
                "TPP operations",
                "The operations for third-party providers. Every request is signed.",
                "/openapi.json",
                "/openapi.json",
                operations,
            ),
            "control": Book(
                "control",
                "Control operations",
                "The operations for tests and tools. Requests are not signed.",
                "/_emulator/openapi.json",
                "/console/openapi.json",
                control,
            ),
        }

    def handle(self, _service: BankService, request: Request) -> Response:
        if not self._guard.knows_host(request):
            return bare(request, 403, "Host name not allowed", "Start the bank with --allow-host to allow it.")
        if request.method not in ("GET", "HEAD"):
            return bare(request, 405, "Method not allowed", "This page is read with GET.", ("Allow", "GET, HEAD"))
        here = path_below(request).removeprefix("/docs").strip("/")
        folder, _, name = here.partition("/")
        text = manual.markdown(here, request.base + request.prefix)
        if text is not None:
            kind = "text/plain" if here.endswith(".txt") else "text/markdown"
            return _file(f"{kind}; charset=utf-8", text.encode())
        if here == "search":
            return self._search(request)
        if folder in self._books:
            return self._operations(request, self._books[folder], name)
        if folder == "images":
            return _image(request, name)
        if here in manual.pages():
            return self._page(request, here)
        return self._missing(request, here)

    def _page(self, request: Request, address: str) -> Response:
        from markupsafe import Markup  # comes with jinja2, which is imported with the first page

        page = manual.pages()[address]
        headings = [section for section in page.sections if section.level in (2, 3)]
        return self._shown(
            request,
            "docs/page.html",
            title=page.title,
            here=address,
            # rendered from the package's own files by a renderer that escapes HTML; the template writes the title
            content=Markup(manual.rendered(address, root_of(request)).partition("</h1>")[2]),
            headings=headings if len(headings) > 2 and address != manual.HOME else [],
        )

    def _operations(self, request: Request, book: Book, name: str) -> Response:
        reference = book.reference
        if not name:
            return self._shown(
                request, "docs/operations.html", title=book.title, here=book.path, book=book, groups=reference.groups
            )
        operation = reference.operations.get(name)
        if operation is None:
            return self._missing(request, f"{book.path}/{name}")
        return self._shown(
            request,
            "docs/operation.html",
            title=operation.id,
            here=book.path,
            book=book,
            operation=operation,
            rules_title=_title_of(operation.rules),
        )

    def _search(self, request: Request) -> Response:
        try:
            query = read_query(request).get("q")[:200]
        except FormRefused as refused:
            return bare(request, refused.status, "The search cannot be read", refused.reason)
        return self._results(request, query, 200)

    def _missing(self, request: Request, here: str) -> Response:
        """Answer 404 with a search for the words of the address."""
        return self._results(request, here.replace("/", " ").replace("-", " ")[:200], 404)

    def _results(self, request: Request, query: str, status: int) -> Response:
        among = [*manual.entries()]
        for book in self._books.values():
            among += book.reference.entries
        return self._shown(
            request,
            "docs/search.html",
            status=status,
            title="Search" if status == 200 else "Page not found",
            here="search",
            query=query,
            hits=manual.search(query, among),
            most=manual.MOST_HITS,
        )

    def _shown(self, request: Request, template: str, *, title: str, here: str, **values: Any) -> Response:
        """A documentation page with the table of contents beside it and the search above it."""
        status = values.pop("status", 200)
        return html(
            request,
            template,
            status=status,
            same_origin=True,
            title=title,
            here=here,
            groups_of_pages=manual.contents(),
            books=list(self._books.values()),
            base=request.base + request.prefix,
            **{"query": "", **values},
        )


def _title_of(rules: str) -> str:
    """The title of the section that a link to the manual leads to; empty for no link."""
    address, _, anchor = rules.removeprefix("/docs/").partition("#")
    sections = manual.pages()[address].sections if rules else ()
    titles = (f"{one.place}: {one.title}" if anchor else one.title for one in sections if one.anchor == anchor)
    return next(titles, rules)


def _image(request: Request, name: str) -> Response:
    path = next((file for file in manual.IMAGES.iterdir() if file.name == name and file.suffix in _IMAGE_TYPES), None)
    if path is None:
        return bare(request, 404, "Not found", "The image does not exist.")
    return _file(_IMAGE_TYPES[path.suffix], path.read_bytes())


def _file(kind: str, content: bytes) -> Response:
    headers = [("Content-Type", kind), ("Cache-Control", "no-cache"), ("X-Content-Type-Options", "nosniff")]
    return Response(200, headers, content)
