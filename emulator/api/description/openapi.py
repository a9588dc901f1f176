"""The OpenAPI document of the TPP interface, generated from the operation table and the shapes.

It has two forms. `document` has the operations of the table, with the payment product as a parameter of the path; the
manual shows it. `published` is for generators of clients: it has a path for each payment product, with its own body,
and an operationId for each path; `x-operation` is the operationId of the table, which rules and the request log use.
With `signed="by-proxy"` it is for clients whose requests are signed by something else (`bank-emulator proxy`, an
interceptor): without the headers that signing adds, and without requiring headers that the proxy adds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from emulator.api import headers, render
from emulator.api.description import JsonObject, Writer, content, examples, path_parameter, query_parameter
from emulator.api.messages import Request, Response
from emulator.api.notification_headers import ANSWER_SCHEMAS as NOTIFICATION_ANSWERS
from emulator.api.notification_headers import FORMATS as NOTIFICATION_HEADERS
from emulator.api.operation import PATH_VALUES, SCA_APPROACH, Operation, Params, Route
from emulator.api.operations import PRODUCT, OperationVariant, table, variants
from emulator.api.query import QueryParameter, parse
from emulator.api.router import split_target
from emulator.api.signature.rules import DEMANDED as SIGNATURE_DEMANDS
from emulator.bank import products
from emulator.bank.clock import oslo_date, real_now

BASE = "http://127.0.0.1:8080"  # where a bank listens by default
BY_PROXY = "by-proxy"
QUERY = (QueryParameter("signed", "enum", "Who signs", values=("by-client", BY_PROXY), default="by-client"),)
REFUSALS = {
    "400": "The request is wrong; every message names the cause and the place.",
    "401": "The customer must authenticate first: send the PSU to scaRedirect.",
    "403": "The certificate or the customer's rights do not allow this.",
    "404": "There is no such resource.",
    "409": "The request conflicts with the state of the bank.",
    "429": "The calls without the PSU are used up.",
}
_ERROR = "emulator.api.shapes.answers:Error"
_SIGNED = "Every request is signed and has TPP-Signature-Certificate. "
_BY_PROXY = "`bank-emulator proxy` signs the requests of a plain client."
_SIGNING = frozenset({"Date", "Digest", "Signature", "TPP-Signature-Certificate"})  # headers that signing adds
_SECURITY = {
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "Signature",
        "description": "The signature over each request with the key of the certificate, made by an interceptor.",
    },
    "certificate": {
        "type": "apiKey",
        "in": "header",
        "name": "TPP-Signature-Certificate",
        "description": "The signing certificate, base64 DER on one line.",
    },
}
# Headers of answers: of every success, of a 201 that opens what the PSU approves, and of one that has an address.
_ANSWERED: dict[str, JsonObject] = {
    "X-Request-ID": {"type": "string"},
    "Location": {"type": "string", "format": "uri-reference"},
    SCA_APPROACH[0]: {"type": "string", "enum": [SCA_APPROACH[1]]},
    **{name: dict(schema) for name, schema in NOTIFICATION_ANSWERS.items()},
}
_PARAMETER = re.compile(r"{([^}]+)}")


def respond(request: Request) -> Response:
    """`GET /openapi.json`: the published document, with the address of the request as its server."""
    query = parse(QUERY, split_target(request.target)[1])
    today = oslo_date(real_now())
    return Response(200, [render.JSON], _written(today, request.base, request.prefix, query["signed"]))


@lru_cache(maxsize=8)
def _written(today: date, base: str, prefix: str, signed: str) -> bytes:
    """The document as it is sent; cached, because generating it takes a tenth of a second and blocks other requests."""
    shown = published(today=today, signed=signed, base=base)
    return render.json_response(200, {**shown, "servers": [{"url": base + prefix}]}).body


def document(*, today: date | None = None) -> JsonObject:
    """The operations of the table; dates of examples are relative to `today`."""
    forms = [OperationVariant(row.id, row) for row in table()]
    return _document(forms, today, signed="by-client", headers_apart=False)


def published(*, today: date | None = None, signed: str = "by-client", base: str = BASE) -> JsonObject:
    """The document for generators of clients; `signed` is `by-client` or `by-proxy`, `base` the bank's address."""
    shown = _document(tuple(variants().values()), today, signed=signed, headers_apart=True)
    for path in shown["paths"].values():
        for operation in path.values():
            operation["externalDocs"] = {"url": base + operation["externalDocs"]["url"]}
    return {**shown, "servers": [{"url": base}]}


def _path_parameters(form: OperationVariant) -> list[Params]:
    """The path parameters of its payment products; one empty set of parameters without a payment product."""
    if PRODUCT not in form.row.path:
        return [{}]
    named = [(form.product.service, form.product.name)] if form.product else sorted(products.table())
    return [{"payment-service": service, "payment-product": product} for service, product in named]


def _document(forms: Sequence[OperationVariant], today: date | None, *, signed: str, headers_apart: bool) -> JsonObject:
    by_proxy = signed == BY_PROXY
    # what a security scheme or the proxy sends is no parameter of an operation
    apart = _SIGNING if by_proxy else frozenset(_SECURITY_HEADERS) if headers_apart else frozenset[str]()
    writer, shared = Writer(), set[str]()
    bodies = examples.bodies(today or oslo_date(real_now()))
    for form in forms:
        shown = _operation(form, forms, writer, bodies)
        required, optional = _headers(form, apart, demand=not by_proxy)
        shown["parameters"] += [{**_header(name), "required": True} for name in required]
        shown["parameters"] += [{"$ref": f"#/components/parameters/{_component(name)}"} for name in optional]
        shared.update(optional)
        writer.add(form.row.method, form.path, shown)
    error = writer.schema(_ERROR)
    return writer.document(
        title="Bank emulator, TPP interface",
        description=_BY_PROXY if by_proxy else _SIGNED + _BY_PROXY,
        security=[] if by_proxy else [{name: [] for name in _SECURITY}],
        tags=[{"name": tag} for tag in dict.fromkeys(form.row.tag for form in forms if form.row.tag)],
        components={
            "parameters": {
                _component(name): _header(name) for name in (*_LISTED, *NOTIFICATION_HEADERS) if name in shared
            },
            "headers": {
                _component(name): {"description": examples.HEADERS[name][0], "schema": schema}
                for name, schema in _ANSWERED.items()
            },
            "responses": {
                name: _refusal(text, error, examples.answers(examples.REFUSED, name)) for name, text in REFUSALS.items()
            },
            **({} if by_proxy else {"securitySchemes": _SECURITY}),
        },
    )


_SECURITY_HEADERS = tuple(scheme["name"] for scheme in _SECURITY.values())


def _operation(
    form: OperationVariant, forms: Sequence[OperationVariant], writer: Writer, bodies: Mapping[str, Any]
) -> JsonObject:
    row, product = form.row, form.product
    return {
        "operationId": form.id,
        "x-operation": row.id if form.id != row.id else None,
        "summary": f"{row.summary} ({product.service}/{product.name})" if product else row.summary,
        "description": row.description,
        "externalDocs": {"url": f"/docs/reference/{row.manual}"},
        "tags": [row.tag] if row.tag else [],
        "parameters": [*_path(form), *map(query_parameter, row.query)],
        "requestBody": _body(form, writer, bodies.get(row.id, {})) if row.body is not None else None,
        "responses": _responses(form, forms, writer),
    }


def _path(form: OperationVariant) -> list[JsonObject]:
    entries = []
    for name in _PARAMETER.findall(form.path):
        values: Sequence[str] = PATH_VALUES.get(name, ())
        if name == "payment-product":
            values = sorted({product for _, product in products.table()})
        entries.append(path_parameter(name, values=values, example=examples.PATH.get(name)))
    return entries


# Without those that OpenAPI describes by other means, or that belong to HTTP itself.
_LISTED = [name for name in (*headers.MATRIX, "Date") if not re.match(r"Host$|Accept(-|$)", name)]


def _component(name: str) -> str:
    return name.replace("-", "")


def _headers(form: OperationVariant, apart: frozenset[str], *, demand: bool) -> tuple[list[str], list[str]]:
    """The headers that every product requires, including Date, and the others of the operation's columns."""
    operation = form.row
    routes = [Route.of(operation, params) for params in _path_parameters(form)]
    demanded = [
        {*headers.demanded(route.column, operation.needs, operation.before_first_sca), *SIGNATURE_DEMANDS}
        | ({"digest"} if route.digest else set())
        for route in routes
    ]
    required = [
        name for name in _LISTED if demand and name not in apart and all(name.lower() in names for names in demanded)
    ]
    optional = [
        name
        for name in _LISTED
        if name not in apart and name not in required
        if any(headers.MATRIX.get(name, {}).get(route.column, "-") != "-" for route in routes)
    ]
    return required, [*optional, *(NOTIFICATION_HEADERS if operation.notifies else ())]


def _header(name: str) -> JsonObject:
    description, example = examples.HEADERS[name]
    of_notifications = NOTIFICATION_HEADERS.get(name)
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": dict(of_notifications.schema if of_notifications else headers.schema_of(name)),
        "example": example,
    }


def _body(form: OperationVariant, writer: Writer, shown: Mapping[str, Any]) -> JsonObject:
    body = form.row.body
    if callable(body):
        shapes = list(dict.fromkeys(body(params) for params in _path_parameters(form)))
        schemas = [writer.schema(shape) for shape in shapes]
        schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        if form.product is not None:
            shown = {title: value for title, value in shown.items() if _titled(title) is form.product}
    else:
        schema = writer.schema(body)
    return {"required": True, "content": content(schema, shown)}


def _responses(form: OperationVariant, forms: Sequence[OperationVariant], writer: Writer) -> JsonObject:
    row = form.row
    responses: JsonObject = {}
    for status, shape in row.answers.items():
        answer: JsonObject = {"description": row.summary, "headers": _answered(row, status)}
        if shape is not None:
            shown = examples.answers(row.id, status)
            if form.product is not None:
                shown = {title: value for title, value in shown.items() if _titled(title) in (None, form.product)}
            answer["content"] = content(writer.schema(shape), shown)
        if status == 201 and row.gives is not None:
            answer["links"] = _links(form, forms, *row.gives)
        responses[str(status)] = answer
    for refused in REFUSALS:
        responses.setdefault(refused, {"$ref": f"#/components/responses/{refused}"})
    responses["default"] = _refusal("Any other refusal.", writer.schema(_ERROR), {})
    return responses


def _answered(row: Operation, status: int) -> JsonObject:
    """The headers of a success."""
    names = ["X-Request-ID"]
    if status == 201 and row.remembers:
        names.append("Location")
    if status == 201 and row.notifies:
        names += [SCA_APPROACH[0], *NOTIFICATION_ANSWERS]
    return {name: {"$ref": f"#/components/headers/{_component(name)}"} for name in names}


def _titled(title: str) -> products.Product | None:
    """The payment product that the title of an example names, if any."""
    return products.table().get(examples.product_of(title.partition(",")[0]))


def _links(form: OperationVariant, forms: Sequence[OperationVariant], parameter: str, member: str) -> JsonObject:
    """The operations on the created resource: its id is in the answer, other parameters are those of the request."""
    own = set(_PARAMETER.findall(form.path))
    links: JsonObject = {}
    for other in forms:
        names = _PARAMETER.findall(other.path)
        if parameter not in names or not {parameter, *own}.issuperset(names) or other.product is not form.product:
            continue
        known = {name: f"$request.path.{name}" for name in names if name != parameter}
        links[other.id] = {
            "operationId": other.id,
            "parameters": {parameter: f"$response.body#/{member}", **known},
            "description": other.row.summary,
        }
    return links


def _refusal(text: str, error: JsonObject, shown: Mapping[str, Any]) -> JsonObject:
    return {"description": text, "content": content(error, shown)}
