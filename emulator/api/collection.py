"""A collection for a REST client that runs from top to bottom: Postman v2.1, or the files of a Bruno folder.

Its requests carry no signature: they are meant for `bank-emulator proxy`, which signs them and adds the headers that
every request needs. Ids go from answer to answer in variables, and each request checks the status of its answer. The
customer's part (approving) is played through the control interface.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from emulator.api import examples
from emulator.api.operation import Operation
from emulator.api.operations import table
from emulator.bank.clock import oslo_date, real_now

NAME = "Bank emulator"
POSTMAN_SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
CUSTOMER = "14888520059"  # of the known state
EXECUTION_DATE = "{{executionDate}}"
_JSON = ("Content-Type", "application/json")
_DATE_SCRIPT = '{store}.{set}("executionDate", new Date(Date.now() + 7 * 864e5).toISOString().slice(0, 10));'
_ABOUT = (
    "Every operation of the TPP interface, to be run from top to bottom. Start the bank and the proxy "
    "(`bank-emulator proxy --port 9090`), which signs these requests, and set `baseUrl` to the proxy's address. Where "
    "the bank has a control token, set `controlToken`. The last request restores the known state."
)


@dataclass(frozen=True, slots=True)
class Step:
    """An operation at its place in the run.

    `saves`: a variable from a place in the answer's body, as JavaScript; `values`: what stands for path parameters in
    place of the variable of their name; `body` in place of the operation's example; `note` tells two steps with the
    same operation apart; `other`: a second status that is as good.
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
        """The statuses that are green."""
        return (self.status,) if self.other is None else (self.status, self.other)


@dataclass(frozen=True, slots=True)
class Entry:
    """One request of a collection; `path` holds variables such as `{{paymentId}}`, `query` parameters to switch on."""

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
        """Whether its body needs a date to come."""
        return self.body is not None and EXECUTION_DATE in self.body


def entries() -> list[Entry]:
    """The whole run, in order."""
    rows = {row.id: row for row in table()}
    shown = examples.bodies(oslo_date(real_now()))
    return [
        _entry(f"{number:02} {folder}", step, rows.get(step.operation), shown)
        for number, (folder, steps) in enumerate(_folders(shown).items(), 1)
        for step in steps
        if step.operation in rows or step.operation in (APPROVE, RETURN)
    ]


APPROVE, RETURN = "approve", "return"  # the customer's part, beside the operations of the table


def _folders(shown: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Step]]:
    link = '_links.scaRedirect.href.split("/").pop()'
    return {
        "Log in": [
            # 401 where the proxy still sends a PSU-ID of before the last initialize; its scaRedirect does as well
            Step("createConsent", 201, {"scaId": link}, other=401),
            Step(APPROVE, 200, {"redirect": "redirect"}, {"id": "{{scaId}}"}, {"nationalId": CUSTOMER}),
            Step(RETURN, 200),
            Step("createBankOfferedConsent", 201, {"consentId": "consentId"}),
            Step("getConsent", 200),
            Step("getConsentStatus", 200),
        ],
        "Customer": [Step("getUser", 200), Step("getUsers", 200), Step("getAgreements", 200)],
        "Accounts": [
            Step("getAccounts", 200, {"accountId": "accounts[0].resourceId"}),
            Step("getAccount", 200),
            Step("getBalances", 200),
            Step("getTransactions", 200, {"transactionId": "transactions.booked[0].transactionId"}),
            Step("getTransactionDetails", 200),
        ],
        "Cards": [
            Step("getCardAccounts", 200, {"cardAccountId": "cardAccounts[0].resourceId"}),
            Step("getCardAccount", 200),
            Step("getCardBalances", 200),
            Step("getCardTransactions", 200),
        ],
        "Payments": [step for title, body in shown["createPayment"].items() for step in _payment(title, body)],
        "Signing baskets": [
            Step(
                "createPayment", 201, {"paymentId": "paymentId"}, *_first(shown["createPayment"]), note="for the basket"
            ),
            Step("createSigningBasket", 201, {"basketId": "basketId"}, body={"paymentIds": ["{{paymentId}}"]}),
            Step("getSigningBasket", 200),
            Step("getSigningBasketStatus", 200),
            Step("startSigningBasketAuthorisation", 201, {"authorisationId": "authorisationId"}),
            Step("getSigningBasketAuthorisations", 200),
            Step("getSigningBasketAuthorisation", 200),
            Step("deleteSigningBasket", 204),
        ],
        "Sandbox customers": [
            Step("createSandboxCustomer", 201, {"customerId": "customerId"}),
            Step("listSandboxCustomers", 200),
            Step("getSandboxCustomer", 200),
            Step("updateSandboxCustomer", 200, body=_renamed(_only(shown["createSandboxCustomer"]))),
        ],
        "Sandbox accounts": [
            Step("createSandboxAccount", 201, {"mockAccountId": "id"}),
            Step("listSandboxAccounts", 200),
            Step("getSandboxAccount", 200),
            Step("updateSandboxAccount", 200),
            Step("createSandboxAccountTransactions", 201, body=shown["createSandboxAccountTransactions"]["several"]),
            Step("listSandboxAccountTransactions", 200, {"transactionId": "[0].id"}),
            Step("getSandboxAccountTransaction", 200),
            Step("deleteSandboxAccountTransactions", 204),
            Step("deleteSandboxAccount", 204),
        ],
        "Sandbox cards": [
            Step("createSandboxCardAccount", 201, {"mockCardAccountId": "resourceId"}),
            Step("listSandboxCardAccounts", 200),
            Step("getSandboxCardAccount", 200),
            Step("updateSandboxCardAccount", 200),
            Step(
                "createSandboxCardAccountTransactions",
                201,
                body=shown["createSandboxCardAccountTransactions"]["several"],
            ),
            Step("listSandboxCardAccountTransactions", 200, {"transactionId": "[0].cardTransactionId"}),
            Step("getSandboxCardAccountTransaction", 200),
            Step("deleteSandboxCardAccountTransactions", 204),
            Step("deleteSandboxCardAccount", 204),
        ],
        "Sandbox agreements": [
            Step("createSandboxAgreement", 201, {"agreementId": "agreementId"}),
            Step("listSandboxAgreements", 200),
            Step("getSandboxAgreement", 200),
            Step("createSandboxEngagement", 201, {"engagementId": "engagementId"}),
            Step("listSandboxEngagements", 200),
            Step("getSandboxEngagement", 200),
            Step("deleteSandboxEngagement", 204),
            Step("deleteSandboxAgreement", 204),
        ],
        "Contact information": [Step("putContactInformation", 200), Step("getContactInformation", 200)],
        "Clean up": [
            Step("deleteSandboxCustomer", 204),
            Step("deleteConsent", 204),
            Step("initializeSandbox", 200),
        ],
    }


def _payment(title: str, body: Mapping[str, Any]) -> list[Step]:
    """The life of a payment that is approved and then cancelled, which an instant one refuses."""
    service, product = examples.product_of(title)
    values = {"payment-service": service, "payment-product": product}
    instant = product.startswith("instant-")
    dated = {} if instant else {"startDate" if "startDate" in body else "requestedExecutionDate": EXECUTION_DATE}
    steps = [
        Step("createPayment", 201, {"paymentId": "paymentId"}, values, {**body, **dated}, title),
        Step("getPayment", 200, {}, values, note=title),
        Step("getPaymentStatus", 200, {}, values, note=title),
        Step("startAuthorisation", 201, {"authorisationId": "authorisationId"}, values, note=title),
        Step("getAuthorisations", 200, {}, values, note=title),
        Step("getAuthorisation", 200, {}, values, note=title),
        Step(APPROVE, 200, {}, {"id": "{{paymentId}}"}, {}, title),
        Step("deletePayment", 409 if instant else 202, {}, values, note=title),
    ]
    if not instant:
        saves = {"authorisationId": "authorisationId"}
        steps += [
            Step("startCancellationAuthorisation", 201, saves, values, note=title),
            Step("getCancellationAuthorisations", 200, {}, values, note=title),
            Step("getCancellationAuthorisation", 200, {}, values, note=title),
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


def _entry(folder: str, step: Step, row: Operation | None, shown: Mapping[str, Mapping[str, Any]]) -> Entry:
    after = f" ({step.note})" if step.note else ""
    if row is None:
        return _customer(folder, step, after)
    body = step.body
    if body is None and row.body is not None:
        body = _only(shown[row.id])
    return Entry(
        folder=folder,
        name=row.summary + after,
        about=f"{row.id}. {(row.handler.__doc__ or '').strip()}",
        method=row.method,
        path=re.sub(r"{([^}]+)}", lambda match: _value(row.path, match[1], step), row.path),
        statuses=step.statuses,
        headers=() if body is None else (_JSON,),
        query={parameter.name: parameter.text for parameter in row.query},
        body=None if body is None else json.dumps(body, indent=2, ensure_ascii=False),
        saves=step.saves,
    )


def _value(path: str, parameter: str, step: Step) -> str:
    """The value of a path parameter: a variable, which `{id}` shares with no other kind of resource."""
    if parameter in step.values:
        return step.values[parameter]
    if parameter == "id":
        parameter = "cardAccountId" if path.startswith("/v1/card-accounts") else "accountId"
    return f"{{{{{parameter}}}}}"


def _customer(folder: str, step: Step, after: str) -> Entry:
    if step.operation == RETURN:
        return Entry(
            folder=folder,
            name="The customer's browser returns",
            about="The redirect after the SCA: the proxy takes the customer's id and the session from it.",
            method="GET",
            path="{{redirect}}",
            statuses=step.statuses,
        )
    return Entry(
        folder=folder,
        name=f"The customer approves{after}",
        about="approveSca of the control interface, in place of the pages that a customer would open.",
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


def _address(entry: Entry) -> str:
    return entry.path if entry.path.startswith("{{") else "{{baseUrl}}" + entry.path


# Postman


def postman(base_url: str) -> dict[str, Any]:
    """The collection in Postman's format v2.1; `base_url` is the first value of its variable `baseUrl`."""
    folders: dict[str, list[dict[str, Any]]] = {}
    for entry in entries():
        folders.setdefault(entry.folder, []).append(_postman(entry))
    return {
        "info": {"name": NAME, "description": _ABOUT, "schema": POSTMAN_SCHEMA},
        "item": [{"name": folder, "item": items} for folder, items in folders.items()],
        "variable": [{"key": name, "value": value, "type": "string"} for name, value in _variables(base_url).items()],
    }


def _postman(entry: Entry) -> dict[str, Any]:
    request: dict[str, Any] = {
        "method": entry.method,
        "description": entry.about,
        "header": [{"key": name, "value": value} for name, value in entry.headers],
        "url": _postman_url(entry),
    }
    if entry.body is not None:
        request["body"] = {"mode": "raw", "raw": entry.body, "options": {"raw": {"language": "json"}}}
    statuses = " or ".join(map(str, entry.statuses))
    check = [
        f'pm.test("the status is {statuses}", () => '
        f"pm.expect(pm.response.code).to.be.oneOf({json.dumps(entry.statuses)}));"
    ]
    check += [
        f'pm.collectionVariables.set("{name}", pm.response.json(){"" if place.startswith("[") else "."}{place});'
        for name, place in entry.saves.items()
    ]
    events = [_script("test", check)]
    if entry.dated:
        events.append(_script("prerequest", [_DATE_SCRIPT.format(store="pm.collectionVariables", set="set")]))
    return {"name": entry.name, "event": events, "request": request, "response": []}


def _postman_url(entry: Entry) -> dict[str, Any]:
    address = _address(entry)
    host, *steps = address.split("/")
    if not steps:
        return {"raw": address, "host": [host]}  # a whole address in one variable, to which a path would add a slash
    query = [{"key": name, "value": "", "description": about, "disabled": True} for name, about in entry.query.items()]
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
    for number, entry in enumerate(entries(), 1):
        if f"{entry.folder}/folder.bru" not in files:
            meta = [f"name: {entry.folder}", f"seq: {entry.folder[:2].lstrip('0')}"]
            files[f"{entry.folder}/folder.bru"] = _block("meta", meta)
        file = re.sub(r"[^A-Za-z0-9 ()-]", "", entry.name)
        files[f"{entry.folder}/{number:03} {file}.bru"] = _bruno(entry, number)
    return files


def _bruno(entry: Entry, number: int) -> str:
    blocks = [_block("meta", [f"name: {entry.name}", "type: http", f"seq: {number}"])]
    body = "none" if entry.body is None else "json"
    blocks.append(_block(entry.method.lower(), [f"url: {_address(entry)}", f"body: {body}", "auth: none"]))
    if entry.query:
        blocks.append(_block("params:query", [f"~{name}:" for name in entry.query]))  # ~: switched off
    if entry.headers:
        blocks.append(_block("headers", [f"{name}: {value}" for name, value in entry.headers]))
    if entry.body is not None:
        blocks.append(_block("body:json", entry.body.splitlines()))
    if entry.saves:
        places = {name: place if place.startswith("[") else f".{place}" for name, place in entry.saves.items()}
        blocks.append(_block("vars:post-response", [f"{name}: res.body{place}" for name, place in places.items()]))
    blocks.append(_block("assert", [f"res.status: in {', '.join(map(str, entry.statuses))}"]))
    if entry.dated:
        blocks.append(_block("script:pre-request", [_DATE_SCRIPT.format(store="bru", set="setVar")]))
    blocks.append(_block("docs", entry.about.splitlines()))
    return "\n".join(blocks)


def _block(name: str, lines: Iterator[str] | list[str]) -> str:
    return "\n".join([f"{name} {{", *(f"  {line}".rstrip() for line in lines), "}", ""])
