"""One browser request to the SCA pages or `/my`, with its language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emulator.api.messages import Request, Response
from emulator.api.render import VARY, preferred_language
from emulator.store import StoreUnwritable, StoreVoid
from emulator.web.pages.browser import FormRefused, Guard, PageForm, header, path_below, read_query, root_of
from emulator.web.pages.rendering import html
from emulator.web.pages.texts import translated
from emulator.web.pages.wording import LANGUAGES, NORWEGIAN


class Visit:
    """A request for a page. Its language is the one chosen on the page, else the customer's, else the browser's."""

    def __init__(self, request: Request) -> None:
        self.request = request
        try:
            self.query = read_query(request)
        except FormRefused:
            self.query = PageForm({})
        asked = self.query.get("lang")
        self.chosen = asked if asked in LANGUAGES else None
        self._customers: str | None = None

    def customers_language(self, psu_accept_language: str | None) -> None:
        """Set the customer's language, from the header that the TPP passed on (PSU-Accept-Language)."""
        self._customers = preferred_language(psu_accept_language)

    @property
    def language(self) -> str:
        browsers = preferred_language(header(self.request, "accept-language"))
        return self.chosen or self._customers or browsers or NORWEGIAN

    @property
    def read_only(self) -> bool:
        """Whether the request must not change anything: a HEAD, or a browser that prefetches a link."""
        purpose = header(self.request, "sec-purpose") or ""
        return self.request.method == "HEAD" or purpose.partition(";")[0].strip() == "prefetch"

    def refused(self, guard: Guard) -> Response | None:
        """403 for an unknown host name or a form of another site, 405 for other methods; None if it is accepted."""
        if not guard.knows_host(self.request):
            return self.notice(403, "foreign_title", self.say("host_text"))
        if self.request.method not in ("GET", "HEAD", "POST"):
            allowed = (("Allow", "GET, HEAD, POST"),)
            return self.notice(405, "method_title_405", self.say("method_text_405"), headers=allowed)
        if self.request.method == "POST" and guard.is_foreign(self.request):
            return self.notice(403, "foreign_title", self.say("foreign_text"))
        return None

    def answered(self, guard: Guard, answer: Callable[[], Response]) -> Response:
        """The answer, or the page that says why there is none: a refused request or form, or a store without room."""
        refused = self.refused(guard)
        if refused is not None:
            return refused
        try:
            return answer()
        except FormRefused as error:
            return self.notice(error.status, "form_title", self.say("form_text"))
        except StoreVoid:
            raise
        except StoreUnwritable:
            return self.notice(503, "down_title", self.say("down_text"))

    @property
    def path(self) -> str:
        """The path of the page, for links."""
        return root_of(self.request) + path_below(self.request)

    @property
    def address(self) -> str:
        """The address of the page, with the language where the customer chose one."""
        return f"{self.path}?lang={self.chosen}" if self.chosen else self.path

    def say(self, key: str, **values: object) -> str:
        """A text of the page in its language."""
        return translated(key, self.language).format(**values)

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page in the language of the visit; `values` may replace `path` and `address`."""
        values = {"say": self.say, "path": self.path, "address": self.address, "languages": LANGUAGES, **values}
        headers = (VARY, *values.pop("headers", ()))
        return html(self.request, template, status=status, language=self.language, headers=headers, **values)

    def notice(self, status: int, title: str, text: str, *, headers: tuple[tuple[str, str], ...] = ()) -> Response:
        """A page with only a message, after the end of an SCA or for a refusal."""
        return self.page("sca/notice.html", status=status, headers=headers, title=self.say(title), text=text)

    def unknown(self) -> Response:
        """The answer to an address that the bank does not know."""
        return self.notice(404, "unknown_title", self.say("unknown_text"))
