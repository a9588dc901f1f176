"""The page to read the interface, at `/docs`: our own script draws `/openapi.json`, nothing comes from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.api.messages import Request, Response
from emulator.web.pages.browser import Guard, path_below, root_of
from emulator.web.pages.rendering import bare, html

if TYPE_CHECKING:
    from emulator.api.service import BankService

# What each address shows: a title, a sentence, the document, and where a browser reads it: to the control interface
# a page cannot show the control token, to the console it shows who has logged in.
BOOKS = {
    "/docs": ("TPP interface", "What a third-party provider calls, signed.", "/openapi.json", "/openapi.json"),
    "/docs/control": (
        "Control interface",
        "What tests and tools call, unsigned.",
        "/_emulator/openapi.json",
        "/console/openapi.json",
    ),
}


class DocsPage:
    """The room for `/docs`."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def handle(self, _service: BankService, request: Request) -> Response:
        """Answer GET and HEAD."""
        if not self._guard.knows_host(request):
            return bare(request, 403, "This name is not allowed", "Start the bank with --allow-host to allow it.")
        if request.method not in ("GET", "HEAD"):
            return bare(request, 405, "Method not allowed", "This page is read with GET.", ("Allow", "GET, HEAD"))
        here = path_below(request).rstrip("/")
        if here not in BOOKS:
            return bare(request, 404, "Not found", "There are /docs and /docs/control.")
        title, lead, document, source = BOOKS[here]
        root = root_of(request)
        return html(
            request,
            "docs.html",
            at_home=True,
            title=title,
            lead=lead,
            document=root + document,
            source=root + source,
            here=here,
            books=[(address, name) for address, (name, *_) in BOOKS.items()],
            base=request.base + request.prefix,
        )

    def no_bank(self, request: Request, name: str) -> Response:
        """Answer 404 for a bank that is not there (any more)."""
        return bare(request, 404, "Not found", f"There is no bank {name}.")
