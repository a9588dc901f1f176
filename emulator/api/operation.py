"""The row of an operation, from which routing, header checks, validation, access and the OpenAPI document are derived.

A `Route` contains what the address of a request determines; a `Call` is a request in the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from emulator.api.certificates import AuthenticatedTpp
from emulator.api.headers import MATRIX, Headers
from emulator.api.messages import Request
from emulator.api.query import QueryParameter
from emulator.bank import products
from emulator.bank.bank import Bank
from emulator.bank.customers.access import Caller
from emulator.bank.errors import Message
from emulator.bank.kinds import ACCOUNT, HolderKind
from emulator.bank.notifications import Resource
from emulator.bank.payment.initiation import UNSCRIPTED, Script

if TYPE_CHECKING:  # the shapes import pydantic, which a start does not need
    from emulator.api.shapes.parts import Link, Verb

Params = Mapping[str, str]
# The values that a parameter of a path may have, if not any.
PATH_VALUES = {"payment-service": tuple(sorted(products.SERVICES))}

AISP, PISP = frozenset({"AISP"}), frozenset({"PISP"})  # roles of a TPP
NOBODY = AuthenticatedTpp("", "", frozenset())  # until the signature is checked
REDIRECT = frozenset({"tpp-redirect-uri"})  # the header that an operation needs where it opens an SCA


class Access(Enum):
    """The customer that an operation requires."""

    OPEN = "no customer, only the TPP"
    PSU = "a PSU of this TPP, with or without a session: payments, baskets, user"
    SESSION = "a PSU with a live session, in any context: agreements"
    ACCOUNT = (
        "a PSU with consent, for the account in the path if any; and a session where the PSU is present or for lists"
    )


def link(base: str, path: str, *verbs: Verb) -> Link:
    """A Link to `path`, which starts with /v1; `base` is empty for relative links."""
    return {"href": base + path, "verbs": list(verbs) or ["GET"]}


@dataclass(slots=True)
class Call:
    """A request in the pipeline; each gate sets the members that it determines.

    `params` are the decoded path parameters, `query` and `body` the validated values, `caller` is the customer. The
    answer tells the `warnings` as its tppMessages.
    """

    bank: Bank
    request: Request
    route: Route
    operation: Operation
    params: Params
    headers: Headers
    raw_query: str
    sca_base: str
    links_base: str = ""
    query: Mapping[str, Any] = field(default_factory=dict)
    tpp: AuthenticatedTpp = NOBODY
    body: Any = None
    warnings: Sequence[Message] = ()
    script: Script = UNSCRIPTED
    caller: Caller | None = None

    @property
    def path(self) -> str:
        """The path of the request from /v1 on, with decoded parameters."""
        path = self.operation.path
        for name, value in self.params.items():
            path = path.replace(f"{{{name}}}", value)
        return path

    def link(self, path: str, *verbs: Verb) -> Link:
        """A Link to `path`, which starts with /v1; relative or absolute as `--links` says."""
        return link(self.links_base, path, *verbs)

    def location(self, path: str) -> tuple[str, str]:
        """The Location header of a new resource.

        HTTP resolves it against the request's own address, so unlike relative links it includes the path of the public
        address and the prefix of a named bank.
        """
        return "Location", (self.links_base or urlsplit(self.request.base).path + self.request.prefix) + path

    def sca_link(self, token: str) -> Link:
        """The scaRedirect Link of an open SCA: always absolute, whatever `--links` says, as a browser opens it."""
        return {"href": f"{self.sca_base}/sca/{token}", "verbs": ["GET"]}


# Berlin Group 1.3: a header of every 201 with a scaRedirect.
SCA_APPROACH = ("ASPSP-SCA-Approach", "REDIRECT")


Body = TypeVar("Body")


@dataclass(slots=True)
class Reply(Generic[Body]):
    """The result of a handler: a status, a JSON value (None: no body; bytes: already encoded) and further headers.

    `rest`: what is left to do before the answer is sent, in steps that are changes of their own. A handler is annotated
    with the shape of its body, so that the type checker compares the two.
    """

    status: int
    body: Body
    headers: tuple[tuple[str, str], ...] = ()
    rest: Iterator[object] | None = None

    @staticmethod
    def after(steps: Iterator[object]) -> Reply[None]:
        """204 after all of `steps`; the first one is done now and may refuse the request."""
        first = next(steps, None)
        return Reply(204, None, rest=None if first is None else chain((first,), steps))


Handler = Callable[[Call], Reply[Any]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the TPP interface.

    `column`: the column of the header matrix (a name of its `COLUMNS`), or a function of the path parameters;
    `body`: the request shape as `module:Model`, or a function of the path parameters; `answers`: response shapes by
    status, for the OpenAPI document; `roles`: the TPP must have one of them; `needs`: the headers that are required
    even under `--profile lenient`; `gives`: the path parameter for the id of the created resource, and the member of
    the answer with that id; `remembers`: a repeat with the same X-Request-ID gets the stored answer (`gates.once`);
    `notifies`: the TPP may request status notifications about this kind of resource, whose id is that member of the
    path, else of the answer; `before_first_sca`: it may start the customer's first SCA, so neither PSU-ID nor session
    need be known yet; `acts`: its customer acts in a context.
    """

    id: str
    method: str
    path: str
    summary: str
    description: str
    handler: Handler
    column: str | Callable[[Params], str]
    answers: Mapping[int, str | None]
    roles: frozenset[str] = AISP | PISP
    access: Access = Access.OPEN
    query: tuple[QueryParameter, ...] = ()
    body: str | Callable[[Params], str] | None = None
    needs: frozenset[str] = frozenset()
    before_first_sca: bool = False
    acts: bool = True
    remembers: bool = False
    notifies: tuple[Resource, str] | None = None
    gives: tuple[str, str] | None = None
    quota: str | None = None  # "balances", "transactions" or "details": 4 unattended calls in 24 h
    resource: HolderKind = ACCOUNT  # the kind that `id` in the path refers to: ACCOUNT or CARD
    tag: str = ""
    manual: str = ""  # the section of the manual about it


def described(handler: Callable[..., Any], *, name: str = "", text: str = "") -> dict[str, Any]:
    """The members of an operation that its handler gives: `get_accounts` is getAccounts; the docstring is its texts.

    `name` and `text` are those of an operation whose handler is made of a row.
    """
    first, *words = handler.__name__.split("_")
    summary, *paragraphs = (" ".join(part.split()) for part in (text or handler.__doc__ or "").split("\n\n"))
    return {
        "id": name or first + "".join(map(str.capitalize, words)),
        "summary": summary,
        "description": "\n\n".join(filter(None, paragraphs)) or summary,
        "handler": handler,
    }


_USUAL = {"GET": 200, "POST": 201, "PUT": 200, "DELETE": 204}  # the statuses of success


def operation(
    method: str,
    path: str,
    *,
    name: str = "",
    text: str = "",
    returns: str = "",
    statuses: tuple[int, ...] = (),
    **members: Any,
) -> Callable[[Handler], Operation]:
    """Make an operation of its handler, see `described`; `members`: others of Operation.

    Its answers have the shapes that the handler is annotated with, so that the type checker compares what it builds
    with them: `Reply[answers.Consent]`; of alternatives each has a status of its own. `returns` takes the place of the
    annotation; `statuses`: if not the usual one of the method.
    """

    def complete(handler: Handler) -> Operation:
        shapes = (returns or handler.__annotations__["return"].removeprefix("Reply[").removesuffix("]")).split(" | ")
        answers = dict(zip(statuses or (_USUAL[method],), map(_shape, shapes), strict=True))
        own = described(handler, name=name, text=text)
        own["summary"] = own["summary"].removesuffix(".")  # a title, which other words may follow
        return Operation(**own, method=method, path=path, answers=answers, **members)

    return complete


def _shape(annotation: str) -> str | None:
    """The `module:Name` of `answers.Consent`, a shape in a module of `api/shapes`; None for `None`."""
    return None if annotation == "None" else f"emulator.api.shapes.{annotation.replace('.', ':')}"


@dataclass(frozen=True, slots=True)
class Route:
    """An operation with the decoded path parameters of one address.

    `column`: of the header matrix; `shape`: of the body, None without a body; `digest`: whether a Digest is required.
    """

    operation: Operation
    params: Params
    column: str
    shape: str | None
    digest: bool

    @classmethod
    def of(cls, operation: Operation, params: Params) -> Route:
        """The route of an operation with these path parameters; PRODUCT_UNKNOWN for an unknown payment product."""
        if "payment-product" in params:
            products.find(params["payment-service"], params["payment-product"])
        column = operation.column if isinstance(operation.column, str) else operation.column(params)
        shape = operation.body if operation.body is None or isinstance(operation.body, str) else operation.body(params)
        # Required where the header matrix marks Digest, and on writes of sandbox data.
        digest = MATRIX["Digest"][column] == "R" or operation.path.startswith("/v1/sandbox/")
        return cls(operation, params, column, shape, shape is not None and digest)
