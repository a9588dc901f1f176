"""Self-service of a person at the bank, without a TPP: for the page `/my`, tests and tools.

It shows accounts and cards in every context, consents with their last use, and payments that wait for this person's
approval; the person can approve, decline and withdraw.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import NotRequired
from urllib.parse import parse_qs, urlsplit

from typing_extensions import TypedDict

from emulator.bank.accounts import accounts, ledger
from emulator.bank.authentication import sca, sca_control
from emulator.bank.bank import Bank
from emulator.bank.clock import stamp
from emulator.bank.customers import access, consents, people
from emulator.bank.documents import Card, Consent, Login, Payment, Sca
from emulator.bank.errors import BankError
from emulator.bank.kinds import CONSENT, LOGIN, PAYMENT, SCA
from emulator.bank.money import plain
from emulator.bank.payment import payment_views, payments
from emulator.bank.scheme.transitions import UNSIGNED

LOOKED_AT = 2_000  # the newest payments of the bank that are searched, so that the page stays fast


class OwnAccount(TypedDict):
    """An account (iban, bban) or card (maskedPan) as its holder sees it."""

    resourceId: str
    name: str
    iban: NotRequired[str]
    bban: NotRequired[str]
    maskedPan: NotRequired[str]
    currency: str
    booked: str
    available: str


class OwnContext(TypedDict):
    """A context in which a person acts, with the accounts and cards visible in it."""

    context: str
    psuCorporateId: NotRequired[str]
    name: NotRequired[str]
    accounts: list[OwnAccount]


class OwnPayment(TypedDict):
    """A payment that waits for approval by a person; `cancels`: its cancellation waits."""

    paymentId: str
    cancels: bool
    transactionStatus: str
    tpp: str
    tppName: str
    agreement: str | None
    signedBy: list[str]
    summary: list[payment_views.ApprovalItem]


class PersonOverview(TypedDict):
    """What a person sees at the bank: accounts, payments that wait for approval, and consents."""

    nationalId: str
    name: str
    contexts: list[OwnContext]
    payments: list[OwnPayment]
    consents: list[consents.OwnConsent]


class Decision(TypedDict):
    """The status of a payment after a decision; `code`: why its SCA failed."""

    paymentId: str
    transactionStatus: str
    code: NotRequired[str]


def overview(bank: Bank, national_id: str) -> PersonOverview:
    """What the person sees at the bank; RESOURCE_UNKNOWN for a person that the bank does not know."""
    person = people.person(bank, national_id)
    if person is None:
        raise BankError("RESOURCE_UNKNOWN", "The bank knows no person with this national identity number.")
    return {
        "nationalId": national_id,
        "name": person["name"],
        "contexts": _contexts(bank, national_id),
        "payments": waiting(bank, national_id),
        "consents": [
            _consent(bank, consent)
            for consent in bank.documents.find(CONSENT, nationalId=national_id, newest_first=True)
            if "replaced" not in consent
        ],
    }


def _contexts(bank: Bank, national_id: str) -> list[OwnContext]:
    """The contexts of the person, each with the visible accounts and cards."""
    contexts: list[OwnContext] = []
    for context, agreement in people.contexts_of(bank, national_id):
        agreement_id = agreement["id"] if agreement is not None else None
        resources: list[OwnAccount] = [
            {
                "resourceId": account["id"],
                "name": account["name"],
                "iban": account["iban"],
                "bban": account["bban"],
                "currency": account["currency"],
                "booked": account["booked"],
                "available": plain(ledger.available(account), account["currency"]),
            }
            for account in people.accounts_of(bank, national_id, context, agreement_id)
        ]
        resources += [_card(bank, card) for card in people.cards_of(bank, national_id, context)]
        own: OwnContext = {"context": context, "accounts": resources}
        if agreement is not None:
            own |= {"psuCorporateId": agreement["id"], "name": agreement["name"]}
        contexts.append(own)
    return contexts


def _card(bank: Bank, card: Card) -> OwnAccount:
    return {
        "resourceId": card["id"],
        "name": card["name"],
        "maskedPan": card["maskedPan"],
        "currency": card["currency"],
        "booked": card["booked"],
        "available": plain(accounts.card_balances(bank, card)["forwardAvailable"], card["currency"]),
    }


def _consent(bank: Bank, consent: Consent) -> consents.OwnConsent:
    """A consent with what the person can still access, and its unattended reads of the last 24 hours."""
    shared = [account["id"] for account in access.shared_accounts(bank, consent)]
    cards = [card["id"] for card in access.shared_cards(bank, consent)]
    return {
        **consents.view(bank, consent),
        "accounts": shared,
        "cards": cards,
        "reads": [
            {"resourceId": resource, "operation": operation, "count": count, "limit": access.UNATTENDED_CALLS}
            for resource in (*shared, *cards)
            for operation in access.COUNTED
            if (count := access.unattended_calls(bank, consent["tpp"], resource, operation))
        ],
        "lastUse": consent.get("lastUse"),
    }


def waiting(bank: Bank, national_id: str) -> list[OwnPayment]:
    """Cancellations and payments that wait for this person, newest first, among the newest LOOKED_AT."""
    newest = bank.documents.range(PAYMENT, "created", reverse=True, limit=LOOKED_AT)
    shown = [
        _waiting(bank, payment, cancels=False)
        for payment in newest
        if payment["status"] in UNSIGNED and payments.may_sign_next(bank, payment, national_id)
    ]
    return [*(_waiting(bank, one, cancels=True) for one in _to_cancel(bank, national_id)), *shown]


def _to_cancel(bank: Bank, national_id: str) -> Iterator[Payment]:
    for opened in sca_control.waiting(bank, sca_control.LOOKED_AT):
        if opened["purpose"] == "cancellation" and opened.get("nationalId") == national_id:
            payment = bank.documents.get(PAYMENT, opened["target"])
            if payment is not None and payments.cancellable(payment):
                yield payment


def _waiting(bank: Bank, payment: Payment, *, cancels: bool) -> OwnPayment:
    opened = bank.documents.find(SCA, target=payment["id"], newest_first=True, limit=1)
    return {
        "paymentId": payment["id"],
        "cancels": cancels,
        "transactionStatus": payment["status"],
        "tpp": payment["tpp"],
        "tppName": opened[0]["tppName"] if opened else payment["tpp"],
        "agreement": payment["agreement"],
        "signedBy": [] if cancels else payment.get("signedBy", []),
        "summary": payment_views.summary(bank, payment),
    }


def approve(bank: Bank, national_id: str, payment_id: str, *, cancels: bool = False) -> Decision:
    """The person approves a payment (or its cancellation) at the bank.

    An open SCA of the payment is completed, so that its TPP sees the same outcome; `code` is the reason if that SCA
    fails. Without an open SCA the payment is signed too. RESOURCE_UNKNOWN; CONFLICT if it does not wait for approval;
    PSU_CREDENTIALS_INVALID if the person may not sign it.
    """
    opened = _awaited(bank, national_id, payment_id, cancels=cancels)
    with bank.documents.transaction():
        if opened is None:
            payments.authorised(bank, payment_id, national_id)
            return _outcome(bank, payment_id, None)
        return _outcome(bank, payment_id, sca_control.approve(bank, opened, national_id=national_id))


def decline(bank: Bank, national_id: str, payment_id: str, *, cancels: bool = False) -> Decision:
    """The person declines; as `approve`."""
    opened = _awaited(bank, national_id, payment_id, cancels=cancels)
    with bank.documents.transaction():
        if opened is None:
            payments.declined(bank, payment_id)
        else:
            sca_control.reject(bank, opened)
        return _outcome(bank, payment_id, None)


def withdraw(bank: Bank, national_id: str, consent_id: str) -> None:
    """The person withdraws a consent; RESOURCE_UNKNOWN for a consent of another person."""
    consent = bank.documents.get(CONSENT, consent_id)
    if consent is None or consent["nationalId"] != national_id:
        raise BankError("RESOURCE_UNKNOWN", f"This person has not granted a consent {consent_id}.")
    consents.revoke(bank, consent_id)


def _awaited(bank: Bank, national_id: str, payment_id: str, *, cancels: bool) -> Sca | None:
    """The newest SCA of the payment that this person can complete; the BankErrors of `approve`."""
    payment = bank.find(PAYMENT, payment_id)
    purpose, signers = ("cancellation", (national_id,)) if cancels else ("payment", (None, national_id))
    waiting = (
        opened
        for opened in bank.documents.find(SCA, target=payment_id, newest_first=True)
        if opened["purpose"] == purpose and opened.get("nationalId") in signers
        if sca.is_open(opened) and not sca.is_late(bank, opened)
    )
    opened = next(waiting, None)
    if cancels:
        if opened is None or not payments.cancellable(payment):
            raise BankError("CONFLICT", "The cancellation of this payment does not wait for this person.")
    elif payment["status"] not in UNSIGNED:
        raise BankError("CONFLICT", f"The payment is {payment['status']} and does not wait for an approval.")
    elif not payments.may_sign_next(bank, payment, national_id):
        raise BankError("PSU_CREDENTIALS_INVALID", "This person may not sign the payment.")
    return opened


def _outcome(bank: Bank, payment_id: str, redirect: str | None) -> Decision:
    decision: Decision = {"paymentId": payment_id, "transactionStatus": bank.find(PAYMENT, payment_id)["status"]}
    # The redirect of a failure has the code in its query; that of a success has none.
    code = parse_qs(urlsplit(redirect or "").query).get("code")
    if code:
        decision["code"] = code[0]
    return decision


LOGIN_LIFETIME = timedelta(hours=1)
MOST_LOGINS = 1_000  # the oldest are deleted


def log_in(bank: Bank, national_id: str) -> str:
    """Log a person in for an hour of bank time; returns the token for the browser."""
    bank.make_room(LOGIN, MOST_LOGINS, passing="yes")
    token = bank.ids.token()
    expires = stamp(bank.clock.now() + LOGIN_LIFETIME)
    bank.documents.put(LOGIN, Login(id=token, nationalId=national_id, expires=expires, passing="yes"))
    return token


def logged_in(bank: Bank, token: str) -> str | None:
    """The person logged in with this token; None if the login is unknown, expired or ended."""
    login = bank.documents.get(LOGIN, token)
    if login is None or bank.clock.stamp() >= str(login["expires"]):
        return None
    return str(login["nationalId"])


def log_out(bank: Bank, token: str) -> None:
    """Log out: the token becomes invalid."""
    bank.documents.delete(LOGIN, token)
