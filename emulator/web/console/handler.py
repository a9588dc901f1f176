"""The handler for `/console`: access checks, logins, and pages for refusals."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from urllib.parse import urlsplit

from emulator.api.guards import Attempts
from emulator.api.messages import Answered, Request, Response, Steps, Stream, Unfinished, finished
from emulator.api.service import BankService
from emulator.bank.clock import real_now
from emulator.bank.errors import BankError
from emulator.bank.kinds import CONSOLE
from emulator.store import Documents, StoreUnwritable, StoreVoid
from emulator.web.console.screen import Answering, ControlRefused, Screen
from emulator.web.pages.browser import (
    FormRefused,
    Guard,
    LoginCookie,
    PageForm,
    path_below,
    read_form,
    read_query,
    root_of,
)
from emulator.web.pages.rendering import BarePages, bare, html, see_other

FORMS = "console"  # the purpose of the console's form tokens
LIFETIME = timedelta(hours=12)  # of a login, in real time
_PLACE = re.compile(r"/console([/?][!-~]*)?")  # an address that a login may redirect to


class Logouts(Protocol):
    """Where logouts are stored: `ended` has the time of each login that has ended, by its id."""

    @property
    def ended(self) -> Mapping[str, int]: ...

    def log_out(self, identity: str, started: int) -> Generator[object, None, None]: ...


class BankLogouts:
    """Logouts in memory, and with the documents of a bank, whose reset must not bring a login back."""

    def __init__(self, documents: Callable[[], Documents]) -> None:
        self._documents = documents
        self._ended: dict[str, int] = {}

    @property
    def ended(self) -> Mapping[str, int]:
        stored = CONSOLE.read(self._documents())
        return {**self._ended, **(stored["ended"] if stored is not None else {})}

    def log_out(self, identity: str, started: int) -> Generator[object, None, None]:
        """Store a logout; those of logins that are too old by themselves are forgotten."""
        oldest = started - LIFETIME.total_seconds()
        self._ended = {ended: at for ended, at in {**self.ended, identity: started}.items() if at > oldest}
        CONSOLE.write(self._documents(), {"id": "console", "ended": self._ended})
        yield from ()


class Sessions:
    """Logins to the console: each ends at logout and after 12 hours of real time.

    A cookie has the form `ID.STARTED.MAC`, so that logins need not be stored; logouts are.
    """

    def __init__(self, guard: Guard, token: str, clock: Callable[[], datetime], logouts: Logouts) -> None:
        self._logouts = logouts
        self._guard = guard
        self._purpose = f"console session {token}"
        self._clock = clock

    def start(self) -> str:
        """Start a login; returns the value of its cookie."""
        signed = f"{secrets.token_urlsafe(12)}.{int(self._clock().timestamp())}"
        return f"{signed}.{self._guard.token(f'{self._purpose} {signed}')}"

    def is_live(self, cookie_value: str) -> bool:
        identity, started = self._read(cookie_value)
        is_young = started > (self._clock() - LIFETIME).timestamp()
        return identity is not None and is_young and identity not in self._logouts.ended

    def end(self, cookie_value: str) -> Generator[object, None, None]:
        identity, started = self._read(cookie_value)
        if identity is not None:
            yield from self._logouts.log_out(identity, started)

    def _read(self, cookie_value: str) -> tuple[str | None, int]:
        """Id and time of the login whose cookie this is; (None, 0) if its signature is wrong."""
        signed, _, mac = cookie_value.rpartition(".")
        identity, _, started = signed.partition(".")
        genuine = self._guard.is_token(f"{self._purpose} {signed}", mac)
        return (identity, int(started)) if genuine else (None, 0)


class Console(BarePages):
    """The console of every bank.

    `answering` is the control interface; `token` the --control-token, with which people log in if it is set; `default`
    returns the bank whose documents store the logouts, unless they are `shared`.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        answering: Answering,
        default: Callable[[], BankService],
        token: str | None = None,
        shared: Logouts | None = None,
    ) -> None:
        self._guard = guard
        self._answering = answering
        self._token = token
        self._attempts = Attempts(token or "")
        logouts = BankLogouts(lambda: default().bank.documents) if shared is None else shared
        self._sessions = Sessions(guard, token or "", real_now, logouts)

    def handle(self, service: BankService, request: Request) -> Answered:
        """Answer with a page, a redirect after a change, or the event stream."""
        return Unfinished(self._steps(service, request)).step()

    def refuse(self, request: Request) -> Response | None:
        """The answer to a request that may not use the console, whichever bank it names; None if it may.

        Who is not logged in gets the form for that, or its answer.
        """
        if not self._guard.knows_host(request):
            return bare(request, 403, "Host name not allowed", "Start the bank with --allow-host to allow it.")
        if request.method not in ("GET", "HEAD", "POST"):
            allowed = ("Allow", "GET, HEAD, POST")
            return bare(request, 405, "Method not allowed", "The console supports GET, HEAD and POST only.", allowed)
        if self._guard.is_foreign(request) and request.method == "POST":
            return bare(request, 403, "Not allowed", "The form came from another application.")
        if self._token is None or self._sessions.is_live(_cookie(request).value):
            return None
        try:
            return self._login(request, path_below(request).strip("/").split("/")[1:])
        except FormRefused as refused:
            return bare(request, refused.status, "The form cannot be read", refused.reason)

    def _steps(self, service: BankService, request: Request) -> Steps:
        refused_at_the_door = self.refuse(request)
        if refused_at_the_door is not None:
            return refused_at_the_door
        try:
            answer = self._entered(service, request)
            if isinstance(answer, Generator):
                answer = yield from answer
            return answer
        except FormRefused as refused:
            return bare(request, refused.status, "The form cannot be read", refused.reason)
        except ControlRefused as refused:
            return bare(request, refused.status, "The bank refused", str(refused))
        except StoreVoid:
            raise
        except StoreUnwritable as failed:
            return self.unwritable(request, 503, f"Nothing was changed: {failed}.")

    def _entered(self, service: BankService, request: Request) -> Response | Stream | Steps:
        segments = path_below(request).strip("/").split("/")[1:]
        form = PageForm({})
        if request.method == "POST":
            form = read_form(request)
            if not self._guard.is_token(FORMS, form.get("csrf")):
                return bare(request, 403, "Not allowed", "The form has expired. Reload the page and try again.")
            if segments == ["logout"]:
                return self._logged_out(request)
        # Most processes never show the console: its pages are imported with the first visit.
        from emulator.web.console import routes

        screen = Screen(
            service=service,
            request=request,
            answering=self._answering,
            token=self._token,
            csrf=self._guard.token(FORMS),
            query=read_query(request),
            form=form,
        )
        if segments in (["events"], ["openapi.json"]) and request.method != "POST":
            return finished(screen.send(request.method, segments[0]))
        try:
            view, params = routes.ROUTER.find(request.method, "/" + "/".join(segments))
        except BankError:
            return screen.missing("page")
        screen.params = params
        return view(screen)

    def _logged_out(self, request: Request) -> Steps:
        yield from self._sessions.end(_cookie(request).value)
        return see_other(root_of(request) + "/console", headers=(_cookie(request).deleted(),))

    def _login(self, request: Request, segments: Sequence[str]) -> Response:
        """Show the login form; a correct token redirects to the requested page."""
        root, place = root_of(request), request.target.removeprefix(request.prefix)
        wrong = ""
        headers: tuple[tuple[str, str], ...] = ()
        if request.method == "POST":
            if list(segments) != ["login"]:
                return see_other(f"{root}/console")
            form = read_form(request)
            asked = form.get("place")
            place = asked if _PLACE.fullmatch(asked) else "/console"
            seconds = self._attempts.wait(request.peer)
            if not seconds and self._attempts.matches(form.get("token"), request.peer):
                login = _cookie(request).set_to(self._sessions.start(), seconds=int(LIFETIME.total_seconds()))
                return see_other(root + place, headers=(login,))
            wrong = f"Too many wrong tokens: try again in {seconds} s." if seconds else "That is not the token."
            headers = (("Retry-After", str(seconds)),) if seconds else ()
        status = (429 if headers else 403) if wrong else 401
        return html(request, "console/login.html", status=status, headers=headers, place=place, wrong=wrong)


def _cookie(request: Request) -> LoginCookie:
    """The cookie of a login, valid for the consoles of all banks."""
    return LoginCookie(request, "console", path=urlsplit(request.base).path or "/", same_site="Strict")
