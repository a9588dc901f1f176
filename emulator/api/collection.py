"""A collection for a REST client, made from the OpenAPI document: Postman v2.1, or the files of a Bruno folder.

Its requests carry no signature: they are meant for `bank-emulator proxy`, which signs them and fills in the headers
that every request needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.api import examples
from emulator.api.openapi import JSON_TYPE, document

NAME = "Bank emulator"
POSTMAN_SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_PARAMETER = re.compile(r"{([^}]+)}")
_ABOUT = (
    "Every operation of the TPP interface. Start the bank and `bank-emulator proxy --port 9090`, which signs these "
    "requests, and set `baseUrl` to the proxy's address. Requests with `:id` need an id from another answer."
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One request of a collection; `path` is a template such as `/v1/accounts/{id}`, `known` what fills it.

    `query` are the parameters that may be switched on, each with what it is for.
    """

    folder: str
    name: str
    about: str
    method: str
    path: str
    known: Mapping[str, str]
    query: Mapping[str, str]
    body: str | None

    @property
    def parameters(self) -> list[str]:
        """The names in the path, in order."""
        return _PARAMETER.findall(self.path)

    def value(self, name: str) -> str:
        """What stands for a parameter at first: an example, or an id that nothing has."""
        return self.known.get(name, examples.UUID)


def entries() -> list[Entry]:
    """All operations in the order of their table; one request for each example of a body."""
    return [
        entry
        for path, operations in document()["paths"].items()
        for method, operation in operations.items()
        for entry in _entries(path, method.upper(), operation)
    ]


def _entries(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[Entry]:
    known = {entry["name"]: entry["example"] for entry in operation["parameters"] if "example" in entry}
    known = {name: value for name, value in known.items() if f"{{{name}}}" in path}
    content = operation.get("requestBody", {}).get("content", {}).get(JSON_TYPE, {})
    shown: dict[str, Any] = {title: example["value"] for title, example in content.get("examples", {}).items()}
    folder = operation["tags"][0] if operation["tags"] else NAME
    for title, value in (shown or {"": None}).items():
        filled = dict(known)
        if operation["operationId"] == "createPayment":
            filled["payment-service"], filled["payment-product"] = examples.product_of(title)
        yield Entry(
            folder=folder,
            name=f"{operation['summary']} ({title})" if len(shown) > 1 else operation["summary"],
            about=operation["description"],
            method=method,
            path=path,
            known=filled,
            query={
                entry["name"]: entry["description"] for entry in operation["parameters"] if entry.get("in") == "query"
            },
            body=None if value is None else json.dumps(value, indent=2, ensure_ascii=False),
        )


def postman(base_url: str) -> dict[str, Any]:
    """The collection in Postman's format v2.1; `base_url` is the first value of its variable `baseUrl`."""
    folders: dict[str, list[dict[str, Any]]] = {}
    for entry in entries():
        folders.setdefault(entry.folder, []).append(_postman(entry))
    return {
        "info": {"name": NAME, "description": _ABOUT, "schema": POSTMAN_SCHEMA},
        "item": [{"name": folder, "item": items} for folder, items in folders.items()],
        "variable": [{"key": "baseUrl", "value": base_url, "type": "string"}],
    }


def _postman(entry: Entry) -> dict[str, Any]:
    steps = [_PARAMETER.sub(r":\1", step) for step in entry.path.strip("/").split("/")]
    request: dict[str, Any] = {
        "method": entry.method,
        "description": entry.about,
        "header": [],
        "url": {
            "raw": "/".join(["{{baseUrl}}", *steps]),
            "host": ["{{baseUrl}}"],
            "path": steps,
            "query": [
                {"key": name, "value": "", "description": about, "disabled": True}
                for name, about in entry.query.items()
            ],
            "variable": [{"key": name, "value": entry.value(name)} for name in entry.parameters],
        },
    }
    if entry.body is not None:
        request["header"].append({"key": "Content-Type", "value": JSON_TYPE})
        request["body"] = {"mode": "raw", "raw": entry.body, "options": {"raw": {"language": "json"}}}
    return {"name": entry.name, "request": request, "response": []}


def bruno(base_url: str) -> dict[str, str]:
    """The files of a Bruno folder by their path in it; `base_url` stands in the environment `proxy`."""
    about = {"version": "1", "name": NAME, "type": "collection"}
    files = {
        "bruno.json": json.dumps(about, indent=2) + "\n",
        "environments/proxy.bru": f"vars {{\n  baseUrl: {base_url}\n}}\n",
    }
    for number, entry in enumerate(entries(), 1):
        file = re.sub(r"[^A-Za-z0-9 ()-]", "", entry.name)
        files[f"{entry.folder}/{file}.bru"] = _bruno(entry, number)
    return files


def _bruno(entry: Entry, number: int) -> str:
    blocks = [_block("meta", [f"name: {entry.name}", "type: http", f"seq: {number}"])]
    url = "{{baseUrl}}" + _PARAMETER.sub(r":\1", entry.path)
    body = "none" if entry.body is None else "json"
    blocks.append(_block(entry.method.lower(), [f"url: {url}", f"body: {body}", "auth: none"]))
    if entry.query:
        blocks.append(_block("params:query", [f"~{name}:" for name in entry.query]))  # ~: switched off
    if entry.parameters:
        blocks.append(_block("params:path", [f"{name}: {entry.value(name)}" for name in entry.parameters]))
    if entry.body is not None:
        blocks.append(_block("body:json", entry.body.splitlines()))
    blocks.append(_block("docs", entry.about.splitlines()))
    return "\n".join(blocks)


def _block(name: str, lines: list[str]) -> str:
    return "\n".join([f"{name} {{", *(f"  {line}".rstrip() for line in lines), "}", ""])
