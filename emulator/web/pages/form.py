"""Form posts and page addresses as the pages read them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

from emulator.api.messages import Request
from emulator.api.router import split_target
from emulator.web.pages.guard import header

FORM_TYPE = "application/x-www-form-urlencoded"
MOST_FIELDS = 10_000  # one for each account that a customer may share

Fields = Mapping[str, list[str]]


class FormRefused(Exception):
    """A post that is no form of ours: `status` 400 or 415, and why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Form:
    """The fields of a form post or of a page's query."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def get(self, name: str, default: str = "") -> str:
        """The last value of a field, without outer blanks."""
        values = self._fields.get(name)
        return values[-1].strip() if values else default

    def typed(self, name: str) -> str:
        """The last value of a field with its blanks, its lines ended as in a file."""
        return "".join(self.all(name)[-1:]).replace("\r\n", "\n").rstrip("\n") + "\n"

    def all(self, name: str) -> list[str]:
        """Every value of a field (checkboxes)."""
        return list(self._fields.get(name, ()))

    def __contains__(self, name: str) -> bool:
        return name in self._fields


def _fields(text: str) -> Fields:
    try:
        return parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise FormRefused(400, "The form cannot be read.") from None


def read_form(request: Request) -> Form:
    """The posted form; FormRefused when the body is none."""
    kind = (header(request, "content-type") or "").partition(";")[0].strip().lower()
    if kind != FORM_TYPE:
        raise FormRefused(415, f"A form was expected ({FORM_TYPE}).")
    try:
        text = request.body.decode("ascii")
    except UnicodeDecodeError:
        raise FormRefused(400, "The form cannot be read.") from None
    return Form(_fields(text))


def read_query(request: Request) -> Form:
    """The query of a page's address; FormRefused when it is unreadable."""
    return Form(_fields(split_target(request.target)[1]))


def path_below(request: Request) -> str:
    """The path of a request below its bank's prefix."""
    path, _ = split_target(request.target)
    return path[len(request.prefix) :] if request.prefix else path


def root_of(request: Request) -> str:
    """What stands before `/sca`, `/console` and `/static` in links: the public address's own path and the prefix."""
    return urlsplit(request.base).path.rstrip("/") + request.prefix
