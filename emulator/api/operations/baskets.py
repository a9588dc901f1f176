"""Signing baskets: one SCA for several payments (SPEC 2.2, 4.1, 4.2; CONTRACT 7)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.customer import approach_of
from emulator.api.headers import BASKET_GET, BASKET_POST
from emulator.api.notification_headers import notifying
from emulator.api.operation import SCA_APPROACH, Access, Call, Operation, Reply
from emulator.api.operations.payments import PISP, REDIRECT, authorisation_reply, payer_of
from emulator.api.render import message_body
from emulator.bank.authentication import authorisations
from emulator.bank.documents import Basket
from emulator.bank.payment import baskets, lifecycle

_BASKETS = "/v1/signing-baskets"
_BASKET = f"{_BASKETS}/{{basketId}}"


def _links(call: Call, basket: Basket, *, lacks_signature: bool) -> dict[str, Any]:
    path = f"{_BASKETS}/{basket['id']}"
    own = call.link(path) if baskets.is_signed(basket) else call.link(path, "GET", "DELETE")
    links = {"self": own, "status": call.link(f"{path}/status")}
    if lacks_signature:
        links["startAuthorisation"] = call.link(f"{path}/authorisations", "POST")
        if "sca" in basket:
            links["scaRedirect"] = call.sca_link(basket["sca"])
    return links


@notifying("basket", "basketId")
def create_basket(call: Call) -> Reply:
    """Group existing payments; 201 with a scaRedirect to the page where the customer approves all of them."""
    national_id, context, agreement = payer_of(call)
    basket = baskets.create(
        call.bank,
        tpp_id=call.tpp.id,
        national_id=national_id,
        context=context,
        agreement=agreement,
        payment_ids=call.body["paymentIds"],
        how=approach_of(call),
    )
    body: dict[str, Any] = {"basketId": basket["id"], "transactionStatus": "RCVD"}
    if call.warnings:
        body["tppMessages"] = [message_body(message) for message in call.warnings]
    body["_links"] = _links(call, basket, lacks_signature=True)
    return Reply(201, body, (call.location(f"{_BASKETS}/{basket['id']}"), SCA_APPROACH))


def _basket(call: Call) -> Basket:
    caller = call.caller
    return baskets.find(
        call.bank,
        call.params["basketId"],
        tpp_id=call.tpp.id,
        national_id=caller.national_id if caller else None,
        agreement=caller.agreement if caller else None,
    )


def get_basket(call: Call) -> Reply:
    """The payments of a basket and the worst of their statuses."""
    basket = _basket(call)
    status, lacks_signature = lifecycle.basket_state(call.bank, basket)
    links = _links(call, basket, lacks_signature=lacks_signature)
    return Reply(200, {"payments": basket["payments"], "transactionStatus": status, "_links": links})


def get_basket_status(call: Call) -> Reply:
    """The worst of the statuses of a basket's payments."""
    basket = _basket(call)
    status, lacks_signature = lifecycle.basket_state(call.bank, basket)
    return Reply(200, {"transactionStatus": status, "_links": _links(call, basket, lacks_signature=lacks_signature)})


def delete_basket(call: Call) -> Reply:
    """Dissolve a basket that is not authorised; its payments stay."""
    baskets.delete(call.bank, _basket(call))
    return Reply(204)


@notifying("basket", "basketId")
def start_basket_authorisation(call: Call) -> Reply:
    """A further SCA for the payments of the basket that lack a signature."""
    basket = _basket(call)
    signer = call.caller.national_id if call.caller else None
    started = baskets.start_authorisation(call.bank, basket, approach_of(call), national_id=signer)
    return authorisation_reply(call, f"{_BASKETS}/{basket['id']}/authorisations", *started)


def get_basket_authorisations(call: Call) -> Reply:
    """The ids of a basket's authorisations."""
    return Reply(200, {"authorisationIds": authorisations.listing(call.bank, _basket(call)["id"])})


def get_basket_authorisation(call: Call) -> Reply:
    """scaStatus of a basket's authorisation."""
    basket = _basket(call)
    return Reply(200, {"scaStatus": authorisations.status(call.bank, basket["id"], call.params["authorisationId"])})


_ANSWERS = "emulator.api.shapes.answers"

_row = partial(Operation, roles=PISP, access=Access.PSU, tag="Signing baskets")

OPERATIONS = (
    _row(
        id="createSigningBasket",
        notifies=True,
        gives=("basketId", "basketId"),
        method="POST",
        path=_BASKETS,
        manual="baskets#creating-a-basket",
        summary="Group payments into a signing basket",
        handler=create_basket,
        column=BASKET_POST,
        body="emulator.api.shapes.payments:SigningBasket",
        answers={201: f"{_ANSWERS}:BasketCreated"},
        needs=REDIRECT,
        remembers=True,
    ),
    _row(
        id="getSigningBasket",
        method="GET",
        path=_BASKET,
        summary="Details of a signing basket",
        handler=get_basket,
        column=BASKET_GET,
        answers={200: f"{_ANSWERS}:BasketDetails"},
    ),
    _row(
        id="getSigningBasketStatus",
        method="GET",
        path=f"{_BASKET}/status",
        summary="Status of a signing basket",
        handler=get_basket_status,
        column=BASKET_GET,
        answers={200: f"{_ANSWERS}:BasketStatus"},
    ),
    _row(
        id="deleteSigningBasket",
        method="DELETE",
        path=_BASKET,
        summary="Dissolve a signing basket",
        handler=delete_basket,
        column=BASKET_GET,
        answers={204: None},
    ),
    _row(
        id="startSigningBasketAuthorisation",
        notifies=True,
        gives=("authorisationId", "authorisationId"),
        method="POST",
        path=f"{_BASKET}/authorisations",
        summary="Start the authorisation of a signing basket",
        handler=start_basket_authorisation,
        column=BASKET_GET,
        answers={201: f"{_ANSWERS}:Authorisation"},
        needs=REDIRECT,
    ),
    _row(
        id="getSigningBasketAuthorisations",
        method="GET",
        path=f"{_BASKET}/authorisations",
        summary="The authorisations of a signing basket",
        handler=get_basket_authorisations,
        column=BASKET_GET,
        answers={200: f"{_ANSWERS}:Authorisations"},
    ),
    _row(
        id="getSigningBasketAuthorisation",
        method="GET",
        path=f"{_BASKET}/authorisations/{{authorisationId}}",
        summary="scaStatus of a basket's authorisation",
        handler=get_basket_authorisation,
        column=BASKET_GET,
        answers={200: f"{_ANSWERS}:ScaStatus"},
    ),
)
