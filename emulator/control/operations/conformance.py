"""`conformance`: the report on the TPPs of a bank, and what a run of checks needs."""

from __future__ import annotations

from typing import Any, Literal

from emulator.api.query import QueryParameter
from emulator.bank.errors import BankError
from emulator.bank.validation import Model, Omittable
from emulator.conformance.observer import conformance_of
from emulator.control.operation import ControlCall, Json, operation


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

    state: Omittable[Literal["paid", "open", "failed"]] = None
    balance: Omittable[str] = None
    transactions: Omittable[int] = None


class Beliefs(Model):
    """What the TPP claims, by the id of the payment or account."""

    beliefs: dict[str, Belief]


@operation("GET", "/conformance", {200: ("The report.", "emulator.conformance.report:Report")})
def get_conformance(call: ControlCall[Any]) -> Json:
    """Get the verdict of every check on the TPPs since start, reset or the last DELETE."""
    return conformance_of(call.service).report()


@operation("DELETE", "/conformance", {204: "Done."})
def clear_conformance(call: ControlCall[Any]) -> None:
    """Clear the report."""
    conformance_of(call.service).forget()
    call.publish("conformance", "cleared")


@operation(
    "POST",
    "/conformance/observations",
    {204: "Done."},
    body=Observation,
    example={"event": "customer", "tpp": "PSDNO-SBX-demo", "present": False},
)
def observe_conformance(call: ControlCall[Observation]) -> None:
    """Record an action of a run: the presence of the customer, a return to the TPP."""
    body = call.body
    conformance_of(call.service).observe(body.tpp, body.model_dump())


@operation("GET", "/conformance/opened", {200: ("Their ids.", {"opened": list[str]})})
def list_opened_sca(call: ControlCall[Any]) -> Json:
    """List the SCAs whose page a browser has opened."""
    return {"opened": conformance_of(call.service).opened()}


@operation(
    "GET",
    "/conformance/facts/{id}",
    {
        200: ("The facts; null for one that the request does not have.", {"facts": dict[str, Any]}),
        404: "The request is not in the log.",
    },
    query=(QueryParameter("names", "text", "Names of facts, separated by commas."),),
)
def get_conformance_facts(call: ControlCall[Any]) -> Json:
    """Get facts of a request in the log, by the names that checks use."""
    exchange = call.service.log.get(call.params["id"])
    if exchange is None:
        raise BankError("RESOURCE_UNKNOWN", f"There is no request {call.params['id'][:100]} in the log.")
    names = [name for name in call.query.get("names", "").split(",") if name]
    return {"facts": conformance_of(call.service).facts(exchange, names)}


@operation("GET", "/conformance/claims", {200: ("Their ids.", {"payments": list[str], "accounts": list[str]})})
def list_claims(call: ControlCall[Any]) -> Json:
    """List the payments and accounts whose claims the checks need."""
    return conformance_of(call.service).claimable()


@operation(
    "PUT",
    "/conformance/claims",
    {204: "Done."},
    body=Beliefs,
    example={"beliefs": {"0a1b2c3d-0000-4000-8000-000000000000": {"state": "paid"}}},
)
def put_claims(call: ControlCall[Beliefs]) -> None:
    """Set what the TPP claims about payments and accounts, to compare it with the ledger."""
    conformance_of(call.service).believe({name: belief.model_dump() for name, belief in call.body.beliefs.items()})
