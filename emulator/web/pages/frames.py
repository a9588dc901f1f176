"""The customer's pages in frames of other sites (`--frame-ancestors`), as test runners show an application in one.

Real banks refuse it, since a page around them could make the customer click on what it hides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from emulator.api.messages import Request, Response
from emulator.api.service import BankService
from emulator.web.pages.rendering import NOT_FRAMED


class CustomerPages(Protocol):
    """A handler of pages; see `assemble.application.Pages`."""

    def handle(self, service: BankService, request: Request) -> Response: ...

    def no_bank(self, request: Request, name: str) -> Response: ...


class Framed:
    """A handler of pages that the sites `ancestors` may show in frames."""

    def __init__(self, pages: CustomerPages, ancestors: tuple[str, ...]) -> None:
        self._pages = pages
        self._allowed = f"frame-ancestors {' '.join(ancestors)}"

    def handle(self, service: BankService, request: Request) -> Response:
        """Answer as the pages do."""
        return self._allow(self._pages.handle(service, request))

    def no_bank(self, request: Request, name: str) -> Response:
        """Answer as the pages do."""
        return self._allow(self._pages.no_bank(request, name))

    def _allow(self, answer: Response) -> Response:
        headers = [
            (name, value.replace(NOT_FRAMED, self._allowed))
            for name, value in answer.headers
            if name != "X-Frame-Options"  # it knows no list of sites
        ]
        return replace(answer, headers=headers)
