"""Collections for REST clients, to be run from top to bottom: Postman v2.1, or the files of a Bruno folder.

The requests are not signed: they are meant for `bank-emulator proxy`, which signs them and adds the headers that every
request needs. Variables carry ids from one answer to the next request, and each request checks the status of its
answer. The customer's approval is sent to the control interface.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from emulator.api.description import examples
from emulator.api.operations import table
from emulator.bank import products
from emulator.bank.clock import oslo_date, real_now
from emulator.bank.payment import flows

NAME = "Bank emulator"
POSTMAN_SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
CUSTOMER = "14888520059"  # of the known state
EXECUTION_DATE = "{{executionDate}}"
_JSON = ("Content-Type", "application/json")
_DATE_SCRIPT = '{store}.{set}("executionDate", new Date(Date.now() + 7 * 864e5).toISOString().slice(0, 10));'
_ABOUT = (
    "Every operation of the TPP interface, to be run from top to bottom. Start the bank and the proxy "
    "(`bank-emulator proxy --port 9090`), which signs these requests, and set `baseUrl` to the proxy's address. If "
    "the bank has a control token, set `controlToken`. The last request restores the known state."
)


@dataclass(frozen=True, slots=True)
class CollectionRequest:
    """One request of a collection; `path` contains variables such as `{{paymentId}}`, `query` optional parameters.

    `saves`: variables by name, each with a JavaScript path into the answer's body.
    """

    name: str
    about: str
    method: str
    path: str
    statuses: tuple[int, ...]
    headers: tuple[tuple[str, str], ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    saves: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""

    @property
    def dated(self) -> bool:
        """Whether its body needs a future date."""
        return self.body is not None and EXECUTION_DATE in self.body


def requests() -> list[CollectionRequest]:
    """All requests of the run, in order."""
    return [
        replace(request, folder=f"{number:02} {folder}")
        for number, (folder, requests) in enumerate(_folders().items(), 1)
        for request in requests
    ]


_SAVED = {  # variables that come from a list
    "getAccounts": {"accountId": "accounts[0].resourceId"},
    "getTransactions": {"transactionId": "transactions.booked[0].transactionId"},
    "getCardAccounts": {"cardAccountId": "cardAccounts[0].resourceId"},
    "listSandboxAccountTransactions": {"transactionId": "[0].id"},
    "listSandboxCardAccountTransactions": {"transactionId": "[0].cardTransactionId"},
}
_RETURN = CollectionRequest(
    name="The customer's browser returns",
    about="The redirect after the SCA: the proxy stores the PSU-ID and the session id from it.",
    method="GET",
    path="{{redirect}}",
    statuses=(200,),
)


def _examples(operation: str) -> Mapping[str, Any]:
    return examples.bodies(oslo_date(real_now()))[operation]


def _folders() -> dict[str, list[CollectionRequest]]:
    sca_id = '_links.scaRedirect.href.split("/").pop()'
    payments = _examples("createPayment")
    title, first = next(iter(payments.items()))
    [customer] = _examples("createSandboxCustomer").values()
    renamed = {**customer, "name": f"{customer['name']} Ny"}
    return {
        "Log in": [
            # 401 if the proxy still sends a PSU-ID from before the last initialize; its scaRedirect works as well.
            replace(_call("createConsent"), statuses=(201, 401), saves={"scaId": sca_id}),
            _approval("scaId", {"nationalId": CUSTOMER}, saves={"redirect": "redirect"}),
            _RETURN,
            *map(_call, ("createBankOfferedConsent", "getConsent", "getConsentStatus")),
        ],
        "Customer": _under("/v1/user", "/v1/agreements"),
        "Accounts": _under("/v1/accounts"),
        "Cards": _under("/v1/card-accounts"),
        "Payments": [request for title, body in payments.items() for request in _payment(title, body)],
        "Signing baskets": [
            _call("createPayment", "for the basket", values=_product(title), body=first),
            *_under("/v1/signing-baskets", bodies={"POST": {"paymentIds": ["{{paymentId}}"]}}),
        ],
        "Sandbox customers": _under("/v1/sandbox/customers", bodies={"PUT": renamed})[:-1],  # deleted in the end
        "Sandbox accounts": _under("/v1/sandbox/accounts"),
        "Sandbox cards": _under("/v1/sandbox/card-accounts"),
        "Sandbox agreements": _under("/v1/sandbox/agreements"),
        "Contact information": [_call("putContactInformation"), _call("getContactInformation")],
        "Clean up": [*map(_call, ("deleteSandboxCustomer", "deleteConsent", "initializeSandbox"))],
    }


def _under(*paths: str, bodies: Mapping[str, Any] = MappingProxyType({})) -> list[CollectionRequest]:
    """All operations under these paths, in the order of the table; those that delete come last, the inner ones first.

    `bodies`: other ones than the example, by method.
    """
    rows = [row for row in table() if row.path.startswith(paths)]
    deleting = sorted((row for row in rows if row.method == "DELETE"), key=lambda row: -len(row.path))
    return [
        _call(row.id, body=None if row.body is None else bodies.get(row.method))
        for row in (*(row for row in rows if row.method != "DELETE"), *deleting)
    ]


def _product(title: str) -> dict[str, str]:
    """The path parameters of the payment product that the title of an example names."""
    return dict(zip(("payment-service", "payment-product"), examples.product_of(title), strict=True))


def _payment(title: str, body: Mapping[str, Any]) -> list[CollectionRequest]:
    """The requests of a payment that is approved and then cancelled, which some flows refuse."""
    call = partial(_call, note=title, values=_product(title))
    flow = flows.of_product(products.find(*examples.product_of(title)))
    cancellable = flow.allowed("ACTC", "CANC")
    date = "startDate" if "startDate" in body else "requestedExecutionDate" if flow.allowed("ACTC", "PDNG") else None
    dated = {} if date is None else {date: EXECUTION_DATE}
    reads = ("getPayment", "getPaymentStatus", "startAuthorisation", "getAuthorisations", "getAuthorisation")
    cancels = ("startCancellationAuthorisation", "getCancellationAuthorisations", "getCancellationAuthorisation")
    deletion = call("deletePayment")
    return [
        call("createPayment", body={**body, **dated}),
        *map(call, reads),
        _approval("paymentId", {}, note=title),
        *([deletion, *map(call, cancels)] if cancellable else [replace(deletion, statuses=(409,))]),
    ]


def _call(
    operation: str, note: str = "", *, values: Mapping[str, str] = MappingProxyType({}), body: Any = None
) -> CollectionRequest:
    """The request of an operation.

    `note` distinguishes requests with the same operation; `values` of path parameters, which are else variables;
    `body`: in place of the operation's last example.
    """
    row = next(row for row in table() if row.id == operation)
    if body is None and row.body is not None:
        body = list(_examples(row.id).values())[-1]
    return CollectionRequest(
        name=f"{row.summary} ({note})" if note else row.summary,
        about=f"{row.id}. {row.description}",
        method=row.method,
        path=re.sub(r"{([^}]+)}", lambda match: values.get(match[1]) or _variable(row.path, match[1]), row.path),
        statuses=(next(iter(row.answers)),),
        headers=() if body is None else (_JSON,),
        query={parameter.name: parameter.text for parameter in row.query},
        body=None if body is None else json.dumps(body, indent=2, ensure_ascii=False),
        saves=_SAVED.get(row.id) or ({} if row.gives is None else {row.gives[0]: row.gives[1]}),
    )


def _variable(path: str, parameter: str) -> str:
    """The variable of a path parameter; `{id}` has one of its own for each kind of resource."""
    if parameter == "id":
        parameter = "cardAccountId" if path.startswith("/v1/card-accounts") else "accountId"
    return f"{{{{{parameter}}}}}"


def _approval(
    variable: str, body: Mapping[str, str], *, note: str = "", saves: Mapping[str, str] = MappingProxyType({})
) -> CollectionRequest:
    return CollectionRequest(
        name=f"The customer approves ({note})" if note else "The customer approves",
        about="approveSca of the control interface, instead of the pages that a customer would open.",
        method="POST",
        path=f"/_emulator/sca/{{{{{variable}}}}}/approve",
        statuses=(200,),
        headers=(_JSON, ("Authorization", "Bearer {{controlToken}}")),
        body=json.dumps(body),
        saves=saves,
    )


def _variables(base_url: str) -> dict[str, str]:
    """The variables that have a value before the first request."""
    return {"baseUrl": base_url, "controlToken": "none", "tppId": examples.PATH["tppId"]}


def _address(request: CollectionRequest) -> str:
    return request.path if request.path.startswith("{{") else "{{baseUrl}}" + request.path


# Postman


def postman(base_url: str) -> dict[str, Any]:
    """The collection in Postman's format v2.1; `base_url` is the initial value of its variable `baseUrl`."""
    folders: dict[str, list[dict[str, Any]]] = {}
    for request in requests():
        folders.setdefault(request.folder, []).append(_postman(request))
    return {
        "info": {"name": NAME, "description": _ABOUT, "schema": POSTMAN_SCHEMA},
        "item": [{"name": folder, "item": items} for folder, items in folders.items()],
        "variable": [{"key": name, "value": value, "type": "string"} for name, value in _variables(base_url).items()],
    }


def _postman(request: CollectionRequest) -> dict[str, Any]:
    item: dict[str, Any] = {
        "method": request.method,
        "description": request.about,
        "header": [{"key": name, "value": value} for name, value in request.headers],
        "url": _postman_url(request),
    }
    if request.body is not None:
        item["body"] = {"mode": "raw", "raw": request.body, "options": {"raw": {"language": "json"}}}
    statuses = " or ".join(map(str, request.statuses))
    check = [
        f'pm.test("the status is {statuses}", () => '
        f"pm.expect(pm.response.code).to.be.oneOf({json.dumps(request.statuses)}));"
    ]
    check += [
        f'pm.collectionVariables.set("{name}", pm.response.json(){"" if place.startswith("[") else "."}{place});'
        for name, place in request.saves.items()
    ]
    events = [_script("test", check)]
    if request.dated:
        events.append(_script("prerequest", [_DATE_SCRIPT.format(store="pm.collectionVariables", set="set")]))
    return {"name": request.name, "event": events, "request": item, "response": []}


def _postman_url(request: CollectionRequest) -> dict[str, Any]:
    address = _address(request)
    host, *steps = address.split("/")
    if not steps:
        return {"raw": address, "host": [host]}  # the variable is a complete address; a path would add a slash
    query = [
        {"key": name, "value": "", "description": about, "disabled": True} for name, about in request.query.items()
    ]
    return {"raw": address, "host": [host], "path": steps, "query": query}


def _script(moment: str, lines: list[str]) -> dict[str, Any]:
    return {"listen": moment, "script": {"type": "text/javascript", "exec": lines}}


# Bruno


def bruno(base_url: str) -> dict[str, str]:
    """The files of a Bruno folder by their path in it; `base_url` is in the environment `proxy`."""
    about = {"version": "1", "name": NAME, "type": "collection"}
    variables = [f"{name}: {value}" for name, value in _variables(base_url).items()]
    files = {
        "bruno.json": json.dumps(about, indent=2) + "\n",
        "collection.bru": _block("docs", _ABOUT.splitlines()),
        "environments/proxy.bru": _block("vars", variables),
    }
    for number, request in enumerate(requests(), 1):
        if f"{request.folder}/folder.bru" not in files:
            meta = [f"name: {request.folder}", f"seq: {request.folder[:2].lstrip('0')}"]
            files[f"{request.folder}/folder.bru"] = _block("meta", meta)
        file = re.sub(r"[^A-Za-z0-9 ()-]", "", request.name)
        files[f"{request.folder}/{number:03} {file}.bru"] = _bruno(request, number)
    return files


def _bruno(request: CollectionRequest, number: int) -> str:
    blocks = [_block("meta", [f"name: {request.name}", "type: http", f"seq: {number}"])]
    body = "none" if request.body is None else "json"
    blocks.append(_block(request.method.lower(), [f"url: {_address(request)}", f"body: {body}", "auth: none"]))
    if request.query:
        blocks.append(_block("params:query", [f"~{name}:" for name in request.query]))  # ~: disabled
    if request.headers:
        blocks.append(_block("headers", [f"{name}: {value}" for name, value in request.headers]))
    if request.body is not None:
        blocks.append(_block("body:json", request.body.splitlines()))
    if request.saves:
        places = {name: place if place.startswith("[") else f".{place}" for name, place in request.saves.items()}
        blocks.append(_block("vars:post-response", [f"{name}: res.body{place}" for name, place in places.items()]))
    blocks.append(_block("assert", [f"res.status: in {', '.join(map(str, request.statuses))}"]))
    if request.dated:
        blocks.append(_block("script:pre-request", [_DATE_SCRIPT.format(store="bru", set="setVar")]))
    blocks.append(_block("docs", request.about.splitlines()))
    return "\n".join(blocks)


def _block(name: str, lines: Iterator[str] | list[str]) -> str:
    return "\n".join([f"{name} {{", *(f"  {line}".rstrip() for line in lines), "}", ""])
