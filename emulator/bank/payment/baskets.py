"""Signing baskets: one SCA for several payments, which are then independent of each other (baskets.md).

How many it takes is a matter of its body (`SigningBasket` in `api/shapes/payments.py`).

A basket has no status of its own: it shows the worst of its payments (`state`). It stores who owns it,
its payments, the open SCA, and when it was first signed. A payment names its basket (`basketId`), so that it is in one
at most.

    event                          basket                      payments
    created                        SCA open                    name the basket; all are checked before, all at once
    approved                       `signed`, SCA closed        each that this person may sign is signed; another stays
    approved, some need a second   a further SCA               PATC
    none could be signed           unchanged, the SCA fails    unchanged
    declined                       unchanged                   those in RCVD become RJCT
    deleted, before any signature  gone, with its SCAs         no longer name it; their status stays
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emulator.bank.authentication import authorisations, sca
from emulator.bank.bank import Bank
from emulator.bank.customers.access import Caller
from emulator.bank.documents import Approach, Basket, Payment
from emulator.bank.errors import BankError, Message
from emulator.bank.kinds import BASKET, PAYMENT
from emulator.bank.payment import payment_views, payments
from emulator.bank.products import PAYMENTS
from emulator.bank.scheme.transitions import UNSIGNED, BasketTransactionStatus, basket_status


def create(
    bank: Bank,
    *,
    tpp_id: str,
    national_id: str | None,
    context: str,
    agreement: str | None,
    payment_ids: Sequence[str],
    how: Approach,
) -> Basket:
    """Group payments into a basket with an open SCA (`sca`: the token).

    Raises BankError with every unsuitable payment: RESOURCE_UNKNOWN (in the body), REFERENCE_MIX_INVALID or CONFLICT.
    """
    own = [_own(bank, payment_id, (tpp_id, national_id, context)) for payment_id in payment_ids]
    # A request that names no agreement acts under the agreement of its first payment.
    agreement = agreement or next((payment["agreement"] for payment in own if payment is not None), None)
    members = [payment if payment is not None and payment["agreement"] == agreement else None for payment in own]
    _refuse(members)
    basket: Basket = {
        "id": bank.ids.new(),
        "tpp": tpp_id,
        "nationalId": national_id,
        "context": context,
        "agreement": agreement,
        "payments": list(payment_ids),
        "created": bank.clock.stamp(),
    }
    basket["sca"] = authorisations.open_for(bank, how, basket, "basket", signer=national_id)
    bank.documents.put(BASKET, basket)
    for payment in members:
        if payment is not None:
            payment["basketId"] = basket["id"]
            bank.documents.put(PAYMENT, payment)
    bank.publish({"type": "basket", "id": basket["id"], "status": "RCVD", "at": basket["created"]})
    return basket


def _own(bank: Bank, payment_id: str, owner: tuple[str, str | None, str]) -> Payment | None:
    payment = bank.documents.get(PAYMENT, payment_id)
    if payment is None or (payment["tpp"], payment["nationalId"], payment["context"]) != owner:
        return None
    return payment


def _refuse(members: Sequence[Payment | None]) -> None:
    """Refuse payments that cannot be in the basket: unsuitable ones (400), else those in use elsewhere (409)."""
    wrong, unavailable = [], []
    for index, payment in enumerate(members):
        path = f"paymentIds[{index}]"
        if payment is None:
            wrong.append(Message("RESOURCE_UNKNOWN", "There is no such payment of this customer.", path))
        elif payment["service"] != PAYMENTS:
            wrong.append(Message("REFERENCE_MIX_INVALID", "Bulk and periodic payments cannot be in a basket.", path))
        elif payment["status"] != "RCVD":
            unavailable.append(Message("CONFLICT", f"The payment is {payment['status']}; RCVD was expected.", path))
        elif "basketId" in payment:
            unavailable.append(Message("CONFLICT", "The payment is in another basket.", path))
    if messages := wrong or unavailable:
        error = BankError.several(messages)
        error.in_body = messages is wrong
        raise error


def find(bank: Bank, basket_id: str, *, tpp_id: str, caller: Caller | None) -> Basket:
    """The TPP's own basket; RESOURCE_UNKNOWN for any other."""
    basket = bank.documents.get(BASKET, basket_id)
    if basket is None or basket["tpp"] != tpp_id or not payments.concerns(basket, caller):
        raise BankError("RESOURCE_UNKNOWN", "There is no such basket.", "basketId")
    return basket


def payments_in(bank: Bank, basket: Basket) -> list[Payment]:
    """The payments of a basket, in its order."""
    members = (bank.documents.get(PAYMENT, payment_id) for payment_id in basket["payments"])
    return [payment for payment in members if payment is not None]


def state(bank: Bank, basket: Basket) -> tuple[BasketTransactionStatus, bool]:
    """The basket's status, the worst of its payments, and whether one of them lacks a signature."""
    statuses = [payment["status"] for payment in payments_in(bank, basket)]
    return basket_status(statuses), any(status in UNSIGNED for status in statuses)


def _waiting(bank: Bank, basket: Basket) -> list[Payment]:
    return [payment for payment in payments_in(bank, basket) if payment["status"] in UNSIGNED]


def is_authorised(bank: Bank, basket: Basket) -> bool:
    """Whether the basket has been signed, and no payment of it waits for a second person."""
    return "signed" in basket and all(payment["status"] != "PATC" for payment in payments_in(bank, basket))


def delete(bank: Bank, basket: Basket) -> None:
    """Delete a basket that is not authorised; its payments stay. CONFLICT for an authorised one."""
    if is_authorised(bank, basket):
        raise BankError("CONFLICT", "The basket is authorised and can no longer be deleted.")
    authorisations.forget(bank, basket["id"])
    for payment in payments_in(bank, basket):
        payment.pop("basketId", None)
        bank.documents.put(PAYMENT, payment)
    bank.documents.delete(BASKET, basket["id"])


def start_authorisation(bank: Bank, basket: Basket, how: Approach, *, national_id: str | None) -> tuple[str, str]:
    """Open a further SCA for the basket: (authorisation id, token); CONFLICT when no payment lacks a signature."""
    waiting = _waiting(bank, basket)
    if not waiting:
        raise BankError("CONFLICT", "No payment of this basket waits for a signature.")
    how, signer = payments.addressed(bank, how, waiting, national_id)
    authorisation, token = authorisations.start(bank, how, basket, "basket", signer=signer)
    basket["sca"] = token
    bank.documents.put(BASKET, basket)
    return authorisation, token


def authorised(bank: Bank, basket_id: str, national_id: str, agreement: str | None = None) -> None:
    """Sign all payments that wait for a signature; one that cannot be signed does not stop the others.

    If none can be signed, raises the BankError of the first. `agreement`: as for a payment.
    """
    basket = bank.find(BASKET, basket_id)
    signed = _sign(bank, basket, national_id, agreement)
    for payment in signed:
        if payment["status"] not in UNSIGNED:
            sca.void(bank, payment["id"])  # its own SCA is no longer needed
    if basket["nationalId"] is None:  # then it belongs to the first signer
        basket["nationalId"], basket["agreement"] = signed[0]["nationalId"], signed[0]["agreement"]
    basket["signed"] = bank.clock.stamp()
    basket.pop("sca", None)
    half_signed = next((payment for payment in _waiting(bank, basket) if payment["status"] == "PATC"), None)
    if half_signed is not None:
        token = authorisations.again(bank, basket, able=payments.next_signers(bank, half_signed))
        if token is not None:
            basket["sca"] = token
    bank.documents.put(BASKET, basket)


def _sign(bank: Bank, basket: Basket, national_id: str, agreement: str | None) -> list[Payment]:
    """Sign the waiting payments that this person may sign, at least one; returns them as they are afterwards."""
    signed, refusals = [], []
    for payment in _waiting(bank, basket):
        try:
            payments.authorised(bank, payment["id"], national_id, agreement)
            signed.append(payment["id"])
        except BankError as refusal:  # raised before any change: the payment keeps its status
            refusals.append(refusal)
    if not signed:
        raise refusals[0]
    return [payment for payment in payments_in(bank, basket) if payment["id"] in signed]


def declined(bank: Bank, basket_id: str) -> None:
    """The customer declined: the RCVD payments of the basket are rejected."""
    for payment_id in bank.find(BASKET, basket_id)["payments"]:
        payments.declined(bank, payment_id)


def summary(bank: Bank, basket: Basket) -> list[payment_views.ApprovalItem]:
    """The items that the customer approves: `payment_views.summary` of each payment that waits for a signature."""
    return [item for payment in _waiting(bank, basket) for item in payment_views.summary(bank, payment)]


def listing(bank: Bank, limit: int | None = None) -> list[dict[str, Any]]:
    """All baskets, newest first, as the control interface and the console show them."""
    return [
        {
            "basketId": basket["id"],
            "tpp": basket["tpp"],
            "nationalId": basket["nationalId"],
            "context": basket["context"],
            "transactionStatus": state(bank, basket)[0],
            "payments": basket["payments"],
        }
        for basket in bank.documents.range(BASKET, "created", reverse=True, limit=limit)
    ]


def _awaits_signature(bank: Bank, basket_id: str) -> bool:
    basket = bank.documents.get(BASKET, basket_id)
    return basket is not None and state(bank, basket)[1]


def attach(bank: Bank) -> None:
    """Make a bank's SCAs take effect on its baskets."""
    bank.sca_effects["basket"] = sca.ScaEffect(awaited=_awaits_signature, approved=authorised, declined=declined)
