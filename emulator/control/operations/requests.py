"""`requests` and `events`: what was asked and answered, and watching it happen (CONTRACT 9.4)."""

from __future__ import annotations

from collections.abc import Callable

from emulator.api.log import KEPT
from emulator.api.messages import Push, Response, Stream
from emulator.api.query import Parameter
from emulator.api.render import encode, json_response
from emulator.bank.bank import Event
from emulator.bank.errors import BankError
from emulator.control.operation import ControlCall, ControlOperation, object_of
from emulator.scenario.vocabulary import vocabulary


def _list(call: ControlCall) -> Response:
    asked = call.query
    vocabulary().check_operation(asked.get("operation"))
    found = call.service.log.entries(
        operation=asked.get("operation"),
        status=asked.get("status"),
        tpp=asked.get("tpp"),
        payment_id=asked.get("paymentId"),
        limit=asked["limit"],
    )
    return json_response(200, {"requests": [exchange.summary() for exchange in found]})


def _show(call: ControlCall) -> Response:
    exchange = call.service.log.get(call.params["id"])
    if exchange is None:
        raise BankError("RESOURCE_UNKNOWN", f"There is no request {call.params['id'][:100]} among the last {KEPT}.")
    return json_response(200, exchange.detail())


def _clear(call: ControlCall) -> Response:
    call.service.log.clear()
    call.tell("requests", "cleared")
    return Response(204)


def _count(call: ControlCall) -> Response:
    from emulator.scenario import matching
    from emulator.scenario.facts import Facts

    members = call.body.members(("match",), required=("match",))
    matcher = matching.read(members["match"], answered=True) if "match" in members else None
    call.refuse_mistakes()
    count = 0
    if matcher is not None:
        fits = matcher.fits
        count = call.service.log.count(lambda exchange: fits(Facts.of_exchange(exchange)))
    return json_response(200, {"count": count})


def _events(call: ControlCall) -> Stream:
    bank = call.bank

    def subscribe(push: Push) -> Callable[[], None]:
        push(b": watching\n\n")
        return bank.watch(lambda event: push(None if event is None else _chunk(event)))

    return Stream(200, [("Content-Type", "text/event-stream; charset=utf-8")], subscribe)


def _chunk(event: Event) -> bytes:
    """One event as server-sent events have it."""
    return b"event: " + str(event["type"]).encode() + b"\ndata: " + encode(event) + b"\n\n"


OPERATIONS = (
    ControlOperation(
        id="listRequests",
        method="GET",
        path="/requests",
        summary=f"The last {KEPT} requests of TPPs, newest first.",
        handler=_list,
        answers={200: "One line for each request."},
        query=(
            Parameter("operation", "text", "operationId, as /openapi.json has it."),
            Parameter("status", "int", "Status of the answer.", minimum=0, maximum=599),
            Parameter("tpp", "text", "Who signed: a tppId, or the name in the certificate."),
            Parameter("paymentId", "text", "The payment a request was about, or made."),
            Parameter("limit", "int", "How many at most.", minimum=1, maximum=KEPT, default=100),
        ),
    ),
    ControlOperation(
        id="getRequest",
        method="GET",
        path="/requests/{id}",
        summary="A whole exchange, with the diagnosis of its signature and the rules that acted.",
        handler=_show,
        answers={200: "The exchange.", 404: "It is not kept (any more)."},
    ),
    ControlOperation(
        id="clearRequests",
        method="DELETE",
        path="/requests",
        summary="Forget all requests.",
        handler=_clear,
        answers={204: "Done."},
    ),
    ControlOperation(
        id="countRequests",
        method="POST",
        path="/requests/count",
        summary="How many of the kept requests fit; match is what when is in a rule, with status besides.",
        handler=_count,
        answers={200: "The count."},
        body=object_of(("match",), match={"type": "object"}),
        example={"match": {"operation": "createPayment", "status": 201}},
    ),
    ControlOperation(
        id="watchEvents",
        method="GET",
        path="/events",
        summary="Server-sent events: every request and status change, and what is changed about the bank as a whole.",
        handler=_events,
        answers={200: "text/event-stream."},
    ),
)
