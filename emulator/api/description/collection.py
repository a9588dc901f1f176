"""Collections for REST clients, to be run from top to bottom: Postman v2.1, or the files of a Bruno folder.

The requests are not signed: they are meant for `bank-emulator proxy`, which signs them and adds the headers that every
request needs. Variables carry ids from one answer to the next request, and each request checks the status of its
answer. The customer's approval is sent to the control interface.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from emulator.api.description import examples
from emulator.api.operation import Operation
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
class RunStep:
    """One step of the run: an operation and its expected status.

    `saves`: variables by name, each with a JavaScript path into the answer's body; `values`: values of path parameters
    (default: the variable with the parameter's name); `body`: replaces the operation's example; `note`: distinguishes
    steps with the same operation; `other`: a second status that is accepted.
    """

    operation: str
    status: int
    saves: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    note: str = ""
    other: int | None = None

    @property
    def statuses(self) -> tuple[int, ...]:
        """The accepted statuses."""
        return (self.status,) if self.other is None else (self.status, self.other)


@dataclass(frozen=True, slots=True)
class CollectionRequest:
    """One request of a collection; `path` contains variables such as `{{paymentId}}`, `query` optional parameters."""

    folder: str
    name: str
    about: str
    method: str
    path: str
    statuses: tuple[int, ...]
    headers: tuple[tuple[str, str], ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    saves: Mapping[str, str] = field(default_factory=dict)

    @property
    def dated(self) -> bool:
        """Whether its body needs a future date."""
        return self.body is not None and EXECUTION_DATE in self.body


def requests() -> list[CollectionRequest]:
    """All requests of the run, in order."""
    rows = {row.id: row for row in table()}
    shown = examples.bodies(oslo_date(real_now()))
    return [
        _request(f"{number:02} {folder}", step, rows.get(step.operation), shown)
        for number, (folder, steps) in enumerate(_folders(shown).items(), 1)
        for step in steps
        if step.operation in rows or step.operation in (APPROVE, RETURN)
    ]


APPROVE, RETURN = "approve", "return"  # steps of the customer, which are not operations of the table


def _folders(shown: Mapping[str, Mapping[str, Any]]) -> dict[str, list[RunStep]]:
    link = '_links.scaRedirect.href.split("/").pop()'
    return {
        "Log in": [
            # 401 if the proxy still sends a PSU-ID from before the last initialize; its scaRedirect works as well.
            RunStep("createConsent", 201, {"scaId": link}, other=401),
            RunStep(APPROVE, 200, {"redirect": "redirect"}, {"id": "{{scaId}}"}, {"nationalId": CUSTOMER}),
            RunStep(RETURN, 200),
            RunStep("createBankOfferedConsent", 201, {"consentId": "consentId"}),
            RunStep("getConsent", 200),
            RunStep("getConsentStatus", 200),
        ],
        "Customer": [RunStep("getUser", 200), RunStep("getUsers", 200), RunStep("getAgreements", 200)],
        "Accounts": [
            RunStep("getAccounts", 200, {"accountId": "accounts[0].resourceId"}),
            RunStep("getAccount", 200),
            RunStep("getBalances", 200),
            RunStep("getTransactions", 200, {"transactionId": "transactions.booked[0].transactionId"}),
            RunStep("getTransactionDetails", 200),
        ],
        "Cards": [
            RunStep("getCardAccounts", 200, {"cardAccountId": "cardAccounts[0].resourceId"}),
            RunStep("getCardAccount", 200),
            RunStep("getCardBalances", 200),
            RunStep("getCardTransactions", 200),
        ],
        "Payments": [step for title, body in shown["createPayment"].items() for step in _payment(title, body)],
        "Signing baskets": [
            RunStep(
                "createPayment", 201, {"paymentId": "paymentId"}, *_first(shown["createPayment"]), note="for the basket"
            ),
            RunStep("createSigningBasket", 201, {"basketId": "basketId"}, body={"paymentIds": ["{{paymentId}}"]}),
            RunStep("getSigningBasket", 200),
            RunStep("getSigningBasketStatus", 200),
            RunStep("startSigningBasketAuthorisation", 201, {"authorisationId": "authorisationId"}),
            RunStep("getSigningBasketAuthorisations", 200),
            RunStep("getSigningBasketAuthorisation", 200),
            RunStep("deleteSigningBasket", 204),
        ],
        "Sandbox customers": [
            RunStep("createSandboxCustomer", 201, {"customerId": "customerId"}),
            RunStep("listSandboxCustomers", 200),
            RunStep("getSandboxCustomer", 200),
            RunStep("updateSandboxCustomer", 200, body=_renamed(_only(shown["createSandboxCustomer"]))),
        ],
        "Sandbox accounts": [
            RunStep("createSandboxAccount", 201, {"mockAccountId": "id"}),
            RunStep("listSandboxAccounts", 200),
            RunStep("getSandboxAccount", 200),
            RunStep("updateSandboxAccount", 200),
            RunStep("createSandboxAccountTransactions", 201, body=shown["createSandboxAccountTransactions"]["several"]),
            RunStep("listSandboxAccountTransactions", 200, {"transactionId": "[0].id"}),
            RunStep("getSandboxAccountTransaction", 200),
            RunStep("deleteSandboxAccountTransactions", 204),
            RunStep("deleteSandboxAccount", 204),
        ],
        "Sandbox cards": [
            RunStep("createSandboxCardAccount", 201, {"mockCardAccountId": "resourceId"}),
            RunStep("listSandboxCardAccounts", 200),
            RunStep("getSandboxCardAccount", 200),
            RunStep("updateSandboxCardAccount", 200),
            RunStep(
                "createSandboxCardAccountTransactions",
                201,
                body=shown["createSandboxCardAccountTransactions"]["several"],
            ),
            RunStep("listSandboxCardAccountTransactions", 200, {"transactionId": "[0].cardTransactionId"}),
            RunStep("getSandboxCardAccountTransaction", 200),
            RunStep("deleteSandboxCardAccountTransactions", 204),
            RunStep("deleteSandboxCardAccount", 204),
        ],
        "Sandbox agreements": [
            RunStep("createSandboxAgreement", 201, {"agreementId": "agreementId"}),
            RunStep("listSandboxAgreements", 200),
            RunStep("getSandboxAgreement", 200),
            RunStep("createSandboxEngagement", 201, {"engagementId": "engagementId"}),
            RunStep("listSandboxEngagements", 200),
            RunStep("getSandboxEngagement", 200),
            RunStep("deleteSandboxEngagement", 204),
            RunStep("deleteSandboxAgreement", 204),
        ],
        "Contact information": [RunStep("putContactInformation", 200), RunStep("getContactInformation", 200)],
        "Clean up": [
            RunStep("deleteSandboxCustomer", 204),
            RunStep("deleteConsent", 204),
            RunStep("initializeSandbox", 200),
        ],
    }


def _payment(title: str, body: Mapping[str, Any]) -> list[RunStep]:
    """The steps of a payment that is approved and then cancelled, which some flows refuse."""
    service, product = examples.product_of(title)
    values = {"payment-service": service, "payment-product": product}
    flow = flows.of_product(products.find(service, product))
    cancellable = flow.allowed("ACTC", "CANC")
    date = "startDate" if "startDate" in body else "requestedExecutionDate" if flow.allowed("ACTC", "PDNG") else None
    dated = {} if date is None else {date: EXECUTION_DATE}
    steps = [
        RunStep("createPayment", 201, {"paymentId": "paymentId"}, values, {**body, **dated}, title),
        RunStep("getPayment", 200, {}, values, note=title),
        RunStep("getPaymentStatus", 200, {}, values, note=title),
        RunStep("startAuthorisation", 201, {"authorisationId": "authorisationId"}, values, note=title),
        RunStep("getAuthorisations", 200, {}, values, note=title),
        RunStep("getAuthorisation", 200, {}, values, note=title),
        RunStep(APPROVE, 200, {}, {"id": "{{paymentId}}"}, {}, title),
        RunStep("deletePayment", 202 if cancellable else 409, {}, values, note=title),
    ]
    if cancellable:
        saves = {"authorisationId": "authorisationId"}
        steps += [
            RunStep("startCancellationAuthorisation", 201, saves, values, note=title),
            RunStep("getCancellationAuthorisations", 200, {}, values, note=title),
            RunStep("getCancellationAuthorisation", 200, {}, values, note=title),
        ]
    return steps


def _only(shown: Mapping[str, Any]) -> Any:
    return next(iter(shown.values()))


def _first(shown: Mapping[str, Any]) -> tuple[Mapping[str, str], Any]:
    title, body = next(iter(shown.items()))
    service, product = examples.product_of(title)
    return {"payment-service": service, "payment-product": product}, body


def _renamed(customer: Mapping[str, Any]) -> dict[str, Any]:
    return {**customer, "name": f"{customer['name']} Ny"}


def _request(
    folder: str, step: RunStep, row: Operation | None, shown: Mapping[str, Mapping[str, Any]]
) -> CollectionRequest:
    after = f" ({step.note})" if step.note else ""
    if row is None:
        return _customer(folder, step, after)
    body = step.body
    if body is None and row.body is not None:
        body = _only(shown[row.id])
    return CollectionRequest(
        folder=folder,
        name=row.summary + after,
        about=f"{row.id}. {row.description}",
        method=row.method,
        path=re.sub(r"{([^}]+)}", lambda match: _value(row.path, match[1], step), row.path),
        statuses=step.statuses,
        headers=() if body is None else (_JSON,),
        query={parameter.name: parameter.text for parameter in row.query},
        body=None if body is None else json.dumps(body, indent=2, ensure_ascii=False),
        saves=step.saves,
    )


def _value(path: str, parameter: str, step: RunStep) -> str:
    """The value of a path parameter: a variable; `{id}` has a variable of its own for each kind of resource."""
    if parameter in step.values:
        return step.values[parameter]
    if parameter == "id":
        parameter = "cardAccountId" if path.startswith("/v1/card-accounts") else "accountId"
    return f"{{{{{parameter}}}}}"


def _customer(folder: str, step: RunStep, after: str) -> CollectionRequest:
    if step.operation == RETURN:
        return CollectionRequest(
            folder=folder,
            name="The customer's browser returns",
            about="The redirect after the SCA: the proxy stores the PSU-ID and the session id from it.",
            method="GET",
            path="{{redirect}}",
            statuses=step.statuses,
        )
    return CollectionRequest(
        folder=folder,
        name=f"The customer approves{after}",
        about="approveSca of the control interface, instead of the pages that a customer would open.",
        method="POST",
        path=f"/_emulator/sca/{step.values['id']}/approve",
        statuses=step.statuses,
        headers=(_JSON, ("Authorization", "Bearer {{controlToken}}")),
        body=json.dumps(step.body),
        saves=step.saves,
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
