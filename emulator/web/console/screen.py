"""One request to the console: its bank, its control interface, and the pages and redirects that answer it."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from emulator.api.messages import Answered, Request, Response, Stream, Unfinished, finished
from emulator.api.service import BankService
from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CUSTOMER
from emulator.store import Kind, StoreUnwritable
from emulator.web.pages.browser import PageForm, path_below, root_of
from emulator.web.pages.rendering import html, see_other

MOST = 100  # entries of a list on one page
_NAMED: dict[str, Kind[Any]] = {kind.name: kind for kind in (ACCOUNT, AGREEMENT, CARD, CUSTOMER)}

# `Control.handle` of the control interface, passed in by `assemble`.
Answering = Callable[["BankService", Request], Answered]


class ControlRefused(Exception):
    """A refusal by the control interface: `status`, the reasons as `texts`, and the `members` of the body at fault."""

    def __init__(self, status: int, texts: list[str], members: frozenset[str] = frozenset()) -> None:
        super().__init__(" ".join(texts))
        self.status = status
        self.texts = texts
        self.members = members


def _value(answer: Response | Stream) -> Any:
    """The JSON of an answer; raises ControlRefused for 4xx and 5xx."""
    if isinstance(answer, Stream):
        raise TypeError("the console asks for JSON only")
    value: Any = json.loads(answer.body) if answer.body else None
    if answer.status >= 400:
        messages = value["tppMessages"]
        members = frozenset(message.get("path", "").partition(".")[0] for message in messages)
        raise ControlRefused(answer.status, [_text(message) for message in messages], members)
    return value


def _text(message: Mapping[str, str]) -> str:
    return f"{message['text']} ({message['path']})" if message.get("path") else message["text"]


# Pages to look at the bank, to control its behaviour, and to change it as a whole.
_PLACES = (
    ("Watch", ("", "requests", "payments", "baskets", "sca", "consents", "notifications", "customers", "conformance")),
    ("Control", ("scenarios", "settings", "tpps", "generate")),
    ("Bank", ("snapshots", "reset", "banks")),
)
_LABELS = {"": "Overview", "sca": "Authentication", "tpps": "TPPs"}
NAVIGATION = [(group, [(page, _LABELS.get(page, page.capitalize())) for page in pages]) for group, pages in _PLACES]


@dataclass(frozen=True, slots=True)
class ListPart:
    """A list of `total` entries that is shown page by page: `size` of them from `offset` on.

    `query`: the filters, for the addresses of the other pages.
    """

    total: int
    offset: int
    size: int
    query: str

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(slots=True)
class Screen:
    """The argument of every page function: `params` of the address, `query`, the posted `form`, and the bank, whose
    control interface it asks (`answering`) with the --control-token, on behalf of the browser.

    `refused`: why the bank refused the form, for the page that shows the form again.
    """

    service: BankService
    request: Request
    answering: Answering
    token: str | None
    csrf: str
    query: PageForm
    form: PageForm = field(default_factory=lambda: PageForm({}))
    params: Mapping[str, str] = field(default_factory=dict)
    refused: ControlRefused | None = None

    @property
    def bank(self) -> Bank:
        return self.service.bank

    @property
    def home(self) -> str:
        return root_of(self.request) + "/console"

    def send(self, method: str, path: str, body: Any = None, *, yaml: str | None = None) -> Answered:
        """The raw answer of `/_emulator/PATH`, called with the browser's Host header, so that the same checks apply."""
        headers = [(name, value) for name, value in self.request.headers if name.lower() in ("host", "accept")]
        content = b"" if body is None else json.dumps(body).encode()
        if yaml is not None:
            headers.append(("Content-Type", "application/yaml"))
            content = yaml.encode()
        elif content or method in ("POST", "PUT"):
            headers.append(("Content-Type", "application/json"))
        if self.token is not None:
            headers.append(("Authorization", f"Bearer {self.token}"))
        target = f"{self.request.prefix}/_emulator/{path}"
        asked = Request(method, target, tuple(headers), content, self.request.base, self.request.prefix)
        return self.answering(self.service, asked)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON answer of the control interface; raises ControlRefused for 4xx and 5xx.

        Only for operations that wait for nothing: what a shared store answers would never arrive meanwhile.
        """
        return _value(finished(self.send(method, path, body)))

    def ask_in_steps(
        self, method: str, path: str, body: Any = None, *, yaml: str | None = None
    ) -> Generator[object, None, Any]:
        """Like `ask`, for operations that may take long: other requests are answered between the steps."""
        answer = self.send(method, path, body, yaml=yaml)
        while isinstance(answer, Unfinished):
            try:
                yield answer.last
            except StoreUnwritable as error:
                answer.failed = error
            answer = answer.step()
        return _value(answer)

    def every(self, kind: str) -> list[dict[str, Any]]:
        """The list at an address of the control interface, up to the highest limit."""
        listed: list[dict[str, Any]] = self.ask("GET", f"{kind}?limit=1000")[kind]
        return listed

    def part(self, total: int, filters: Mapping[str, str] | None = None, *, size: int = MOST) -> ListPart:
        """Where the address asks to show a list: at its beginning if that is malformed or not below `total`."""
        asked = self.query.get("offset", "0")
        offset = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 8 else 0
        given = urlencode({name: value for name, value in (filters or {}).items() if value})
        return ListPart(total, offset if offset < total else 0, size, f"{given}&" if given else "")

    def at(self, *segments: str) -> str:
        """The address of a page below the console."""
        return "/".join([self.home, *(quote(segment, safe="") for segment in segments)])

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A console page; after a refusal with its status and reasons, and the form as it was typed."""
        bank, refused = self.bank, self.refused
        return html(
            self.request,
            f"console/{template}.html",
            status=refused.status if refused else status,
            at=self.at,
            home=self.home,
            request_base=self.request.base + self.request.prefix,
            navigation=NAVIGATION,
            csrf=self.csrf,
            problem=refused.texts if refused else [],
            wrong=refused.members if refused else frozenset(),
            typed=self.form,
            done=DONE.get(self.query.get("done")),
            bank_id=bank.name,
            now=bank.clock.now(),
            frozen=bank.clock.mode == "frozen",
            logged_in=self.token is not None,
            # of the default bank, whose documents say who has logged out
            logout=self.home.removesuffix(f"{self.request.prefix}/console") + "/console/logout",
            names=self.name_of,
            **values,
        )

    def name_of(self, kind: str, identity: str | None) -> str:
        """The name of a person, an account or another resource; the id of one without a name."""
        if not identity:
            return "nobody yet" if kind == "person" else ""
        named: Mapping[str, Any] | None
        if kind == "person":
            named = people.person(self.bank, identity)
        else:
            named = self.bank.documents.get(_NAMED[kind], identity)
        return named["name"] if named and named.get("name") else identity

    @property
    def confirmed(self) -> bool:
        """Whether the form was sent by the button of a confirmation page."""
        return self.form.get("confirmed") == "yes"

    def confirmation(
        self, title: str, button: str, *, lost: Sequence[str], back: Sequence[str], clock: Any = None
    ) -> Response:
        """A confirmation page before the data `lost` is lost; its button sends the same form again, confirmed.

        `back`: the segments of the page behind Cancel; `clock`: what bank time will be, `{now, mode}`.
        """
        return self.page(
            "confirmation",
            title=title,
            button=button,
            lost=lost,
            clock=clock,
            sent=[(name, value) for name, value in self.form.pairs() if name not in ("csrf", "confirmed")],
            address=root_of(self.request) + path_below(self.request),
            back=self.at(*back),
        )

    def go(self, *segments: str, done: str = "") -> Response:
        """Redirect to a page after a change; `done` is the key of the message in DONE."""
        return see_other(self.at(*segments) + (f"?done={done}" if done else ""))

    def missing(self, what: str) -> Response:
        return self.page("missing", status=404, what=what)


# Messages after a change, by the key in the address; text from an address is never shown.
DONE = {
    "clock": "Bank time was changed.",
    "advanced": "The payment was advanced.",
    "failed": "The payment was rejected.",
    "revoked": "The consent was revoked. The next call of the TPP will be refused.",
    "session-ended": "The session was ended.",
    "withdrawn": "The scenario and its rules were removed. Its changes stay.",
    "rules-cleared": "All rules were removed.",
    "conformance-cleared": "The report was cleared.",
    "settings": "The settings were saved.",
    "saved": "The snapshot was saved.",
    "restored": "The snapshot was restored: documents, bank time, rules and settings are as they were.",
    "deleted": "Deleted.",
    "reset": "The bank was reset: documents, bank time, rules, settings and the request log.",
    "generated": "Customers were generated.",
    "repeated": "The request was sent again with a new signature. This is the new request.",
    "log-emptied": "The request log was cleared.",
    "bank-created": "The bank was created.",
}


def sends(method: str, path: str, *, to: str, done: str) -> Callable[[Screen], Response]:
    """The action of a form that is one operation of the control interface: then the page `to` says what was `done`."""

    def act(screen: Screen) -> Response:
        screen.ask(method, path.format(**{name: quote_segment(value) for name, value in screen.params.items()}))
        return screen.go(to, done=done)

    return act


def quote_segment(name: str) -> str:
    """A name as one segment of a control address."""
    return quote(name, safe="") or "-"
