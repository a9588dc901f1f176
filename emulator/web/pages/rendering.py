"""HTML answers: the template environment, the headers of every page, who may frame it, the static files, and the
visit of a customer's browser to a page.

Autoescape is always on, so that data cannot become markup; an undefined name in a template is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.api.messages import Request, Response
from emulator.api.render import VARY, preferred_language
from emulator.api.service import BankService
from emulator.bank.bank import Bank
from emulator.store import StoreUnwritable, StoreVoid
from emulator.terminal import json_text
from emulator.web.pages.browser import FormRefused, Guard, PageForm, header, path_below, read_query, root_of
from emulator.web.pages.wording import FILTERS, LANGUAGES, NORWEGIAN, translated

if TYPE_CHECKING:
    from jinja2 import Environment


BANK = "Sandbanken"  # the fictional bank that the pages show
TEMPLATES = Path(__file__).parent.parent / "templates"
STATIC = Path(__file__).parent.parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}

# No form-action: Chromium applies it to every redirect after a form post, so it would block the redirect to the TPP's
# address, and further redirects from there. Nothing inline, nothing from other origins, no framing.
NOT_FRAMED = "frame-ancestors 'none'"
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    f"base-uri 'none'; {NOT_FRAMED}"
)
# For pages whose forms never redirect to another origin.
_POLICY_SAME_ORIGIN = f"{_POLICY}; form-action 'self'"

_HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    # Other origins do not see the address; forms still send their Origin, which `no-referrer` would replace by `null`.
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


@cache
def environment() -> Environment:
    """The templates of all pages; jinja2 is imported with the first page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["bank_name"] = BANK
    templates.filters |= {shown_as.__name__: shown_as for shown_as in (*FILTERS, json_text)}
    return templates


def html(
    request: Request,
    template: str,
    *,
    status: int = 200,
    language: str = "en",
    redirects: bool = False,
    headers: tuple[tuple[str, str], ...] = (),
    **values: Any,
) -> Response:
    """Render a page from a template; `redirects`: its forms may redirect to another origin."""
    text = environment().get_template(template).render(root=root_of(request), language=language, **values)
    sent = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Language", language),
        ("Content-Security-Policy", _POLICY if redirects else _POLICY_SAME_ORIGIN),
        *_HEADERS,
        *headers,
    ]
    return Response(status, sent, text.encode())


def bare(request: Request, status: int, title: str, text: str, *headers: tuple[str, str]) -> Response:
    """A page that shows nothing of the bank, for requests that are refused."""
    return html(request, "console/bare.html", status=status, headers=headers, title=title, text=text)


class BarePages:
    """What manual and console answer for a bank that cannot."""

    def no_bank(self, request: Request, name: str) -> Response:
        return bare(request, 404, "Not found", f"The bank {name} does not exist.")

    def unwritable(self, request: Request, status: int, text: str) -> Response:
        return bare(request, status, "The bank cannot save", text)


def wants_page(request: Request) -> bool:
    """Whether a browser navigates to a page: it sends GET or HEAD and accepts HTML."""
    return request.method in ("GET", "HEAD") and "text/html" in (header(request, "accept") or "")


def nothing_here(request: Request) -> Response:
    """Answer 404 to a browser for an address that does not exist, with links to existing pages."""
    title, text = "Page not found", f"The bank has no page at {path_below(request)[:200]}."
    return html(request, "console/nothing.html", status=404, title=title, text=text)


def see_other(location: str, *, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """303: the browser continues with GET."""
    return Response(303, [("Location", location), *_HEADERS, *headers])


@lru_cache(maxsize=64)
def _load(folder: Path, name: str) -> tuple[bytes, str] | None:
    """Content and ETag of a file; only files listed in the folder are opened."""
    if name not in {path.name for path in folder.iterdir() if path.suffix in _TYPES}:
        return None
    content = (folder / name).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:16]}"'


class StaticFiles:
    """The handler for `/static/...`, with the same files for every bank."""

    def handle(self, _service: BankService, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return bare(request, 405, "Method not allowed", "Static files are read with GET.", ("Allow", "GET, HEAD"))
        return file(request, STATIC, path_below(request).removeprefix("/static/"))


def file(request: Request, folder: Path, name: str) -> Response:
    """A file of ours for GET and HEAD; 404 for one that does not exist."""
    loaded = _load(folder, name)
    if loaded is None:
        return bare(request, 404, "Not found", "The file does not exist.")
    content, tag = loaded
    sent = [
        ("Content-Type", _TYPES[Path(name).suffix]),
        ("Cache-Control", "no-cache"),
        ("ETag", tag),
        ("X-Content-Type-Options", "nosniff"),
    ]
    if tag in (header(request, "if-none-match") or ""):
        return Response(304, sent)
    return Response(200, sent, content)


class Visit:
    """A request for a page. Its language is the one chosen on the page, else the customer's, else the browser's.

    `customers`: the customer's language, if the TPP has passed on PSU-Accept-Language.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        try:
            self.query = read_query(request)
        except FormRefused:
            self.query = PageForm({})
        asked = self.query.get("lang")
        self.chosen = asked if asked in LANGUAGES else None
        self.customers: str | None = None

    @property
    def language(self) -> str:
        browsers = preferred_language(header(self.request, "accept-language"))
        return self.chosen or self.customers or browsers or NORWEGIAN

    @property
    def read_only(self) -> bool:
        """Whether the request must not change anything: a HEAD, or a browser that prefetches a link."""
        purpose = header(self.request, "sec-purpose") or ""
        return self.request.method == "HEAD" or purpose.partition(";")[0].strip() == "prefetch"

    @property
    def path(self) -> str:
        return root_of(self.request) + path_below(self.request)

    @property
    def address(self) -> str:
        """The address of the page, with the language where the customer chose one."""
        return f"{self.path}?lang={self.chosen}" if self.chosen else self.path

    def say(self, key: str, **values: object) -> str:
        return translated(key, self.language).format(**values)

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page in the language of the visit; `values` may replace `path` and `address`."""
        values = {"say": self.say, "path": self.path, "address": self.address, "redirects": True, **values}
        headers = (VARY, *values.pop("headers", ()))
        return html(self.request, template, status=status, language=self.language, headers=headers, **values)

    def notice(self, status: int, title: str, text: str, *, headers: tuple[tuple[str, str], ...] = ()) -> Response:
        """A page with only a message, after the end of an SCA or for a refusal."""
        return self.page("sca/notice.html", status=status, headers=headers, title=self.say(title), text=text)

    def unwritable(self, status: int) -> Response:
        return self.notice(status, "down_title", self.say("down_text"))

    def unknown(self) -> Response:
        return self.notice(404, "unknown_title", self.say("unknown_text"))


class CustomerPages:
    """A handler for pages of every bank that `answer` gives; the sites `ancestors` may show them in frames
    (`--frame-ancestors`), as test runners do.

    Real banks refuse it, since a page around theirs could make the customer click on what it hides.
    """

    def __init__(
        self, guard: Guard, answer: Callable[[Bank, Visit, Guard], Response], ancestors: tuple[str, ...] = ()
    ) -> None:
        self._guard = guard
        self._answer = answer
        self._ancestors = ancestors

    def handle(self, service: BankService, request: Request) -> Response:
        return self._framed(self._answered(service.bank, Visit(request)))

    def _answered(self, bank: Bank, visit: Visit) -> Response:
        """A page, a redirect after a form, or the page that says why there is none.

        403 for an unknown host name or a form of another site, 405 for other methods, 400 and 415 for an unreadable
        form, 503 for a store without room.
        """
        if not self._guard.knows_host(visit.request):
            return visit.notice(403, "foreign_title", visit.say("host_text"))
        if visit.request.method not in ("GET", "HEAD", "POST"):
            allowed = (("Allow", "GET, HEAD, POST"),)
            return visit.notice(405, "method_title_405", visit.say("method_text_405"), headers=allowed)
        if visit.request.method == "POST" and self._guard.is_foreign(visit.request):
            return visit.notice(403, "foreign_title", visit.say("foreign_text"))
        try:
            return self._answer(bank, visit, self._guard)
        except FormRefused as error:
            return visit.notice(error.status, "form_title", visit.say("form_text"))
        except StoreVoid:
            raise
        except StoreUnwritable:
            return visit.unwritable(503)

    def no_bank(self, request: Request, _name: str) -> Response:
        """Answer 404 for a bank that does not exist, as for any unknown link."""
        return self._framed(Visit(request).unknown())

    def unwritable(self, request: Request, status: int, _text: str) -> Response:
        return self._framed(Visit(request).unwritable(status))

    def _framed(self, answer: Response) -> Response:
        if not self._ancestors:
            return answer
        allowed = f"frame-ancestors {' '.join(self._ancestors)}"
        headers = [
            (name, value.replace(NOT_FRAMED, allowed))
            for name, value in answer.headers
            if name != "X-Frame-Options"  # it knows no list of sites
        ]
        return replace(answer, headers=headers)
