"""The handler for `/docs`: pages of the manual and of the operations, the search, and the manual as Markdown.

Pages are rendered on the server and need neither JavaScript nor a network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from emulator import manual
from emulator.api.messages import Request, Response
from emulator.api.service import BankService
from emulator.web.pages.browser import FormRefused, Guard, path_below, read_query, root_of
from emulator.web.pages.rendering import BarePages, bare, file, html

_METHODS = ("get", "post", "put", "patch", "delete")  # in the order of the page
_DEEPEST = 8  # levels of a schema that are shown; a schema may contain itself
_MOST_VALUES = 30  # values of an enumeration that are shown
_PLACES = {"path": "Path", "query": "Query", "header": "Headers"}


@dataclass(frozen=True)
class Book:
    """One OpenAPI document: the path of its page, its title, its address, where a browser reads it, and its builder.

    A link cannot send the control token, so a browser that has logged in reads the control document at the console.
    """

    path: str
    title: str
    lead: str
    document: str
    source: str
    make: Callable[[], Mapping[str, Any]]

    @cached_property
    def reference(self) -> Reference:
        return Reference(self.path, self.make())


class DocsPage(BarePages):
    """The handler for `/docs`; `operations` and `control` build the two OpenAPI documents."""

    def __init__(
        self,
        guard: Guard,
        *,
        operations: Callable[[], Mapping[str, Any]],
        control: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._guard = guard
        self._books = {
            "operations": Book(
                "operations",
                "TPP operations",
                "The operations for third-party providers. Every request is signed.",
                "/openapi.json",
                "/openapi.json",
                operations,
            ),
            "control": Book(
                "control",
                "Control operations",
                "The operations for tests and tools. Requests are not signed.",
                "/_emulator/openapi.json",
                "/console/openapi.json",
                control,
            ),
        }

    def handle(self, _service: BankService, request: Request) -> Response:
        if not self._guard.knows_host(request):
            return bare(request, 403, "Host name not allowed", "Start the bank with --allow-host to allow it.")
        if request.method not in ("GET", "HEAD"):
            return bare(request, 405, "Method not allowed", "This page is read with GET.", ("Allow", "GET, HEAD"))
        here = path_below(request).removeprefix("/docs").strip("/")
        folder, _, name = here.partition("/")
        text = manual.markdown(here, request.base + request.prefix)
        if text is not None:
            kind = "text/plain" if here.endswith(".txt") else "text/markdown"
            sent = [("Content-Type", f"{kind}; charset=utf-8"), ("Cache-Control", "no-cache")]
            return Response(200, [*sent, ("X-Content-Type-Options", "nosniff")], text.encode())
        if here == "search":
            return self._search(request)
        if folder in self._books:
            return self._operations(request, self._books[folder], name)
        if folder == "images":
            return file(request, manual.IMAGES, name)
        if here in manual.pages():
            return self._page(request, here)
        return self._missing(request, here)

    def _page(self, request: Request, address: str) -> Response:
        from markupsafe import Markup  # comes with jinja2, which is imported with the first page

        page = manual.pages()[address]
        headings = [section for section in page.sections if section.level in (2, 3)]
        return self._shown(
            request,
            "docs/page.html",
            title=page.title,
            here=address,
            # rendered from the package's own files by a renderer that escapes HTML; the template writes the title
            content=Markup(manual.rendered(address, root_of(request)).partition("</h1>")[2]),
            headings=headings if len(headings) > 2 and address != manual.HOME else [],
        )

    def _operations(self, request: Request, book: Book, name: str) -> Response:
        reference = book.reference
        if not name:
            return self._shown(
                request, "docs/operations.html", title=book.title, here=book.path, book=book, groups=reference.groups
            )
        operation = reference.operations.get(name)
        if operation is None:
            return self._missing(request, f"{book.path}/{name}")
        rules = "".join(operation.get("externalDocs", {}).get("url", "").rpartition("/docs/")[1:])
        return self._shown(
            request,
            "docs/operation.html",
            title=name,
            here=book.path,
            book=book,
            operation=operation,
            reference=reference,
            rules=rules,
            rules_title=_title_of(rules),
        )

    def _search(self, request: Request) -> Response:
        try:
            query = read_query(request).get("q")[:200]
        except FormRefused as refused:
            return bare(request, refused.status, "The search cannot be read", refused.reason)
        return self._results(request, query, 200)

    def _missing(self, request: Request, here: str) -> Response:
        """Answer 404 with a search for the words of the address."""
        return self._results(request, here.replace("/", " ").replace("-", " ")[:200], 404)

    def _results(self, request: Request, query: str, status: int) -> Response:
        among = [*manual.entries()]
        for book in self._books.values():
            among += book.reference.entries
        return self._shown(
            request,
            "docs/search.html",
            status=status,
            title="Search" if status == 200 else "Page not found",
            here="search",
            query=query,
            hits=manual.search(query, among),
            most=manual.MOST_HITS,
        )

    def _shown(self, request: Request, template: str, *, here: str, query: str = "", **values: Any) -> Response:
        """A documentation page with the table of contents beside it, where it is `here`, and the search above it."""
        return html(
            request,
            template,
            here=here,
            query=query,
            groups_of_pages=manual.contents(),
            books=list(self._books.values()),
            base=request.base + request.prefix,
            **values,
        )


def _title_of(rules: str) -> str:
    """The title of the section that a link to the manual leads to; empty for no link."""
    address, _, anchor = rules.removeprefix("/docs/").partition("#")
    sections = manual.pages()[address].sections if rules else ()
    titles = (f"{one.place}: {one.title}" if anchor else one.title for one in sections if one.anchor == anchor)
    return next(titles, rules)


# The operations of an OpenAPI document


class Member(NamedTuple):
    """A member of a schema, or a parameter."""

    name: str
    type: str
    required: bool
    limits: str
    about: str
    schema: Mapping[str, Any]


Form = tuple[str, str, Sequence[Member]]
"""One of the forms that a body may have: title, description, members."""


class Reference:
    """The operations of an OpenAPI document of ours, for their pages; `book`: the path of their page below `/docs`."""

    def __init__(self, book: str, document: Mapping[str, Any]) -> None:
        self._book = book
        self._document = document

    @cached_property
    def operations(self) -> dict[str, dict[str, Any]]:
        """All operations by operationId, in the order of the document, each with its `method` and `path`."""
        return {
            item[method]["operationId"]: {**item[method], "method": method.upper(), "path": path}
            for path, item in self._document["paths"].items()
            for method in _METHODS
            if method in item
        }

    @cached_property
    def groups(self) -> dict[str, list[dict[str, Any]]]:
        groups: dict[str, list[dict[str, Any]]] = {}
        for operation in self.operations.values():
            groups.setdefault(operation["tags"][0], []).append(operation)
        return groups

    @cached_property
    def entries(self) -> list[manual.Section]:
        """The entries of the search: each operation with its parameters, members and values."""
        return [
            manual.Section(
                page=f"{self._book}/{name}",
                place=f"{operation['method']} {operation['path']}",
                anchor="",
                title=name,
                level=1,
                text=" ".join(dict.fromkeys(filter(None, self._words(operation)))),
            )
            for name, operation in self.operations.items()
        ]

    def resolved(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in part:
            kind, name = part["$ref"].removeprefix("#/components/").split("/")
            part = self._document["components"][kind][name]
        return part

    def parameters(self, operation: Mapping[str, Any]) -> Iterator[tuple[str, list[Member]]]:
        """The parameters of each place under its title."""
        parameters = [self.resolved(parameter) for parameter in operation.get("parameters", ())]
        for place, title in _PLACES.items():
            named = [
                self._member(one["name"], {**one["schema"], "description": one.get("description", "")}, one)
                for one in parameters
                if one["in"] == place
            ]
            if named:
                yield title, named

    def _member(self, name: str, schema: Mapping[str, Any], declared: Mapping[str, Any]) -> Member:
        shape = self.resolved(schema)
        return Member(
            name=name,
            type=self.type(schema),
            required=declared.get("required", False),
            limits=" · ".join(_limits(shape)),
            about=schema.get("description") or shape.get("description", ""),
            schema=schema,
        )

    def members(self, schema: Mapping[str, Any], depth: int = 0) -> list[Member]:
        """The members of a body, of its items, or at some depth of a member."""
        shape = self.resolved(schema)
        if depth > _DEEPEST:
            return []
        if shape.get("type") == "array" and "items" in shape:
            return self.members(shape["items"], depth)
        own, required = self._properties(shape)
        return [self._member(name, inner, {"required": name in required}) for name, inner in own.items()]

    def _properties(self, schema: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
        shape = self.resolved(schema)
        own, required = dict(shape.get("properties", {})), set(shape.get("required", ()))
        for kind in ("allOf", "anyOf", "oneOf"):
            for part in shape.get(kind, ()):
                inner, demanded = self._properties(part)
                own.update(inner)
                if kind == "allOf":
                    required |= demanded
        return own, required

    def type(self, schema: Mapping[str, Any], within: tuple[str, ...] = ()) -> str:
        """A type in words; `within`: the references around it, since a schema may contain itself."""
        reference = str(schema.get("$ref", ""))
        if reference in within:
            return reference.rpartition("/")[2]
        within = (*within, reference) if reference else within
        shape = self.resolved(schema)
        if "const" in shape:
            return json.dumps(shape["const"], ensure_ascii=False)
        several = shape.get("anyOf") or shape.get("oneOf")
        if several:
            return " or ".join(dict.fromkeys(self.type(one, within) for one in several))
        if "enum" in shape:
            return "one of"
        kind = shape.get("type")
        if kind == "array":
            return f"list of {self.type(shape.get('items', {}), within)}"
        shown = " or ".join(kind) if isinstance(kind, list) else kind
        shown = shown or ("object" if "properties" in shape or "allOf" in shape else "any")
        return ", ".join(filter(None, (shown, shape.get("format"))))

    def forms(self, schema: Mapping[str, Any]) -> list[Form]:
        """One form for each alternative of `oneOf` or `anyOf`, with its title."""
        shape = self.resolved(schema)
        several = [part for part in (shape.get("oneOf") or shape.get("anyOf") or ()) if self.members(part)]
        if len(several) < 2:
            members = self.members(schema)
            return [("", "", members)] if members else []
        return [
            (
                self.resolved(part).get("title") or part.get("$ref", "").rpartition("/")[2] or f"Form {number}",
                self.resolved(part).get("description", ""),
                self.members(part),
            )
            for number, part in enumerate(several, 1)
        ]

    def _words(self, part: Any, within: tuple[str, ...] = ()) -> Iterator[str]:
        """Names, texts and values in a part of the document; `within`: the references around it."""
        if isinstance(part, list):
            for one in part:
                yield from self._words(one, within)
        elif isinstance(part, dict) and (reference := str(part.get("$ref", ""))) not in within:
            if reference:
                yield from self._words(self.resolved(part), (*within, reference))
            for key, value in part.items():
                if key in ("summary", "description", "method", "path", "name"):
                    yield value
                elif key == "enum":
                    yield from map(str, value)
                elif key == "properties":
                    for name, inner in value.items():
                        yield name
                        yield from self._words(inner, within)
                elif key not in ("example", "examples"):
                    yield from self._words(value, within)


def _limits(shape: Mapping[str, Any]) -> Iterator[str]:
    values = shape.get("enum")
    if not values:
        yield from _between(shape.get("minLength"), shape.get("maxLength"), "character")
    yield from _between(shape.get("minimum"), shape.get("maximum"))
    yield from _between(shape.get("minItems"), shape.get("maxItems"), "item")
    if "pattern" in shape:
        yield f"pattern {shape['pattern']}"
    if "default" in shape:
        yield f"default {json.dumps(shape['default'], ensure_ascii=False)}"
    if values:
        more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
        yield ", ".join(map(str, values[:_MOST_VALUES])) + more


def _between(low: int | None, high: int | None, unit: str = "") -> Iterator[str]:
    if low is None and high is None:
        return
    bounds = f"at most {high}" if low is None else f"at least {low}" if high is None else f"{low} to {high}"
    number = low if high is None else high
    yield f"{bounds} {unit}{'' if number == 1 else 's'}" if unit else bounds
