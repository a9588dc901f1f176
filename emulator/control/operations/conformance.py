"""`conformance`: the report on the TPPs of a bank, and what a run of checks needs (CONTRACT 17)."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from emulator.api.messages import Response
from emulator.api.query import QueryParameter
from emulator.api.render import json_response
from emulator.bank.errors import BankError
from emulator.bank.validation import Maybe, Model
from emulator.conformance.observer import Conformance
from emulator.control.forms import closed
from emulator.control.operation import AnswerSpec, ControlCall, ControlOperation


class Observation(Model):
    """An action of a run: the customer came or left (`present`), or a browser was sent to the TPP (`redirect`).

    `forged`: the redirect belongs to another flow.
    """

    event: Literal["customer", "return"]
    tpp: str
    present: bool = True
    redirect: str = ""
    forged: bool = False


class Belief(Model):
    """What the TPP claims about a payment or an account."""

    state: Maybe[Literal["paid", "open", "failed"]] = None
    balance: Maybe[str] = None
    transactions: Maybe[int] = None


class Beliefs(Model):
    """What the TPP claims, by the id of the payment or account."""

    beliefs: dict[str, Belief]


@closed
class Claimable(TypedDict):
    """The ids of payments and accounts whose claims the checks need."""

    payments: list[str]
    accounts: list[str]


@closed
class Opened(TypedDict):
    """The SCAs whose page a browser has opened."""

    opened: list[str]


@closed
class Facts(TypedDict):
    """Facts of a request in the log, by name."""

    facts: dict[str, Any]


def _observer(call: ControlCall[Any]) -> Conformance:
    observer = call.service.observer
    if not isinstance(observer, Conformance):
        raise TypeError("the observer of a bank is its conformance report")
    return observer


def _report(call: ControlCall[Any]) -> Response:
    return json_response(200, _observer(call).report(over=bool(call.query.get("over"))))


def _forget(call: ControlCall[Any]) -> Response:
    _observer(call).forget()
    call.publish("conformance", "cleared")
    return Response(204)


def _observe(call: ControlCall[Observation]) -> Response:
    body = call.body
    _observer(call).observe(body.tpp, body.model_dump())
    return Response(204)


def _opened(call: ControlCall[Any]) -> Response:
    return json_response(200, {"opened": _observer(call).opened()})


def _facts(call: ControlCall[Any]) -> Response:
    exchange = call.service.log.get(call.params["id"])
    if exchange is None:
        raise BankError("RESOURCE_UNKNOWN", f"There is no request {call.params['id'][:100]} in the log.")
    names = [name for name in call.query.get("names", "").split(",") if name]
    return json_response(200, {"facts": _observer(call).facts(exchange, names)})


def _claimable(call: ControlCall[Any]) -> Response:
    return json_response(200, _observer(call).claimable())


def _believe(call: ControlCall[Beliefs]) -> Response:
    _observer(call).believe({name: belief.model_dump() for name, belief in call.body.beliefs.items()})
    return Response(204)


OPERATIONS = (
    ControlOperation(
        id="getConformance",
        method="GET",
        path="/conformance",
        summary="Get the verdict of every check on the TPPs since start, reset or the last DELETE.",
        handler=_report,
        answers={200: AnswerSpec("The report.", "emulator.conformance.report:Report")},
        query=(QueryParameter("over", "boolean", "Judge as if no more requests follow."),),
    ),
    ControlOperation(
        id="clearConformance",
        method="DELETE",
        path="/conformance",
        summary="Clear the report.",
        handler=_forget,
        answers={204: AnswerSpec("Done.")},
    ),
    ControlOperation(
        id="observeConformance",
        method="POST",
        path="/conformance/observations",
        summary="Record an action of a run: the presence of the customer, a return to the TPP.",
        handler=_observe,
        answers={204: AnswerSpec("Done.")},
        body=Observation,
        example={"event": "customer", "tpp": "PSDNO-SBX-demo", "present": False},
    ),
    ControlOperation(
        id="listOpenedSca",
        method="GET",
        path="/conformance/opened",
        summary="List the SCAs whose page a browser has opened.",
        handler=_opened,
        answers={200: AnswerSpec("Their ids.", Opened)},
    ),
    ControlOperation(
        id="getConformanceFacts",
        method="GET",
        path="/conformance/facts/{id}",
        summary="Get facts of a request in the log, by the names that checks use.",
        handler=_facts,
        answers={
            200: AnswerSpec("The facts; null for one that the request does not have.", Facts),
            404: AnswerSpec("The request is not in the log."),
        },
        query=(QueryParameter("names", "text", "Names of facts, separated by commas."),),
    ),
    ControlOperation(
        id="listClaims",
        method="GET",
        path="/conformance/claims",
        summary="List the payments and accounts whose claims the checks need.",
        handler=_claimable,
        answers={200: AnswerSpec("Their ids.", Claimable)},
    ),
    ControlOperation(
        id="putClaims",
        method="PUT",
        path="/conformance/claims",
        summary="Set what the TPP claims about payments and accounts, to compare it with the ledger.",
        handler=_believe,
        answers={204: AnswerSpec("Done.")},
        body=Beliefs,
        example={"beliefs": {"0a1b2c3d-0000-4000-8000-000000000000": {"state": "paid"}}},
    ),
)
