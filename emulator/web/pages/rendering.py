"""HTML answers: the one template environment, and the headers that every page carries.

Autoescape is on everywhere and a name that a template does not know is an error, so a page cannot leak markup.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.api.messages import Request, Response
from emulator.web.pages import wording
from emulator.web.pages.form import root_of
from emulator.web.pages.static_files import versioned

if TYPE_CHECKING:
    from jinja2 import Environment

BANK = "Sandbanken"  # the fictional bank that the pages show
TEMPLATES = Path(__file__).parent.parent / "templates"

# No form-action: Chromium applies it to every redirect after a form post, so it would stop the way back to the
# TPP's address, and whatever the TPP redirects to from there. Nothing inline, nothing from elsewhere, no framing.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
# The console's forms only ever lead to the console.
_POLICY_AT_HOME = f"{_POLICY}; form-action 'self'"

_HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    # Other origins learn nothing of the address; our own forms keep their Origin, which `no-referrer` would null.
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


@cache
def environment() -> Environment:
    """The templates of all pages; jinja2 is imported with the first page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["bank_name"] = BANK
    made.globals["static"] = versioned
    for shown_as in (
        wording.money,
        wording.account_number,
        wording.day,
        wording.months,
        wording.oslo,
        wording.abridged,
        wording.tone,
    ):
        made.filters[shown_as.__name__] = shown_as
    made.filters["json_text"] = json_text
    return made


def json_text(value: Any, indent: int | None = None) -> str:
    """A value as JSON for people to read; escaped by the template like any other text."""
    return json.dumps(value, indent=indent, ensure_ascii=False)


def html(
    request: Request,
    template: str,
    *,
    status: int = 200,
    language: str = "en",
    at_home: bool = False,
    headers: tuple[tuple[str, str], ...] = (),
    **values: Any,
) -> Response:
    """A page from a template; `at_home` says that its forms lead nowhere but here."""
    text = environment().get_template(template).render(root=root_of(request), language=language, **values)
    sent = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Language", language),
        ("Content-Security-Policy", _POLICY_AT_HOME if at_home else _POLICY),
        *_HEADERS,
        *headers,
    ]
    return Response(status, sent, text.encode())


def bare(request: Request, status: int, title: str, text: str, *headers: tuple[str, str]) -> Response:
    """A page without the bank: for those who may not see it."""
    return html(request, "console/bare.html", status=status, at_home=True, headers=headers, title=title, text=text)


def see_other(location: str, *, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """303: the browser goes on with GET."""
    return Response(303, [("Location", location), *_HEADERS, *headers])
