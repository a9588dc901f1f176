"""The pages where the customer authenticates, at `/sca/{token}` (sca.md#the-pages).

One address with one form per step; the steps and the changes they make are in `bank/authentication/sca.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from emulator.api.messages import Delivery, Response
from emulator.api.render import preferred_language
from emulator.bank.authentication import sca
from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.documents import Account, Card, Sca
from emulator.bank.errors import BankError
from emulator.bank.kinds import AGREEMENT, BASKET, CUSTOMER, PAYMENT, PERSON
from emulator.bank.payment import baskets, payment_views
from emulator.bank.payment.payment_views import ApprovalItem
from emulator.web.pages.browser import Guard, PageForm, path_below, read_form
from emulator.web.pages.rendering import Visit, see_other

_NATIONAL_ID = re.compile(r"[0-9]{8,11}", re.ASCII)
_TITLES = {"access": "access", "consent": "access", "user": "user", "cancellation": "cancellation"}


def answer(bank: Bank, visit: Visit, guard: Guard) -> Response:
    """A page, a redirect to the TPP, or 403, 404, 405, 410."""
    document = sca.get(bank, path_below(visit.request).removeprefix("/sca/"))
    if document is None:
        return visit.unknown()
    visit.customers = preferred_language(document.get("language"))
    if not sca.is_open(document):
        return visit.notice(410, "gone_title", visit.say("gone_text"))
    sca_visit = _ScaVisit(bank, visit, document, guard.token(document["id"]))
    if visit.request.method != "POST":
        response = sca_visit.show()
    else:
        form = read_form(visit.request)
        if not guard.is_token(document["id"], form.get("csrf")):
            return visit.notice(403, "foreign_title", visit.say("forged_text"))
        response = sca_visit.process(form)
    if "delay" in document:
        response.delivery = Delivery(delay=document["delay"])
    return response


@dataclass(slots=True)
class _ScaVisit:
    """One request to an open SCA: shows the page of its step, or processes its form."""

    bank: Bank
    visit: Visit
    document: Sca
    csrf: str

    def show(self) -> Response:
        """The page of the step, or the redirect to the TPP if the SCA cannot continue."""
        return self._redirect_if_failed() or self._page()

    def process(self, form: PageForm) -> Response:
        failed = self._redirect_if_failed()
        if failed is not None:
            return failed
        if form.get("action") == "decline":
            return self._ended(lambda: sca.decline(self.bank, self.document))
        step = sca.steps(self.bank, self.document)[0]
        if form.get("step") != step:
            # The form of an earlier step, from another tab or the Back button: show the present step.
            return see_other(self.visit.address)
        form.action("approve" if step == "approve" else "continue")
        actions = {
            "identity": self._identify,
            "method": self._choose_method,
            "context": self._choose_context,
            "approve": self._approve,
        }
        return actions[step](form)

    def _redirect_if_failed(self) -> Response | None:
        """The redirect to the TPP if the 10 minutes are over or the target of the SCA can no longer be approved."""
        failure = sca.obstacle(self.bank, self.document)
        if failure is None:
            return None
        if self.visit.read_only:
            return see_other(sca.failure_redirect(self.document["redirectUri"], failure))
        return self._ended(lambda: sca.fail(self.bank, self.document, failure))

    def _ended(self, act: Callable[[], str | None]) -> Response:
        """Call `act`, which ends the SCA, and redirect to the TPP."""
        with self.bank.documents.transaction():
            redirect = act()
        if redirect is None:
            text = self.visit.say("left_text", tpp=self.document["tppName"])
            return self.visit.notice(200, "left_title", text)
        return see_other(redirect)

    def _identify(self, form: PageForm) -> Response:
        typed = form.get("nationalId")
        national_id = identity_number(typed)
        if national_id is None:
            return self._page(wrong="identity_wrong", typed=typed[:40])
        if people.person(self.bank, national_id) is None and sca.note_mistyping(self.bank, self.document):
            return self._page(wrong="identity_unknown", typed=typed[:40])
        with self.bank.documents.transaction():
            redirect = sca.identify(self.bank, self.document, national_id)
        return see_other(redirect or self.visit.address)

    def _choose_method(self, form: PageForm) -> Response:
        try:
            sca.choose_method(self.bank, self.document, form.get("method"))
        except BankError:
            return self._page(wrong="method_wrong")
        return see_other(self.visit.address)

    def _choose_context(self, form: PageForm) -> Response:
        choice = form.get("acting")
        context, agreement = (people.PRIVATE, None) if choice == people.PRIVATE else (people.CORPORATE, choice)
        try:
            sca.choose_context(self.bank, self.document, context, agreement)
        except BankError:
            return self._page(wrong="context_wrong")
        return see_other(self.visit.address)

    def _approve(self, form: PageForm) -> Response:
        chosen: list[str] | None = None
        if self.document["purpose"] in sca.ACCOUNT_ACCESS:
            accounts, cards = _to_share(self.bank, self.document)
            offered = {account["id"] for account in accounts} | {card["id"] for card in cards}
            chosen = form.all("account")
            if offered and not chosen:
                return self._page(wrong="access_none", ticked=chosen)
            if not offered.issuperset(chosen):
                return self._page(wrong="access_wrong", ticked=chosen)
        return self._ended(lambda: sca.complete(self.bank, self.document, chosen))

    def _page(self, *, wrong: str | None = None, typed: str | None = None, ticked: list[str] | None = None) -> Response:
        """The page of the present step, with the error in the last form and the values typed into it."""
        document, visit = self.document, self.visit
        step, *ahead = sca.steps(self.bank, document)
        person = people.person(self.bank, document["person"]) if "person" in document else None
        number = document.get("identityHint", "") if typed is None else typed
        shown: dict[str, Callable[[], dict[str, object]]] = {
            "identity": lambda: {"number": number, "known": known_people(self.bank, document)},
            "method": lambda: {"methods": sca.METHODS},
            "context": lambda: {"options": sca.options(self.bank, document["person"], document), "person": person},
            "approve": lambda: {**self._to_approve(), "ticked": ticked},
        }
        return visit.page(
            f"sca/{step}.html",
            status=400 if wrong else 200,
            csrf=self.csrf,
            step=step,
            steps_done=len(document.get("passed", ())),
            steps_ahead=len(ahead),
            tpp=document["tppName"],
            app=bool(document.get("app")),
            wrong=visit.say(wrong) if wrong else None,
            scripted="outcome" in document,
            person_name=person["name"] if person else None,
            **shown[step](),
        )

    def _to_approve(self) -> dict[str, object]:
        document = self.document
        _, agreement_id = sca.acting_as(self.bank, document)
        agreement = self.bank.documents.get(AGREEMENT, agreement_id) if agreement_id else None
        lines = _lines(self.bank, document)
        accounts, cards = _to_share(self.bank, document)
        return {
            "kind": _TITLES.get(document["purpose"], "payments" if len(lines) > 1 else "payment"),
            "lines": lines,
            "totals": _totals(lines),
            "accounts": accounts,
            "cards": cards,
            "company": agreement["name"] if agreement else None,
        }


def identity_number(typed: str) -> str | None:
    """The national identity number (or customer number of a company) without separators; None if it is not one."""
    number = re.sub(r"[\s.\-]", "", typed)
    return number if _NATIONAL_ID.fullmatch(number) else None


def _to_share(bank: Bank, document: Sca) -> tuple[list[Account], list[Card]]:
    """The accounts and cards of the identified person in its context, if the SCA gives access to accounts."""
    if document["purpose"] not in sca.ACCOUNT_ACCESS:
        return [], []
    context, agreement = sca.acting_as(bank, document)
    person = document["person"]
    return people.accounts_of(bank, person, context, agreement), people.cards_of(bank, person, context)


def _lines(bank: Bank, document: Sca) -> list[ApprovalItem]:
    """The payments behind an SCA, one line each (sca.md#dynamic-linking)."""
    if document["purpose"] in ("payment", "cancellation"):
        return payment_views.summary(bank, bank.find(PAYMENT, document["target"]))
    if document["purpose"] == "basket":
        return baskets.summary(bank, bank.find(BASKET, document["target"]))
    return []


def _totals(payments: list[ApprovalItem]) -> list[tuple[str, str]]:
    """The sum of several payments as (amount, currency), one for each currency; none for a single payment."""
    if len(payments) < 2:
        return []
    sums: dict[str, Decimal] = {}
    for line in payments:
        sums[line["currency"]] = sums.get(line["currency"], Decimal(0)) + Decimal(line["amount"])
    return [(str(amount), currency) for currency, amount in sums.items()]


def known_people(bank: Bank, document: Sca | None = None, *, most: int = 8, scanned: int = 200) -> list[dict[str, Any]]:
    """The persons that the sandbox strip offers: the expected one first, then others who could complete the SCA.

    At most `most` of the first `scanned` customers and persons, so that the page stays fast in a bank with many.
    """
    expected = None if document is None else sca.expected(document)
    candidates = [] if expected is None else [expected]
    candidates += [customer["customerNumber"] for customer in islice(bank.documents.all(CUSTOMER), scanned)]
    candidates += [person["id"] for person in islice(bank.documents.all(PERSON), scanned)]
    shown: list[dict[str, Any]] = []
    for national_id in dict.fromkeys(candidates):
        known = people.person(bank, national_id)
        options = sca.options(bank, national_id, document) if known else []
        if known is None or not options:
            continue
        shown.append(
            {
                "nationalId": national_id,
                "name": known["name"],
                "companies": [agreement["name"] for _, agreement in options if agreement is not None],
                "private": any(agreement is None for _, agreement in options),
                "expected": national_id == expected,
            }
        )
        if len(shown) == most:
            break
    return shown
