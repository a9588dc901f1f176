"""The room for `/console`: who may come in, the login, and how a refusal looks."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from emulator.api.messages import Request, Response, Stream
from emulator.bank.errors import BankError
from emulator.store import StoreUnwritable
from emulator.web.console.screen import Answering, Control, ControlRefused
from emulator.web.pages.browser import Form, FormRefused, Guard, header, path_below, read_form, read_query, root_of
from emulator.web.pages.rendering import bare, html, see_other

if TYPE_CHECKING:
    from emulator.api.service import BankService

FORMS = "console"  # what the console's form tokens are for
_PLACE = re.compile(r"/console([/?][!-~]*)?")  # of the console, as an address may write it


class Console:
    """The console of every bank.

    `answering` is the control interface; `token` the --control-token, which then is what people log in with.
    """

    def __init__(self, guard: Guard, *, answering: Answering, token: str | None = None) -> None:
        self._guard = guard
        self._answering = answering
        self._token = token

    def handle(self, service: BankService, request: Request) -> Response | Stream:
        """Answer a page, a redirect after a change, or the event stream; the caller has settled the bank."""
        if not self._guard.knows_host(request):
            return bare(request, 403, "This name is not allowed", "Start the bank with --allow-host to allow it.")
        if request.method not in ("GET", "HEAD", "POST"):
            allowed = ("Allow", "GET, HEAD, POST")
            return bare(request, 405, "Method not allowed", "The console supports GET, HEAD and POST only.", allowed)
        if self._guard.is_foreign(request) and request.method == "POST":
            return bare(request, 403, "Not allowed", "The form came from another application.")
        try:
            return self._entered(service, request)
        except FormRefused as refused:
            return bare(request, refused.status, "The form cannot be read", refused.reason)
        except ControlRefused as refused:
            return bare(request, refused.status, "The bank refused", str(refused))
        except StoreUnwritable as failed:
            return bare(request, 503, "The bank cannot save", f"Nothing was changed: {failed}.")

    def no_bank(self, request: Request, name: str) -> Response:
        """Answer 404 for a bank that is not there (any more)."""
        return bare(request, 404, "Not found", f"There is no bank {name}.")

    def _entered(self, service: BankService, request: Request) -> Response | Stream:
        segments = path_below(request).strip("/").split("/")[1:]
        if self._token is not None and not self._knows(request):
            return self._login(request, segments)
        form = Form({})
        if request.method == "POST":
            form = read_form(request)
            if not self._guard.believes(FORMS, form.get("csrf")):
                return bare(request, 403, "Not allowed", "The form is out of date. Reload the page and try again.")
            if segments == ["logout"]:
                return see_other(root_of(request) + "/console", headers=(self._cookie(request, None),))
        # Most banks are never looked at: the pages are imported when somebody comes.
        from emulator.web.console import places
        from emulator.web.console.screen import Screen

        screen = Screen(
            service=service,
            request=request,
            control=Control(self._answering, service, request, self._token),
            csrf=self._guard.token(FORMS),
            query=read_query(request),
            form=form,
            logged_in=self._token is not None,
        )
        if segments in (["events"], ["openapi.json"]) and request.method != "POST":
            return screen.control.send("GET", segments[0])
        try:
            view, params = places.ROUTER.find(request.method, "/" + "/".join(segments))
        except BankError:
            return screen.missing("page")
        screen.params = dict(params)
        return view(screen)

    def _cookie_name(self, request: Request) -> str:
        # Cookies know no ports: two emulators on one machine must not log each other out.
        return f"bank-emulator-console-{urlsplit(request.base).port or 0}"

    def _session(self) -> str:
        return self._guard.token(f"session {self._token}")

    def _knows(self, request: Request) -> bool:
        name = self._cookie_name(request)
        for pair in (header(request, "cookie") or "").split(";"):
            sent, _, value = pair.strip().partition("=")
            if sent == name and hmac.compare_digest(value.encode(), self._session().encode()):
                return True
        return False

    def _cookie(self, request: Request, value: str | None) -> tuple[str, str]:
        base = urlsplit(request.base)
        secure = "; Secure" if base.scheme == "https" else ""
        ending = "; Max-Age=0" if value is None else ""
        return (
            "Set-Cookie",
            f"{self._cookie_name(request)}={value or ''}; Path={base.path or '/'}; HttpOnly; SameSite=Strict"
            f"{secure}{ending}",
        )

    def _login(self, request: Request, segments: Sequence[str]) -> Response:
        """Ask for the token, and lead who knows it to the page that was asked for."""
        root, place = root_of(request), request.target.removeprefix(request.prefix)
        wrong = False
        if request.method == "POST":
            if list(segments) != ["login"]:
                return see_other(f"{root}/console")
            form = read_form(request)
            asked = form.get("place")
            place = asked if _PLACE.fullmatch(asked) else "/console"
            if hmac.compare_digest(form.get("token").encode(), (self._token or "").encode()):
                return see_other(root + place, headers=(self._cookie(request, self._session()),))
            wrong = True
        status = 403 if wrong else 401
        return html(request, "console/login.html", status=status, at_home=True, place=place, wrong=wrong)
