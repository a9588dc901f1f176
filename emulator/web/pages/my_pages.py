"""The customer's own page at `/my`: accounts, consents to withdraw, payments to approve or decline.

A login is an SCA by identity number without a TPP: two pages, one for each step, then a cookie. The content and the
actions of the page are in `bank/payment/self_service.py`.
"""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Response
from emulator.bank.authentication import sca
from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.customers.consents import OwnConsent
from emulator.bank.errors import STATUS, BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD
from emulator.bank.payment import self_service
from emulator.bank.payment.self_service import OwnPayment
from emulator.store import Kind
from emulator.web.pages.browser import Guard, LoginCookie, PageForm, path_below, read_form, root_of
from emulator.web.pages.rendering import BANK, Visit, see_other
from emulator.web.pages.sca_pages import identity_number, known_people
from emulator.web.pages.wording import TEXTS

STEPS = ("identity", "method")
# The messages after a change, by the word in the address; text from an address is never shown.
DONE = ("approved", "half_approved", "declined", "not_signed", "stopped", "kept", "withdrawn", "logged_out")


def answer(bank: Bank, visit: Visit, guard: Guard) -> Response:
    """A page, a redirect after a change, or 400, 403, 404, 405."""
    return _MyVisit(bank, visit, guard).answer()


class _MyVisit:
    def __init__(self, bank: Bank, visit: Visit, guard: Guard) -> None:
        self._bank = bank
        self._visit = visit
        self._guard = guard
        self._home = root_of(visit.request) + "/my"
        self._cookie = LoginCookie(visit.request, "my", path=self._home, same_site="Lax")
        self._token = self._cookie.value

    def answer(self) -> Response:
        segments = path_below(self._visit.request).strip("/").split("/")[1:]
        person = self_service.logged_in(self._bank, self._token) if self._token else None
        if person is not None and people.person(self._bank, person) is None:
            person = None  # the customer was deleted after the login
        if self._visit.request.method != "POST":
            if segments and segments[0] not in ("login", "logout", "payments", "consents"):
                return self._visit.unknown()
            if segments:  # an address that receives forms, reloaded after a refusal
                return see_other(self._address())
            return self._login_page("identity") if person is None else self._overview(person)
        form = read_form(self._visit.request)
        if segments == ["login"]:
            return self._log_in(form)
        if person is None:
            return self._login_page("identity", wrong="my_expired", status=401)
        if not self._guard.is_token(self._purpose(), form.get("csrf")):
            return self._visit.notice(403, "foreign_title", self._visit.say("forged_text"))
        if segments == ["logout"]:
            self_service.log_out(self._bank, self._token)
            return see_other(self._address("logged_out"), headers=(self._cookie.deleted(),))
        try:
            if len(segments) == 2 and segments[0] == "payments":
                return self._decide(person, segments[1], form)
            if len(segments) == 2 and segments[0] == "consents":
                self_service.withdraw(self._bank, person, segments[1])
                return see_other(self._address("withdrawn"))
        except BankError as error:
            return self._overview(person, status=error.status or STATUS[error.code], wrong=self._reason(error.code))
        return self._visit.unknown()

    def _purpose(self) -> str:
        return f"my {self._token}"

    def _address(self, done: str = "") -> str:
        """The address of the page, in the chosen language, with the key of a message."""
        query = [f"lang={self._visit.chosen}"] if self._visit.chosen else []
        query += [f"done={done}"] if done else []
        return self._home + (f"?{'&'.join(query)}" if query else "")

    # Logging in

    def _log_in(self, form: PageForm) -> Response:
        """Check the identity number, then the method; the form of the method sends the number again."""
        if not self._guard.is_token("my login", form.get("csrf")):
            return self._login_page("identity", wrong="my_expired", status=403)
        number = identity_number(form.get("nationalId"))
        if form.get("action") == "decline":
            return see_other(self._address())
        if number is None:
            return self._login_page("identity", wrong="identity_wrong", typed=form.get("nationalId")[:40])
        if people.person(self._bank, number) is None:
            return self._login_page("identity", wrong="identity_unknown", typed=number)
        if form.get("step") != "method":
            return self._login_page("method", typed=number)
        if form.get("method") not in sca.METHODS:
            return self._login_page("method", wrong="method_wrong", typed=number)
        token = self_service.log_in(self._bank, number)
        return see_other(self._address(), headers=(self._cookie.set_to(token),))

    def _login_page(self, step: str, *, wrong: str = "", typed: str = "", status: int | None = None) -> Response:
        visit = self._visit
        done = visit.query.get("done")
        return visit.page(
            f"my/{step}.html",
            status=status or (400 if wrong else 200),
            path=self._home,
            address=f"{self._home}/login" + (f"?lang={visit.chosen}" if visit.chosen else ""),
            csrf=self._guard.token("my login"),
            step=step,
            steps_done=STEPS.index(step),
            steps_ahead=len(STEPS) - STEPS.index(step) - 1,
            tpp=BANK,
            app=False,
            wrong=visit.say(wrong) if wrong else None,
            done=visit.say("my_logged_out") if done == "logged_out" else None,
            scripted=False,
            person_name=None,
            number=typed,
            known=known_people(self._bank),
            methods=sca.METHODS,
        )

    # The page of a logged-in customer

    def _overview(self, person: str, *, status: int = 200, wrong: str | None = None) -> Response:
        visit, done = self._visit, self._visit.query.get("done")
        shown = self_service.overview(self._bank, person)
        consents = [self._consent(consent) for consent in shown["consents"]]
        return visit.page(
            "my/overview.html",
            status=status,
            path=self._home,
            my=self._home,
            language_query=f"?lang={visit.chosen}" if visit.chosen else "",
            csrf=self._guard.token(self._purpose()),
            name=shown["name"],
            wrong=wrong,
            done=visit.say(f"my_{done}") if done in DONE and not wrong else None,
            contexts=[context for context in shown["contexts"] if context["accounts"]],
            waiting=[self._waiting(payment) for payment in shown["payments"]],
            consents=[consent for consent in consents if consent["status"] == "valid"],
            past=[consent for consent in consents if consent["status"] != "valid"],
        )

    def _waiting(self, payment: OwnPayment) -> dict[str, Any]:
        signers = [people.person(self._bank, number) for number in payment["signedBy"]]
        return {
            **payment,
            "company": self._agreement_name(payment["agreement"]),
            "signers": ", ".join(str(signer["name"]) for signer in signers if signer is not None),
        }

    def _consent(self, consent: OwnConsent) -> dict[str, Any]:
        return {
            **consent,
            "company": self._agreement_name(consent["agreement"]),
            "shares": [
                *(self._shared(consent, ACCOUNT, one) for one in consent["accounts"]),
                *(self._shared(consent, CARD, one) for one in consent["cards"]),
            ],
        }

    def _agreement_name(self, agreement_id: str | None) -> str | None:
        agreement = self._bank.documents.get(AGREEMENT, agreement_id) if agreement_id else None
        return str(agreement["name"]) if agreement is not None else None

    def _shared(self, consent: OwnConsent, kind: Kind[Any], resource_id: str) -> dict[str, Any]:
        resource = self._bank.documents.get(kind, resource_id) or {}
        return {
            "name": resource.get("name") or resource.get("product") or resource_id,
            "number": resource.get("bban") or resource.get("maskedPan") or "",
            "reads": [read for read in consent["reads"] if read["resourceId"] == resource_id],
        }

    # Actions of the page

    def _decide(self, person: str, payment_id: str, form: PageForm) -> Response:
        cancels = form.get("cancels") == "yes"
        if form.action("approve", "decline") == "approve":
            outcome = self_service.approve(self._bank, person, payment_id, cancels=cancels)
            words = {"PATC": "half_approved", "CANC": "stopped", "RCVD": ""}
            done = words.get(outcome["transactionStatus"], "approved")
        else:
            outcome = self_service.decline(self._bank, person, payment_id, cancels=cancels)
            done = "kept" if cancels else {"RJCT": "declined"}.get(outcome["transactionStatus"], "not_signed")
        if "code" in outcome or not done:
            return self._overview(person, status=409, wrong=self._reason(outcome.get("code", "")))
        return see_other(self._address(done))

    def _reason(self, code: str) -> str:
        """The reason of a refusal in the language of the page, by its code and not by its English text."""
        key = f"refused_{code}"
        return self._visit.say(key if key in TEXTS else "refused")
