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
        return self._shown(
            request,
            "docs/operation.html",
            title=operation.id,
            here=book.path,
            book=book,
            operation=operation,
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


# The operations of an OpenAPI document, ready to be shown


class Member(NamedTuple):
    """A member of a schema, or a parameter."""

    name: str
    type: str
    required: bool
    limits: str
    about: str
    values: tuple[str, ...]
    inner: tuple[Member, ...]


class BodyShape(NamedTuple):
    """One of the shapes that a body may have."""

    title: str
    about: str
    members: tuple[Member, ...]


class BodyContent(NamedTuple):
    """A body: its media type, the shapes it may have, examples; `type` is shown if it has no members."""

    media_type: str
    type: str
    forms: tuple[BodyShape, ...]
    examples: tuple[tuple[str, str], ...]  # a title, and the value as indented JSON


class DocumentedOperation(NamedTuple):
    """One operation, ready to be shown."""

    id: str
    method: str
    path: str
    summary: str
    about: str
    group: str
    rules: str  # the manual's page about it, as a path that begins with /docs/; empty for none
    parameters: tuple[tuple[str, tuple[Member, ...]], ...]
    body: tuple[BodyContent, ...]
    answers: tuple[tuple[str, str, tuple[BodyContent, ...]], ...]  # status, description, bodies


class Reference:
    """The operations of an OpenAPI document of ours; `book` is the path of its page below `/docs`."""

    def __init__(self, book: str, document: Mapping[str, Any]) -> None:
        self._book = book
        self._document = document

    @cached_property
    def operations(self) -> dict[str, DocumentedOperation]:
        """All operations by operationId, in the order of the document."""
        return {
            item[method]["operationId"]: self._operation(path, method, item[method])
            for path, item in self._document["paths"].items()
            for method in _METHODS
            if method in item
        }

    @cached_property
    def groups(self) -> dict[str, list[DocumentedOperation]]:
        groups: dict[str, list[DocumentedOperation]] = {}
        for operation in self.operations.values():
            groups.setdefault(operation.group, []).append(operation)
        return groups

    @cached_property
    def entries(self) -> list[manual.Section]:
        """The entries of the search: each operation with its parameters, members and values."""
        return [
            manual.Section(
                page=f"{self._book}/{operation.id}",
                place=f"{operation.method} {operation.path}",
                anchor="",
                title=operation.id,
                level=1,
                text=" ".join(dict.fromkeys(filter(None, _words(operation)))),
            )
            for operation in self.operations.values()
        ]

    def _operation(self, path: str, method: str, operation: Mapping[str, Any]) -> DocumentedOperation:
        parameters = [self._resolved(parameter) for parameter in operation.get("parameters", ())]
        responses = ((status, self._resolved(answer)) for status, answer in operation["responses"].items())
        return DocumentedOperation(
            id=operation["operationId"],
            method=method.upper(),
            path=path,
            summary=operation["summary"],
            about=operation["description"],
            group=operation["tags"][0],
            rules="".join(operation.get("externalDocs", {}).get("url", "").rpartition("/docs/")[1:]),
            parameters=tuple(
                (title, tuple(map(self._parameter, named)))
                for place, title in _PLACES.items()
                if (named := [parameter for parameter in parameters if parameter["in"] == place])
            ),
            body=self._contents(operation.get("requestBody", {})),
            answers=tuple((status, answer["description"], self._contents(answer)) for status, answer in responses),
        )

    def _resolved(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in part:
            kind, name = part["$ref"].removeprefix("#/components/").split("/")
            part = self._document["components"][kind][name]
        return part

    def _parameter(self, parameter: Mapping[str, Any]) -> Member:
        schema = {**parameter["schema"], "description": parameter.get("description", "")}
        return self._member(parameter["name"], schema, required=parameter.get("required", False), depth=0)

    def _member(self, name: str, schema: Mapping[str, Any], *, required: bool, depth: int) -> Member:
        shape = self._resolved(schema)
        return Member(
            name=name,
            type=self._type(schema),
            required=required,
            limits=" · ".join(_limits(shape)),
            about=schema.get("description") or shape.get("description", ""),
            values=tuple(map(str, shape.get("enum", ()))),
            inner=self._members(schema, depth + 1),
        )

    def _members(self, schema: Mapping[str, Any], depth: int = 0) -> tuple[Member, ...]:
        shape = self._resolved(schema)
        if depth > _DEEPEST:
            return ()
        if shape.get("type") == "array" and "items" in shape:
            return self._members(shape["items"], depth)
        own, required = self._properties(shape)
        return tuple(self._member(name, inner, required=name in required, depth=depth) for name, inner in own.items())

    def _properties(self, schema: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
        shape = self._resolved(schema)
        own, required = dict(shape.get("properties", {})), set(shape.get("required", ()))
        for kind in ("allOf", "anyOf", "oneOf"):
            for part in shape.get(kind, ()):
                inner, demanded = self._properties(part)
                own.update(inner)
                if kind == "allOf":
                    required |= demanded
        return own, required

    def _type(self, schema: Mapping[str, Any], within: tuple[str, ...] = ()) -> str:
        """A type in words; `within`: the references around it, since a schema may contain itself."""
        reference = str(schema.get("$ref", ""))
        if reference in within:
            return reference.rpartition("/")[2]
        within = (*within, reference) if reference else within
        shape = self._resolved(schema)
        if "const" in shape:
            return json.dumps(shape["const"], ensure_ascii=False)
        several = shape.get("anyOf") or shape.get("oneOf")
        if several:
            return " or ".join(dict.fromkeys(self._type(one, within) for one in several))
        if "enum" in shape:
            return "one of"
        kind = shape.get("type")
        if kind == "array":
            return f"list of {self._type(shape.get('items', {}), within)}"
        shown = " or ".join(kind) if isinstance(kind, list) else kind
        shown = shown or ("object" if "properties" in shape or "allOf" in shape else "any")
        return ", ".join(filter(None, (shown, shape.get("format"))))

    def _contents(self, part: Mapping[str, Any]) -> tuple[BodyContent, ...]:
        return tuple(
            BodyContent(media_type, self._type(body["schema"]), self._forms(body["schema"]), _examples(body))
            for media_type, body in part.get("content", {}).items()
        )

    def _forms(self, schema: Mapping[str, Any]) -> tuple[BodyShape, ...]:
        """One shape for each alternative of `oneOf` or `anyOf`, with its title."""
        shape = self._resolved(schema)
        several = [part for part in (shape.get("oneOf") or shape.get("anyOf") or ()) if self._members(part)]
        if len(several) < 2:
            members = self._members(schema)
            return (BodyShape("", "", members),) if members else ()
        return tuple(
            BodyShape(
                title=self._resolved(part).get("title") or part.get("$ref", "").rpartition("/")[2] or f"Form {number}",
                about=self._resolved(part).get("description", ""),
                members=self._members(part),
            )
            for number, part in enumerate(several, 1)
        )


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


def _examples(body: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    named = {f"Example: {name}": one["value"] for name, one in body.get("examples", {}).items()}
    if "example" in body:
        named["Example"] = body["example"]
    return tuple((title, json.dumps(value, indent=2, ensure_ascii=False)) for title, value in named.items())


def _words(operation: DocumentedOperation) -> Iterator[str]:
    yield from (operation.summary, operation.about, operation.method, operation.path)
    for _, parameters in operation.parameters:
        yield from _member_words(parameters)
    for content in (*operation.body, *(content for _, _, contents in operation.answers for content in contents)):
        for form in content.forms:
            yield from _member_words(form.members)


def _member_words(members: Sequence[Member]) -> Iterator[str]:
    for member in members:
        yield from (member.name, member.about, *member.values)
        yield from _member_words(member.inner)
