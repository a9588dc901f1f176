"""Pages for authentications, consents and sessions."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from emulator.api.messages import Response
from emulator.bank.authentication import sca, sca_control
from emulator.bank.customers import consents, sessions
from emulator.bank.documents import Sca
from emulator.bank.kinds import CONSENT, CUSTOMER, SESSION
from emulator.web.console import payments
from emulator.web.console.screen import ControlRefused, DisplayNames, Screen
from emulator.web.pages import sca_pages

MOST = 100
MOST_WAITING = 20  # each has a form
# The control operation behind each button, and the heading of the page that reports its result.
ENDS = {"approve": "Approved", "reject": "Declined", "expire": "Expired", "fail": "Failed"}
SERVER_ERROR = {"status": 500, "code": "SYSTEM_ERROR", "message": "A system of the bank failed.", "system": "core"}


def sca_listing(screen: Screen) -> Response:
    """List open and past authentications, newest first, with buttons to end the open ones."""
    bank = screen.bank
    waiting = sca_control.waiting(bank, sca_control.LOOKED_AT)
    return screen.page(
        "sca",
        waiting=[
            {**_row(screen, document), "people": _who(screen, document), "asks": payments.asked_for(screen, document)}
            for document in waiting[:MOST_WAITING]
        ],
        waiting_in_all=f"{len(waiting)} or more" if len(waiting) == sca_control.LOOKED_AT else len(waiting),
        past=[_row(screen, document) for document in sca_control.past(bank, MOST)],
        most=MOST,
    )


def _row(screen: Screen, document: Sca) -> dict[str, Any]:
    page = f"{screen.home.removesuffix('/console')}/sca/{document['id']}"
    return {**document, **sca_control.view(screen.bank, document), "page": page}


def _who(screen: Screen, document: Sca) -> list[dict[str, Any]]:
    """The people who may approve: the person of the SCA if it has one, else the first of those allowed to."""
    national_id = document.get("person") or document.get("nationalId")
    if national_id is None:
        return sca_pages.known_people(screen.bank, document, most=20)
    return [{"nationalId": national_id, "name": DisplayNames(screen.bank).person(national_id)}]


def end_sca(screen: Screen) -> Response:
    """Approve, decline, expire or fail an SCA without the customer's browser."""
    how = screen.form.get("how")
    if how not in ENDS:
        raise ControlRefused(400, ["Choose approve, reject, expire or fail."])
    body: dict[str, Any] = SERVER_ERROR if how == "fail" else {}
    if how == "approve" and screen.form.get("nationalId"):
        body = {"nationalId": screen.form.get("nationalId")}
    redirect = screen.control.ask("POST", f"sca/{screen.params['id']}/{how}", body)["redirect"]
    document = sca.get(screen.bank, screen.params["id"])
    heading, failure = ENDS[how], None
    if redirect is None:
        heading = "The customer closed the page"
    elif document is not None and document["status"] == "failed":
        heading = "Not approved" if how == "approve" else heading
        failure = dict(parse_qsl(urlsplit(redirect).query))
    return screen.page("sca_ended", heading=heading, failure=failure, redirect=redirect, document=document)


def listing(screen: Screen) -> Response:
    """List consents and sessions, newest first."""
    bank = screen.bank
    rows = [
        {**document, "state": consents.status(bank, document), **consents.view(bank, document)}
        for document in bank.documents.range(CONSENT, "created", reverse=True, limit=MOST)
    ]
    newest = bank.documents.range(SESSION, "created", reverse=True, limit=MOST)
    return screen.page(
        "consents",
        consents=rows,
        sessions=[{**session, "live": sessions.is_live(bank, session)} for session in newest],
        somebody=next((c["customerNumber"] for c in bank.documents.all(CUSTOMER) if c["type"] == "private"), None),
    )


def revoke(screen: Screen) -> Response:
    """Revoke a consent, as the customer would."""
    screen.control.ask("POST", f"consents/{screen.params['id']}/revoke", {})
    return screen.go("consents", done="revoked")


def end_session(screen: Screen) -> Response:
    """End a live session: the next attended call needs SCA again."""
    if not sessions.end(screen.bank, screen.params["id"]):
        raise ControlRefused(409, ["The session does not exist or has ended."])
    return screen.go("consents", done="session-ended")
