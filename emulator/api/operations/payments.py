"""Payments: initiation, details, status, authorisations and cancellation, of every product (payments.md).

`details_shown` has the members of the details, `state_shown` those of the status; their form is in
`api/shapes/answers.py`. A member is also listed in payments.md#reading-a-payment and in `BOTH` of
`tests/api/test_berlin_group.py`, one that Berlin Group does not have in berlin-group.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from emulator.api.gates import approach_of
from emulator.api.headers import BASKET_GET, INSTANT_POST, TRANSFER_POST
from emulator.api.operation import (
    PISP,
    REDIRECT,
    SCA_APPROACH,
    Access,
    Call,
    Handler,
    Operation,
    Params,
    Reply,
    operation,
)
from emulator.api.query import ALLOW_LOGICAL_DUPLICATE
from emulator.api.render import content_language
from emulator.bank import products, settlement
from emulator.bank.accounts import accounts
from emulator.bank.authentication import authorisations
from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.documents import Basket, Payment
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT
from emulator.bank.notifications import Resource
from emulator.bank.payment import flows, initiation, payee, payments, progression
from emulator.bank.payment.payment_views import psu_message
from emulator.bank.scheme.transitions import UNSIGNED

if TYPE_CHECKING:
    from emulator.api.shapes import answers
    from emulator.api.shapes.parts import Links, ShownAmount

_PRODUCTS = products.table()
_PRODUCT = "/v1/{payment-service}/{payment-product}"
_PAYMENT = f"{_PRODUCT}/{{paymentId}}"
_operation = partial(
    operation, column=BASKET_GET, roles=PISP, access=Access.PSU, tag="Payments", manual="payments#reading-a-payment"
)


def _product(params: Params) -> products.Product:
    return _PRODUCTS[params["payment-service"], params["payment-product"]]


def _path(payment: Payment) -> str:
    return f"/v1/{payment['service']}/{payment['product']}/{payment['id']}"


def _links(call: Call, payment: Payment, path: str) -> Links:
    unsigned, here = payment["status"] in UNSIGNED, call.links_base + path
    links: Links = {
        "self": {"href": here, "verbs": ["GET", "DELETE"] if unsigned or payments.deletable(payment) else ["GET"]},
        "status": {"href": here + "/status", "verbs": ["GET"]},
    }
    if unsigned:
        links["startAuthorisation"] = {"href": here + "/authorisations", "verbs": ["POST"]}
        if "sca" in payment:
            links["scaRedirect"] = call.sca_link(payment["sca"])
    return links


def payer_of(call: Call) -> tuple[str | None, str, str | None]:
    """The payer's national identity number, context and agreement.

    For a payer who is not known before SCA (lenient profile only) they come from the headers.
    """
    caller = call.caller
    if caller is not None:
        return caller.national_id, caller.context, caller.agreement
    agreement = call.headers.get("psu-corporate-id")
    if agreement is not None:
        return None, people.CORPORATE, agreement
    return None, call.headers.get("psu-context") or people.PRIVATE, None


@_operation(
    "POST",
    _PRODUCT,
    notifies=("payment", "paymentId"),
    gives=("paymentId", "paymentId"),
    manual="payments#creating-a-payment",
    column=lambda params: INSTANT_POST if _product(params).instant_headers else TRANSFER_POST,
    body=lambda params: f"emulator.api.shapes.payments:{_product(params).body}",
    query=(ALLOW_LOGICAL_DUPLICATE,),
    needs=REDIRECT,
    remembers=True,
)
def create_payment(call: Call) -> Reply[answers.PaymentCreated]:
    """Initiate a payment.

    201 in RCVD, with a scaRedirect to the page where the customer approves it.
    """
    product = _product(call.params)
    national_id, context, agreement = payer_of(call)
    duplicate = call.query.get("allowLogicalDuplicate") is not False
    how, script = approach_of(call), call.script
    order = initiation.PaymentOrder(call.tpp.id, call.body, how, national_id, context, agreement, duplicate, script)
    payment = initiation.initiate(call.bank, product, order)
    path = _path(payment)
    body: answers.PaymentCreated = {"paymentId": payment["id"], "transactionStatus": payment["status"]}
    if "fee" in payment:
        fees: ShownAmount = {"amount": payment["fee"], "currency": payment["currency"]}
        body["transactionFees"] = fees
        body["transactionFeeIndicator"] = True
    warnings = [*call.warnings, *initiation.warnings(call.bank, call.body)]
    if "payeeVerification" in payment:
        body["payeeVerification"] = payment["payeeVerification"]
        warnings += payee.warnings(payment["payeeVerification"])
    call.warnings = warnings
    body["_links"] = _links(call, payment, path)
    return Reply(201, body, (call.location(path), SCA_APPROACH))


def _payment(call: Call) -> Payment:
    """The payment in the path: it must belong to the TPP and, if the customer is known, to the customer."""
    params = call.params
    return payments.find(
        call.bank,
        params["paymentId"],
        service=params["payment-service"],
        product=params["payment-product"],
        tpp_id=call.tpp.id,
        caller=call.caller,
    )


def _readable(call: Call) -> Payment:
    """The payment, unless the known issue applies: a domestic one cannot be read before it is approved."""
    payment = _payment(call)
    if call.bank.settings.known_issues and payment["status"] in UNSIGNED and products.of(payment).known_issue:
        text = "Known issue: this payment cannot be read before it is approved."
        raise BankError("RESOURCE_UNKNOWN", text, "paymentId")
    return payment


@_operation("GET", _PAYMENT)
def get_payment(call: Call) -> Reply[answers.PaymentDetails]:
    """Details of a payment.

    The members of the initiation, and the state of the payment.
    """
    payment = _readable(call)
    body = details_shown(call.bank, payment, content_language(call.headers))
    body["_links"] = _links(call, payment, _path(payment))
    return Reply(200, body)


def details_shown(bank: Bank, payment: Payment, language: str = "en") -> answers.PaymentDetails:
    """The members of the initiation and of the payment's state, without fundsAvailable and links.

    transactionFees and its indicator if and only if there is a fee.
    """
    # The type checker takes on trust the initiation, which has the shape of its product, and the members of the flow.
    shown = cast("answers.PaymentDetails", dict(payment["initiation"]))
    shown["paymentId"] = payment["id"]
    shown["transactionStatus"] = payment["status"]
    message = psu_message(payment, language)
    if message is not None:
        shown["psuMessage"] = message
    if "fee" in payment:
        shown["transactionFees"] = {"amount": payment["fee"], "currency": payment["currency"]}
        shown["transactionFeeIndicator"] = True
    name = payment.get("debtorName")
    if name is None and (debtor := bank.documents.get(ACCOUNT, payment["debtorAccountId"])) is not None:
        name = accounts.holder(bank, debtor)
    if name is not None:
        shown["debtorName"] = name
    if "payeeVerification" in payment:
        shown["payeeVerification"] = payment["payeeVerification"]
    if payment["status"] not in UNSIGNED:
        of_flow: Any = flows.of(payment).details(payment)
        shown |= of_flow
    return shown


@_operation("GET", f"{_PAYMENT}/status")
def get_payment_status(call: Call) -> Reply[answers.PaymentStatus]:
    """Status of a payment.

    The status; with `progression: {polls: N}` the read counts towards the next step.
    """
    payment = _readable(call)
    body = state_shown(call.bank, payment, content_language(call.headers))
    body["_links"] = _links(call, payment, _path(payment))
    progression.read(call.bank, payment)
    return Reply(200, body)


def state_shown(bank: Bank, payment: Payment, language: str = "en") -> answers.PaymentStatus:
    """The members of the status without links; fundsAvailable after authorisation only.

    `language`: of psuMessage, `en` or `nb`.
    """
    shown = cast("answers.PaymentStatus", {"paymentId": payment["id"], "transactionStatus": payment["status"]})
    if "fundsAvailable" in payment:
        shown["fundsAvailable"] = settlement.funds_available(bank, payment)
    message = psu_message(payment, language)
    if message is not None:
        shown["psuMessage"] = message
    return shown


@_operation("DELETE", _PAYMENT, statuses=(202, 204))
def delete_payment(call: Call) -> Reply[answers.CancellationStarted | None]:
    """Cancel a payment.

    204 for a payment that is not authorised; 202 if the customer must approve the cancellation; else 409.
    """
    payment = _payment(call)
    path = _path(payment)
    if payments.cancel(call.bank, payment):
        return Reply(204, None)
    links = {
        "self": call.link(path, "GET", "DELETE"),
        "status": call.link(f"{path}/status"),
        "startAuthorisation": call.link(f"{path}/cancellation-authorisations", "POST"),
    }
    return Reply(202, {"paymentId": payment["id"], "transactionStatus": payment["status"], "_links": links})


def of_authorisations(
    name: str,
    words: str,
    path: str,
    *,
    row: Callable[..., Callable[[Handler], Operation]],
    notifies: tuple[Resource, str],
    find: Callable[[Call], Payment | Basket],
    start: Callable[..., tuple[str, str]],
    further: str,
    cancels: bool = False,
) -> Iterator[Operation]:
    """Operations that start, list and read the authorisations of a resource, which is called `words`.

    `name` ends the operationIds; `find` gives the resource of a call; `further` describes what is started, and `start`
    gives the id of the authorisation and the token of its SCA.
    """

    def started(call: Call) -> Reply[answers.Authorisation]:
        signer = call.caller.national_id if call.caller else None
        authorisation_id, token = start(call.bank, find(call), approach_of(call), national_id=signer)
        links = {"scaRedirect": call.sca_link(token), "scaStatus": call.link(f"{call.path}/{authorisation_id}")}
        body: answers.Authorisation = {"scaStatus": "started", "authorisationId": authorisation_id, "_links": links}
        return Reply(201, body, (SCA_APPROACH,))

    def every(call: Call) -> Reply[answers.Authorisations]:
        return Reply(200, {"authorisationIds": authorisations.listing(call.bank, find(call)["id"], cancels=cancels)})

    def one(call: Call) -> Reply[answers.ScaStatus]:
        identity = call.params["authorisationId"]
        return Reply(200, {"scaStatus": authorisations.status(call.bank, find(call)["id"], identity, cancels=cancels)})

    row = partial(row, manual="sca#authorisations")
    text, gives = f"Start the authorisation of {words}.\n\n{further}", ("authorisationId", "authorisationId")
    yield row("POST", path, name=f"start{name}", text=text, notifies=notifies, gives=gives, needs=REDIRECT)(started)
    text = f"The authorisations of {words}.\n\nThe ids of the authorisations that the TPP has started."
    yield row("GET", path, name=f"get{name}s", text=text)(every)
    text = f"scaStatus of an authorisation of {words}."
    yield row("GET", f"{path}/{{authorisationId}}", name=f"get{name}", text=text)(one)


_of_payment = partial(of_authorisations, row=_operation, notifies=("payment", "paymentId"), find=_payment)
AUTHORISATIONS = (
    *_of_payment(
        "Authorisation",
        "a payment",
        f"{_PAYMENT}/authorisations",
        start=payments.start_authorisation,
        further="A further SCA for a payment that lacks a signature.",
    ),
    *_of_payment(
        "CancellationAuthorisation",
        "a payment's cancellation",
        f"{_PAYMENT}/cancellation-authorisations",
        start=payments.start_cancellation,
        further="The SCA with which the customer cancels an authorised payment.",
        cancels=True,
    ),
)
