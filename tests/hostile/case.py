"""One lie: what is sent, and the status, codes and paths that the bank answers with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from emulator.api.description import examples
from tests.known_state import BULK, DOMESTIC, PERIODIC, SEPA, STRAKS

Messages = tuple[tuple[str, str | None], ...]
Sent = list[tuple[str, str]]

ACCOUNTS = "/v1/accounts"
BASKETS = "/v1/signing-baskets"
CUSTOMERS = "/v1/sandbox/customers"
SANDBOX_ACCOUNTS = "/v1/sandbox/accounts"

_BODIES = examples.bodies(date(2026, 3, 2))
_PAYMENTS = _BODIES["createPayment"]
BODIES: Mapping[str, Any] = {
    SEPA: _PAYMENTS["sepa-credit-transfers"],
    DOMESTIC: _PAYMENTS["norwegian-domestic-credit-transfers"],
    STRAKS: _PAYMENTS["instant-norwegian-domestic-credit-transfers-straks"],
    BULK: _PAYMENTS["bulk norwegian-domestic-credit-transfers"],
    PERIODIC: _PAYMENTS["periodic norwegian-domestic-credit-transfers"],
    CUSTOMERS: next(iter(_BODIES["createSandboxCustomer"].values())),
    SANDBOX_ACCOUNTS: next(iter(_BODIES["createSandboxAccount"].values())),
}


@dataclass(frozen=True)
class Case:
    """A request of a logged-in TPP, `options` as `Tpp.prepare` takes them.

    `spoil` changes the signed headers before they leave, `tpp` names another TPP than the usual one, with `flaw`.
    """

    theme: str
    name: str
    status: int
    messages: Messages
    method: str = "GET"
    path: str = ACCOUNTS
    options: Mapping[str, Any] = field(default_factory=dict)
    spoil: Callable[[Sent], Sent] | None = None
    flaw: str | None = None


def posted(theme: str, name: str, body: bytes, messages: Messages, *, status: int = 400, to: str = SEPA) -> Case:
    """Bytes as a body."""
    return Case(theme, name, status, messages, "POST", to, {"body": body})


def with_member(place: str, value: Any, of: str) -> Any:
    """The example body of an address with one member replaced; `place` like `payments.0.creditorName`."""
    body = deepcopy(BODIES[of])
    holder = body
    *outer, last = place.split(".")
    for step in outer:
        holder = holder[int(step)] if isinstance(holder, list) else holder[step]
    holder[last] = value
    return body


def member(
    theme: str,
    name: str,
    place: str,
    value: Any,
    code: str = "FORMAT_ERROR",
    path: str | None = None,
    *,
    of: str = SEPA,
) -> Case:
    """One member of a body that is otherwise right; refused under its own path unless another is given."""
    messages = ((code, path or place),)
    return Case(theme, name, 400, messages, "POST", of, {"json": with_member(place, value, of)})


def header(
    theme: str,
    name: str,
    sent: str,
    value: str | None,
    code: str = "FORMAT_ERROR",
    *,
    status: int = 400,
    of: str = ACCOUNTS,
) -> Case:
    """One header of a request that is otherwise right."""
    options: dict[str, Any] = {"headers": {sent: value}}
    if of in BODIES:
        return Case(theme, name, status, ((code, sent),), "POST", of, {**options, "json": BODIES[of]})
    return Case(theme, name, status, ((code, sent),), "GET", of, options)


def replaced(name: str, change: Callable[[str], str | None]) -> Callable[[Sent], Sent]:
    """A spoiling that changes the value of one header, None takes it away."""

    def spoil(sent: Sent) -> Sent:
        changed = [(header, change(value) if header.lower() == name.lower() else value) for header, value in sent]
        return [(header, value) for header, value in changed if value is not None]

    return spoil
