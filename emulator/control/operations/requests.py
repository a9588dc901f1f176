"""`requests` and `events`: the request log and the event stream (control.md#events)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NotRequired

from typing_extensions import TypedDict

from emulator.api.log import MOST_EXCHANGES, Exchange
from emulator.api.messages import Push, Stream, values_of
from emulator.api.operations import check_operation
from emulator.api.query import QueryParameter
from emulator.api.render import encode
from emulator.bank.bank import Event as BankEvent
from emulator.bank.errors import BankError
from emulator.bank.threads import in_thread
from emulator.control.operation import ControlCall, Json, Work, operation
from emulator.control.operations import Closed, Message


class Event(TypedDict):
    """A change or request, sent as JSON in the data of a server-sent event of the same `type`.

    `request` events also have the members of a line of `GET requests`. Events about the progress of long work have
    `done` and `of`, the amount of work.
    """

    type: str
    id: str
    at: str
    status: NotRequired[str | int]
    target: NotRequired[str | None]
    done: NotRequired[int]
    of: NotRequired[int]
    tpp: NotRequired[str | None]


class ExchangeSummary(Closed):
    """A summary of a request of a TPP and its answer; `notes`: why rules that match did not act."""

    id: str
    at: str
    method: str
    target: str
    operation: NotRequired[str]
    status: int
    tpp: NotRequired[str]
    paymentId: NotRequired[str]
    rules: NotRequired[list[str]]
    notes: NotRequired[list[str]]
    messages: NotRequired[list[Message]]
    traceparent: NotRequired[str]
    milliseconds: float


class SentRequest(Closed):
    """A request as it was sent, identity numbers masked."""

    method: str
    target: str
    headers: list[list[str]]
    body: str


class SentAnswer(Closed):
    """An answer as it was sent."""

    status: int
    headers: list[list[str]]
    body: str


class ExchangeDetail(ExchangeSummary):
    """A request with its answer; `signature` is the diagnosis: validity, signing strings, differences."""

    request: SentRequest
    response: NotRequired[SentAnswer]
    signature: NotRequired[dict[str, Any]]


@operation(
    "GET",
    "/requests",
    {200: ("One line for each request.", {"requests": list[ExchangeSummary]})},
    query=(
        QueryParameter("operation", "text", "operationId, as in /openapi.json."),
        QueryParameter("status", "int", "Status of the answer.", minimum=0, maximum=599),
        QueryParameter("tpp", "text", "The TPP that signed: its tppId, or the name in its certificate."),
        QueryParameter("paymentId", "text", "The payment that a request was about, or created."),
        QueryParameter("limit", "int", "At most that many.", minimum=1, maximum=MOST_EXCHANGES, default=100),
    ),
)
def list_requests(call: ControlCall[Any]) -> Json:
    """List the last 1000 requests of TPPs, newest first."""
    asked = dict(call.query)
    check_operation(asked.get("operation"))
    exchanges = call.service.log.entries(payment_id=asked.pop("paymentId", None), **asked)
    return {"requests": [exchange.summary() for exchange in exchanges]}


def _exchange(call: ControlCall[Any]) -> Exchange:
    """The entry of the log that the address names; RESOURCE_UNKNOWN if there is none."""
    number = call.params["id"]
    exchange = call.service.log.get(number)
    if exchange is None:
        raise BankError("RESOURCE_UNKNOWN", f"There is no request {number[:100]} among the last {MOST_EXCHANGES}.")
    return exchange


@operation(
    "GET",
    "/requests/{id}",
    {200: ("The exchange.", ExchangeDetail), 404: "The request is not, or no longer, in the log."},
)
def get_request(call: ControlCall[Any]) -> Json:
    """Get a request with its answer, the diagnosis of its signature and the rules that acted."""
    return _exchange(call).detail()


@operation(
    "POST",
    "/requests/{id}/repeat",
    {
        200: ("The new request in the log, and the status of its answer.", {"id": str, "status": int}),
        404: "The request is not in the log.",
        409: "The bank has no private key for the certificate of the request, or only a part of its body.",
    },
)
def repeat_request(call: ControlCall[Any]) -> Json:
    """Send a request of the log again, with a new signature; only for TPPs of the sandbox CA."""
    # Imported on use: most processes never repeat a request.
    from emulator.client.signing import Identity, signed_headers

    exchange = _exchange(call)
    sent = exchange.request
    if exchange.sizes[0] > len(sent.body):
        text = f"The log has only {len(sent.body)} of the {exchange.sizes[0]} bytes of this request's body."
        raise BankError("CONFLICT", text)
    headers = {name: value for name, value in sent.headers if name.lower() not in _NOT_REPEATED}
    certificate = next(iter(values_of(sent.headers, "tpp-signature-certificate")), "")
    signer = next((tpp for tpp in call.authority.tpps() if tpp.certificate_header == certificate), None)
    if signer is None:
        raise BankError("CONFLICT", "The bank has no private key for the certificate of this request.")
    headers["X-Request-ID"] = call.bank.ids.uuid()
    signed = signed_headers(sent.method, sent.target, Identity.of(signer), headers=headers, body=sent.body)
    answer = call.service.handle(replace(sent, headers=tuple(signed.items())))
    [repeated] = call.service.log.entries(limit=1)
    return {"id": str(repeated.id), "status": answer.status}


@operation("DELETE", "/requests", {204: "Done."})
def clear_requests(call: ControlCall[Any]) -> None:
    """Delete all requests from the log."""
    documents = call.bank.documents
    with documents.transaction():  # undone with what is undone before it
        documents.undoing(call.service.log.clear())
    call.publish("requests", "cleared")


@operation(
    "POST",
    "/requests/count",
    {200: ("How many requests match.", {"count": int, "cut": NotRequired[int]})},
    body="emulator.scenario.matching:CountFilter",
    example={"match": {"operation": "createPayment", "status": 201}},
)
def count_requests(call: ControlCall[Any]) -> Work:
    """Count the requests in the log that match; match is as when in a rule, and may also have a status.

    `cut`: how many more may match, as the log has only a part of a body with conditions on it.
    """
    from emulator.scenario.matching import Facts

    match, exchanges = call.body.match, list(call.service.log.newest())
    may_fit = match.model_copy()
    may_fit.model_fields_set.discard("body")

    def counted() -> Json:  # for seconds, with many texts for each entry of a large bulk payment
        count, cut = 0, 0
        for exchange in exchanges:
            facts = Facts(exchange.request, exchange.call, exchange)
            if match.body is not None and exchange.sizes[0] > len(exchange.request.body):
                cut += may_fit.fits(facts)
            else:
                count += match.fits(facts)
        return {"count": count, "cut": cut} if cut else {"count": count}

    return (yield from in_thread(counted))


@operation("GET", "/events", {200: ("The events from now on.", Event, "text/event-stream")})
def watch_events(call: ControlCall[Any]) -> Stream:
    """Follow server-sent events: requests, status changes, and changes of the whole bank."""
    bank = call.bank

    def subscribe(push: Push) -> Callable[[], None]:
        push(b": watching\n\n")
        return bank.watch(lambda event: push(None if event is None else _chunk(event)))

    return Stream(200, [("Content-Type", "text/event-stream; charset=utf-8")], subscribe)


def _chunk(event: BankEvent) -> bytes:
    """An event in the format of server-sent events."""
    return b"event: " + str(event["type"]).encode() + b"\ndata: " + encode(event) + b"\n\n"


# Headers that are not repeated: those of the signature, and those of the connection.
_NOT_REPEATED = frozenset(
    {"signature", "date", "digest", "tpp-signature-certificate", "x-request-id", "content-length"}
)
