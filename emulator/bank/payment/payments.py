"""Payments: access, signatures and cancellation (payments.md).

`initiation` creates a payment, `progression` advances it, `payment_views` shows it. Here is what persons decide about
it. Each of these checks everything first and raises before it changes anything:

    decision             in                                   becomes
    approve              RCVD                                 accepted (`progression.accept`), or PATC if another
                                                              person must sign too; then a further SCA is opened
    approve              PATC, by another person              accepted
    decline              RCVD; in PATC nothing changes        RJCT
    DELETE               RCVD, PATC: without an SCA           CANC; open SCAs of the payment end
    approve cancelling   where the flow has a way to CANC     CANC

Who may: for the first signature only the customer of the request, if that one is known; for the second everybody who
may pay from the account under the agreement and has not signed; for cancelling whoever ordered the payment or may pay.
A payment whose customer was not known (`lenient`) belongs to its first signer.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from emulator.bank.authentication import authorisations, sca
from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.customers.access import Caller
from emulator.bank.documents import Account, Approach, Basket, Payment
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, PAYMENT
from emulator.bank.payment import flows, progression
from emulator.bank.payment.initiation import agreement_for, check_open, check_register_limit, engagement_limit
from emulator.bank.scheme.transitions import FINAL, UNSIGNED


def find(bank: Bank, payment_id: str, *, service: str, product: str, tpp_id: str, caller: Caller | None) -> Payment:
    """The TPP's own payment under this address; RESOURCE_UNKNOWN for any other payment, and for one of others."""
    payment = bank.documents.get(PAYMENT, payment_id)
    if (
        payment is None
        or payment["tpp"] != tpp_id
        or payment["product"] != product
        or payment["service"] != service
        or not concerns(payment, caller)
    ):
        raise BankError("RESOURCE_UNKNOWN", "There is no such payment.", "paymentId")
    return payment


def concerns(target: Payment | Basket, caller: Caller | None) -> bool:
    """Whether a payment or basket belongs to the caller, to the agreement of the caller, or to nobody yet."""
    if caller is None or target["nationalId"] in (None, caller.national_id):
        return True
    return caller.agreement is not None and target["agreement"] == caller.agreement


def start_authorisation(bank: Bank, payment: Payment, how: Approach, *, national_id: str | None) -> tuple[str, str]:
    """Open a further SCA for a payment that lacks a signature: (authorisation id, token); CONFLICT for others."""
    if payment["status"] not in UNSIGNED:
        raise BankError("CONFLICT", f"A payment in {payment['status']} needs no authorisation.")
    how, signer = addressed(bank, how, [payment], national_id)
    authorisation, token = authorisations.start(bank, how, payment, "payment", signer=signer)
    payment["sca"] = token
    bank.documents.put(PAYMENT, payment)
    return authorisation, token


def authorised(bank: Bank, payment_id: str, national_id: str, agreement: str | None = None) -> None:
    """The customer has signed: PATC if another person must sign too, else the payment is accepted.

    `agreement`: the one that the person chose, for a payment whose customer was not known.
    SCA_INVALID if the payment needs no signature; PSU_CREDENTIALS_INVALID if the person has signed already or may not
    pay from the account; FORBIDDEN if the person may not pay this amount, and as `check_open`. Nothing is changed then.
    """
    payment = bank.find(PAYMENT, payment_id)
    if payment["status"] not in UNSIGNED:
        raise BankError("SCA_INVALID", f"The payment is {payment['status']} and cannot be signed.")
    if payment["nationalId"] is None:
        _belongs_to(bank, payment, national_id, agreement)
    _check_signer(bank, payment, national_id)
    signed = [*payment.get("signedBy", []), national_id]
    payment["signedBy"] = signed
    if len(signed) < _signatures_needed(bank, payment):
        flows.change(bank, payment, "PATC")
        progression.schedule(bank, payment)
        token = authorisations.again(bank, payment, able=next_signers(bank, payment))
        if token is not None:
            payment["sca"] = token
    else:
        progression.accept(bank, payment)
    bank.documents.put(PAYMENT, payment)


def _belongs_to(bank: Bank, payment: Payment, national_id: str, agreement: str | None) -> None:
    """Assign a payment whose customer was not known to its first signer, and to the agreement of that person."""
    payment["nationalId"] = national_id
    account = bank.documents.get(ACCOUNT, payment["debtorAccountId"])
    if payment["context"] == people.CORPORATE and payment["agreement"] is None and account is not None:
        payment["agreement"] = agreement or agreement_for(bank, national_id, account)
    if payment["agreement"] is not None:
        check_register_limit(bank, payment)


def _check_signer(bank: Bank, payment: Payment, national_id: str) -> None:
    if national_id in payment.get("signedBy", ()) and national_id not in next_signers(bank, payment):
        raise BankError("PSU_CREDENTIALS_INVALID", "Another person has to sign this payment now.")
    another = payment["status"] == "RCVD" and payment["nationalId"] != national_id
    account = _payable(bank, payment, national_id)
    if account is None or another:
        raise BankError("PSU_CREDENTIALS_INVALID", "This person may not sign the payment.")
    check_open(bank, account, payment["initiation"]["debtorAccount"])


def _payable(bank: Bank, payment: Payment, national_id: str) -> Account | None:
    """The account of a payment, if the person may pay from it in the payment's context and agreement."""
    account = bank.documents.get(ACCOUNT, payment["debtorAccountId"])
    if account is None:
        return None
    may = people.may_pay_from(bank, national_id, payment["context"], payment["agreement"], account)
    return account if may else None


def _signatures_needed(bank: Bank, payment: Payment) -> int:
    """2 if the agreement says so or the amount is above the first signer's approvalLimit (assumed), else 1.

    Always 1 if only one person may sign.
    """
    agreement = bank.documents.get(AGREEMENT, payment["agreement"]) if payment["agreement"] else None
    if agreement is None or len(_signers(bank, payment)) < 2:
        return 1
    limit = engagement_limit(bank, payment, payment["signedBy"][0], "approvalLimit")
    above = limit is not None and Decimal(payment["amount"]) > limit
    return 2 if above else int(agreement.get("signatures", 1))


def _signers(bank: Bank, payment: Payment) -> list[str]:
    """The persons of a payment's agreement who may pay from its account."""
    agreement = bank.documents.get(AGREEMENT, payment["agreement"]) if payment["agreement"] else None
    account = bank.documents.get(ACCOUNT, payment["debtorAccountId"])
    if agreement is None or account is None:
        return []
    return [
        person
        for person in people.acting_under(bank, agreement)
        if people.may_pay_from(bank, person, payment["context"], agreement["id"], account)
    ]


def addressed(bank: Bank, how: Approach, waiting: Sequence[Payment], asking: str | None) -> tuple[Approach, str | None]:
    """The approach of a further SCA for payments that lack a signature, and the only person who may complete it.

    If the requesting person may sign one of them, the SCA is for that person, else for anybody who may sign.
    """
    if asking is not None and any(may_sign_next(bank, payment, asking) for payment in waiting):
        return how, asking
    able = [person for payment in waiting for person in next_signers(bank, payment)]
    how, presumed = how.copy(), next(iter(able), asking)
    if able and how.get("identityHint") not in able:
        how.pop("identityHint", None)
    if presumed is not None:
        how["presumed"] = presumed
    owner_alone = all(payment["status"] == "RCVD" for payment in waiting)
    return how, waiting[0]["nationalId"] if owner_alone else None


def may_sign_next(bank: Bank, payment: Payment, person: str) -> bool:
    """Whether a person may give the missing signature; if the payment has no customer yet, anybody who may pay."""
    if payment["status"] == "RCVD" and payment["nationalId"] is None:
        return _payable(bank, payment, person) is not None
    return person in next_signers(bank, payment)


def next_signers(bank: Bank, payment: Payment) -> list[str]:
    """Who may sign a payment next: first its own customer, then the others who may pay from its account.

    Nobody for a payment whose customer is not known yet. If nobody else may sign, the person who has signed may sign
    again: then one person is enough (assumed).
    """
    if payment["status"] == "RCVD":
        return [] if payment["nationalId"] is None else [payment["nationalId"]]
    able = _signers(bank, payment)
    return [person for person in able if person not in payment.get("signedBy", ())] or able


def declined(bank: Bank, payment_id: str) -> None:
    """The customer declined: RCVD becomes RJCT. A declined second signature leaves PATC unchanged (assumed)."""
    payment = bank.documents.get(PAYMENT, payment_id)
    if payment is not None and payment["status"] == "RCVD":
        flows.change(bank, payment, "RJCT", reasons=["declined"])
        bank.documents.put(PAYMENT, payment)


def deletable(payment: Payment) -> bool:
    """Whether links offer DELETE: it cancels immediately while a signature is missing, later after an SCA."""
    status = payment["status"]
    return status not in FINAL and flows.of(payment).deletable(status)


def cancellable(payment: Payment) -> bool:
    """Whether the customer can cancel an authorised payment: its flow allows it, and nothing is executed yet."""
    status = payment["status"]
    return status not in UNSIGNED and flows.of(payment).allowed(status, "CANC")


def cancel(bank: Bank, payment: Payment) -> bool:
    """Cancel a payment that is not authorised (True); return False if an SCA must follow first; CONFLICT."""
    if payment["status"] in UNSIGNED:
        sca.void(bank, payment["id"])
        flows.change(bank, payment, "CANC")
        bank.documents.put(PAYMENT, payment)
        return True
    _refuse_unless_cancellable(payment)
    return False


def _refuse_unless_cancellable(payment: Payment) -> None:
    if not cancellable(payment):
        raise BankError("CONFLICT", f"A payment in {payment['status']} can no longer be cancelled.")


def start_cancellation(bank: Bank, payment: Payment, how: Approach, *, national_id: str | None) -> tuple[str, str]:
    """Open the SCA that cancels an authorised payment: (authorisation id, token); CONFLICT when it is too late.

    One signature cancels, even if two were needed to pay (assumed): of the requesting person, if that person may
    cancel the payment, else of the person who ordered it.
    """
    if payment["status"] in UNSIGNED:
        raise BankError("CONFLICT", "The payment is not authorised yet: DELETE cancels it immediately.")
    _refuse_unless_cancellable(payment)
    if national_id is not None and not _may_cancel(bank, payment, national_id):
        how, national_id = how.copy(), payment["nationalId"]
        how.pop("identityHint", None)  # the page must not preselect a person who may not cancel
    return authorisations.start(bank, how, payment, "cancellation", signer=national_id)


def _may_cancel(bank: Bank, payment: Payment, person: str) -> bool:
    return person == payment["nationalId"] or _payable(bank, payment, person) is not None


def cancelled(bank: Bank, payment_id: str, national_id: str, _agreement: str | None = None) -> None:
    """A person has signed the cancellation; CONFLICT if the payment can no longer be cancelled.

    PSU_CREDENTIALS_INVALID for a person who may not cancel it.
    """
    payment = bank.find(PAYMENT, payment_id)
    _refuse_unless_cancellable(payment)
    if not _may_cancel(bank, payment, national_id):
        raise BankError("PSU_CREDENTIALS_INVALID", "This person may not cancel the payment.")
    flows.change(bank, payment, "CANC")
    bank.documents.put(PAYMENT, payment)


def _awaits_signature(bank: Bank, payment_id: str) -> bool:
    payment = bank.documents.get(PAYMENT, payment_id)
    return payment is not None and payment["status"] in UNSIGNED


def _awaits_cancellation(bank: Bank, payment_id: str) -> bool:
    payment = bank.documents.get(PAYMENT, payment_id)
    return payment is not None and cancellable(payment)


def attach(bank: Bank) -> None:
    """Make a bank's SCAs and settings take effect on its payments."""
    bank.sca_effects["payment"] = sca.ScaEffect(awaited=_awaits_signature, approved=authorised, declined=declined)
    bank.sca_effects["cancellation"] = sca.ScaEffect(awaited=_awaits_cancellation, approved=cancelled)
    bank.settings_followers.append(progression.reschedule)
