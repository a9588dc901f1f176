"""Signing baskets: one SCA for several payments (baskets.md)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from emulator.api.gates import approach_of
from emulator.api.headers import BASKET_GET, BASKET_POST
from emulator.api.operation import PISP, REDIRECT, SCA_APPROACH, Access, Call, Reply, operation
from emulator.api.operations.payments import of_authorisations, payer_of
from emulator.bank.documents import Basket
from emulator.bank.payment import baskets

if TYPE_CHECKING:
    from emulator.api.shapes import answers
    from emulator.api.shapes.parts import Links

_BASKETS = "/v1/signing-baskets"
_BASKET = f"{_BASKETS}/{{basketId}}"

_operation = partial(
    operation, column=BASKET_GET, roles=PISP, access=Access.PSU, tag="Signing baskets", manual="baskets"
)


def _links(call: Call, basket: Basket, *, lacks_signature: bool) -> Links:
    path = f"{_BASKETS}/{basket['id']}"
    own = call.link(path) if baskets.is_authorised(call.bank, basket) else call.link(path, "GET", "DELETE")
    links = {"self": own, "status": call.link(f"{path}/status")}
    if lacks_signature:
        links["startAuthorisation"] = call.link(f"{path}/authorisations", "POST")
        if "sca" in basket:
            links["scaRedirect"] = call.sca_link(basket["sca"])
    return links


@_operation(
    "POST",
    _BASKETS,
    notifies=("basket", "basketId"),
    gives=("basketId", "basketId"),
    manual="baskets#creating-a-basket",
    column=BASKET_POST,
    body="emulator.api.shapes.payments:SigningBasket",
    needs=REDIRECT,
    remembers=True,
)
def create_signing_basket(call: Call) -> Reply[answers.BasketCreated]:
    """Group payments into a signing basket.

    Group existing payments; 201 with a scaRedirect to the page where the customer approves all of them.
    """
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
    links, location = _links(call, basket, lacks_signature=True), call.location(f"{_BASKETS}/{basket['id']}")
    body: answers.BasketCreated = {"basketId": basket["id"], "transactionStatus": "RCVD", "_links": links}
    return Reply(201, body, (location, SCA_APPROACH))


def _basket(call: Call) -> Basket:
    return baskets.find(call.bank, call.params["basketId"], tpp_id=call.tpp.id, caller=call.caller)


@_operation("GET", _BASKET)
def get_signing_basket(call: Call) -> Reply[answers.BasketDetails]:
    """Details of a signing basket.

    The payments of a basket and the worst of their statuses.
    """
    basket = _basket(call)
    status, lacks_signature = baskets.state(call.bank, basket)
    links = _links(call, basket, lacks_signature=lacks_signature)
    return Reply(200, {"payments": basket["payments"], "transactionStatus": status, "_links": links})


@_operation("GET", f"{_BASKET}/status")
def get_signing_basket_status(call: Call) -> Reply[answers.BasketStatus]:
    """Status of a signing basket.

    The worst of the statuses of a basket's payments.
    """
    basket = _basket(call)
    status, lacks_signature = baskets.state(call.bank, basket)
    return Reply(200, {"transactionStatus": status, "_links": _links(call, basket, lacks_signature=lacks_signature)})


@_operation("DELETE", _BASKET)
def delete_signing_basket(call: Call) -> Reply[None]:
    """Dissolve a signing basket.

    Dissolve a basket that is not authorised; its payments stay.
    """
    baskets.delete(call.bank, _basket(call))
    return Reply(204, None)


AUTHORISATIONS = tuple(
    of_authorisations(
        "SigningBasketAuthorisation",
        "a signing basket",
        f"{_BASKET}/authorisations",
        row=_operation,
        notifies=("basket", "basketId"),
        find=_basket,
        start=baskets.start_authorisation,
        further="A further SCA for the payments of the basket that lack a signature.",
    )
)
