"""A browser without a screen: gets pages from a handler, fills in their forms and posts them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from emulator.api.messages import Request, Response

if TYPE_CHECKING:
    from emulator.api.service import BankService

HOST = "127.0.0.1:8080"


class Field:
    def __init__(self, attributes: dict[str, str | None]) -> None:
        self.name = attributes.get("name") or ""
        self.kind = attributes.get("type") or "text"
        self.value = attributes.get("value") or ""
        self.checked = "checked" in attributes
        self.described_by = (attributes.get("aria-describedby") or "").split()


class PageForm:
    def __init__(self, action: str) -> None:
        self.action = action
        self.fields: list[Field] = []
        self.buttons: list[Field] = []

    def sent(self) -> list[tuple[str, str]]:
        """What a browser would send without anybody touching the form."""
        return [(f.name, f.value) for f in self.fields if f.kind not in ("radio", "checkbox") or f.checked]


class _Reader(HTMLParser):
    """The forms of a page; of its tags only those that matter to them are read, which takes a tenth of the time."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self._unset = False
        self.feed("".join(re.findall("<(?:form|input|textarea|select|option|button)\\b[^>]*>", source)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "form":
            self.forms.append(PageForm(attributes.get("action") or ""))
        elif tag in ("input", "textarea", "select") and self.forms:
            self.forms[-1].fields.append(Field(attributes))
            self._unset = tag == "select"
        elif tag == "option" and self.forms and (self._unset or "selected" in attributes):
            # A browser sends the selected option, else the first.
            self.forms[-1].fields[-1].value = attributes.get("value") or ""
            self._unset = False
        elif tag == "button" and self.forms:
            self.forms[-1].buttons.append(Field(attributes))


class Page:
    """An answer as a page, which is taken apart when a test asks for its forms or its text."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers}
        self.source = response.body.decode(errors="replace")

    @cached_property
    def forms(self) -> list[PageForm]:
        return _Reader(self.source).forms

    @cached_property
    def text(self) -> str:
        return unescape(re.sub("<[^>]*>", "", self.source))


class Visitor:
    """Visits the pages of one handler of one bank; `headers` go with every request."""

    def __init__(
        self, handler: Any, service: BankService, *, prefix: str = "", headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._handler = handler
        self._service = service
        self._prefix = prefix
        self.headers = dict(headers)

    def send(self, method: str, target: str, body: bytes = b"", **headers: str) -> Page:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = tuple({"Host": HOST, **self.headers, **named}.items())
        request = Request(method, target, sent, body, base=f"http://{HOST}", prefix=self._prefix)
        return Page(self._handler.handle(self._service, request))

    def get(self, target: str, **headers: str) -> Page:
        return self.send("GET", target, **headers)

    def post(self, target: str, fields: Iterable[tuple[str, str]], **headers: str) -> Page:
        headers.setdefault("Content_Type", "application/x-www-form-urlencoded")
        return self.send("POST", target, urlencode(list(fields)).encode(), **headers)

    def submit(self, page: Page, *, form: int = -1, drop: Iterable[str] = (), **values: str | list[str]) -> Page:
        """Post a form of the page (the last one) with some fields changed; `drop` leaves fields out."""
        chosen = page.forms[form]
        left_out = set(values) | set(drop)
        fields = [(name, value) for name, value in chosen.sent() if name not in left_out]
        for name, value in values.items():
            fields += [(name, one) for one in ([value] if isinstance(value, str) else value)]
        return self.post(chosen.action, fields)
