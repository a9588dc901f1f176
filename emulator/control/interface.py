"""Handles requests under /_emulator: checks, routing, body, operation and answer; synchronous (control.md).

Nothing is signed here, so the checks of `Gate` come first, on every request: the Host (a name that resolves to this
machine must not open the bank to a page), the token, and for changes the origin. Then route, query and body, whose
problems are all reported, and the handler of the operation (`operations/`).

    failure                             answer
    foreign Host, origin, notification  403 FORBIDDEN
    no or wrong token                   401; 429 with Retry-After after too many
    content type of a change            415
    BankError                           its own
    problems of a scenario or fixture   400 FORMAT_ERROR, one message each
    StoreUnwritable                     503, nothing has changed
    any other exception                 500, logged

A handler with long work is a generator: each step is a turn of its own, and other requests are answered in between
(control.md#long-operations). The same code serves the command line, the console and tests in this process.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from emulator.api import render
from emulator.api.description import resolved
from emulator.api.guards import Attempts, HostNames, is_own_origin
from emulator.api.headers import UTF_8, Headers, charset_of
from emulator.api.json_body import LARGEST_BODY, read_json
from emulator.api.messages import Answered, Request, Response, Steps, Stream, Unfinished
from emulator.api.query import parse
from emulator.api.render import failed
from emulator.api.router import Router, split_target
from emulator.api.service import BankService
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.fixtures import FixtureError, strict_yaml
from emulator.bank.fixtures.strict_yaml import YamlError
from emulator.bank.notification_targets import NOTIFICATION_AGENT
from emulator.bank.problems import Problem
from emulator.bank.snapshots import Snapshots
from emulator.bank.threads import in_thread
from emulator.ca import CertificateAuthority
from emulator.control.operation import Banks, ControlCall, ControlOperation, refusal
from emulator.scenario.loader import ScenarioRefused, too_large
from emulator.scenario.rules import RuleSet
from emulator.scenario.target import ScenarioTarget
from emulator.store import StoreVoid

PREFIX = "/_emulator"
NO_STORE = ("Cache-Control", "no-store")
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LARGE = 1 << 16  # bytes of a body; a larger one is read in a thread
YAML_TYPES = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})

_Router = Router[ControlOperation, tuple[ControlOperation, Mapping[str, str]]]


class Gate:
    """Checks that a request may use the control interface, or the metrics.

    `attempts`: at the token, None if none is required; `allowed_hosts`: None for any; `about`: says what is required.
    """

    def __init__(
        self,
        *,
        attempts: Attempts | None,
        allowed_hosts: Iterable[str] | None,
        about: str = "The control interface requires Authorization: Bearer with the --control-token.",
    ) -> None:
        self._attempts = attempts
        self._hosts = None if allowed_hosts is None else HostNames(allowed_hosts)
        self._about = about

    def refuse(self, request: Request) -> Response | None:
        """The answer to a request that may not pass; None if it may."""
        try:
            self.check(request, Headers(request.headers))
        except BankError as error:
            return render.refusal(error, headers=[NO_STORE])
        return None

    def check(self, request: Request, headers: Headers) -> None:
        """Raise FORBIDDEN for a foreign Host (403), and for a missing or wrong token (401)."""
        host = headers.get("host")
        if host is not None and self._hosts is not None and not self._hosts.include(host, request.base):
            # Otherwise a page of a host name that resolves to this machine could read and change everything.
            text = "The bank does not answer to this Host name here; see --allow-host."
            raise BankError("FORBIDDEN", text, "Host", status=403)
        if self._attempts is not None:
            scheme, _, given = (headers.get("authorization") or "").partition(" ")
            if scheme.lower() == "bearer" and (seconds := self._attempts.wait(request.peer)):
                text, after = f"Too many wrong tokens; try again in {seconds} s.", ("Retry-After", str(seconds))
                raise BankError("ACCESS_EXCEEDED", text, "Authorization", headers=[after])
            if scheme.lower() != "bearer" or not self._attempts.matches(given.strip(), request.peer):
                challenge = ("WWW-Authenticate", "Bearer")
                raise BankError("FORBIDDEN", self._about, "Authorization", status=401, headers=[challenge])
        origin = headers.get("origin")
        changing = request.method in CHANGING
        if changing and origin is not None and not is_own_origin(origin, host=host, base=request.base):
            raise BankError("FORBIDDEN", "A page of another origin may not change the bank.", "Origin", status=403)
        if headers.get("user-agent", "").startswith(NOTIFICATION_AGENT):
            # --allow-notify may name this machine, and the TPP chooses the address of a notification
            raise BankError("FORBIDDEN", "A notification may not change a bank.", "User-Agent", status=403)
        if changing and headers.get("sec-fetch-site") == "cross-site":
            text = "A page of another site may not change the bank."
            raise BankError("FORBIDDEN", text, "Sec-Fetch-Site", status=403)


class Control:
    """The control interface of every bank of the process.

    `token` is the --control-token; `allowed_hosts` are Host names in addition to the loopback names.
    """

    def __init__(
        self,
        banks: Banks,
        authority: CertificateAuthority,
        *,
        token: str | None = None,
        allowed_hosts: Iterable[str] = (),
    ) -> None:
        self._banks = banks
        self._authority = authority
        self._gate = Gate(attempts=None if token is None else Attempts(token), allowed_hosts=allowed_hosts)
        self._snapshots: WeakKeyDictionary[Bank, Snapshots] = WeakKeyDictionary()
        self._router: _Router | None = None

    def _routing(self) -> _Router:
        # The table is imported with the first request, as importing the forms of the bodies would slow down the start.
        from emulator.control.operations import table

        return Router(table(), lambda row, params: (row, params), hint=f"; see {PREFIX}/openapi.json")

    def warm_up(self) -> None:
        """Read the table of operations now, rather than with the first request; for any thread."""
        self._router = self._routing()

    def scenario_target(self, service: BankService) -> ScenarioTarget:
        bank = service.bank
        if not isinstance(service.rules, RuleSet):
            raise TypeError("the rules of a service are a RuleSet")
        snapshots = self._snapshots.get(bank)
        if snapshots is None:
            snapshots = self._snapshots[bank] = Snapshots(bank.documents)
        return ScenarioTarget(bank, service.rules, service.log, snapshots)

    def refuse(self, request: Request) -> Response | None:
        """The answer to a request that may not use the interface, whichever bank it names; None if it may."""
        return self._gate.refuse(request)

    def handle(self, service: BankService, request: Request) -> Answered:
        """Answer a request under /_emulator to the bank of `service`, or do the first step of that; never raises."""
        return Unfinished(self._steps(service, request)).step()

    def _steps(self, service: BankService, request: Request) -> Steps:
        headers = Headers(request.headers)
        response: Response | Stream
        try:
            self._gate.check(request, headers)
            response = yield from self._operated(service, request, headers)
        except ScenarioRefused as error:
            response = render.refusal(refusal(error.problems))
        except FixtureError as error:
            response = render.refusal(refusal([Problem(("fixtures",), line) for line in error.lines()]))
        except StoreVoid:
            raise
        except Exception as error:
            response = render.refusal(failed(request, error))
        response.headers.append(NO_STORE)
        return response

    def _operated(self, service: BankService, request: Request, headers: Headers) -> Steps:
        if self._router is None:  # half a second of imports
            self._router = yield from in_thread(self._routing)
        path, query = split_target(request.target)
        prefix = request.prefix + PREFIX
        path = "/" + path[len(prefix) :].strip("/")
        if request.method == "OPTIONS":
            return Response(204, [("Allow", ", ".join(self._router.methods(path, prefix)))])
        operation, params = self._router.find(request.method, path, prefix)
        call: ControlCall[Any] = ControlCall(
            service=service,
            banks=self._banks,
            authority=self._authority,
            target_of=self.scenario_target,
            request=request,
            body=None,
            params=params,
            query=parse(operation.query, query),
        )
        if operation.method in CHANGING:
            if len(request.body) > _LARGE:
                yield from in_thread(partial(_read_body, call, operation, headers))
            else:
                _read_body(call, operation, headers)
        handled = operation.handler(call)
        answer = (yield from handled) if isinstance(handled, Generator) else handled
        if isinstance(answer, Stream) and request.method == "HEAD":
            return Response(answer.status, answer.headers)
        if isinstance(answer, Response | Stream):
            return answer
        status = next(iter(operation.answers))
        return Response(status) if answer is None else render.json_response(status, answer)


def _read_body(call: ControlCall[Any], operation: ControlOperation, headers: Headers) -> None:
    """Validate the body by the form of the operation; raises FORMAT_ERROR with every problem."""
    from emulator.bank.validation import validate_as

    if operation.yaml and _media_type(headers) in YAML_TYPES:
        call.text = _yaml_text(call.request, headers)
        return
    # A form on a foreign page could have sent any other content type. A request without body and content type passes: a
    # form always sends one, and the Origin of a foreign script is checked elsewhere.
    if (call.request.body or headers.get("content-type")) and _media_type(headers) != "application/json":
        text = "Changes require Content-Type: application/json."
        raise BankError("BAD_REQUEST", text, "Content-Type", status=415)
    call.value = _json_value(call.request, headers)
    large = list(too_large(call.value))
    if large:
        raise refusal(large)
    if operation.body is None and call.value != {}:
        raise BankError("FORMAT_ERROR", "This operation takes no body.")
    if operation.body is not None and not operation.yaml:
        call.body, problems = validate_as(resolved(operation.body), call.value)
        if problems:
            raise refusal(problems)


def _media_type(headers: Headers) -> str:
    """The media type of the body, without its parameters."""
    return (headers.get("content-type") or "").partition(";")[0].strip().lower()


def _json_value(request: Request, headers: Headers) -> Any:
    """The body of a change as a JSON value; an empty one counts as {}. Raises FORMAT_ERROR."""
    if not request.body.strip():
        return {}
    value = _plain(read_json(request.body, headers))
    if b"\\u" in request.body:  # only an escape can write half of a surrogate pair
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BankError("FORMAT_ERROR", "The body contains half of a surrogate pair.") from None
    return value


def _plain(value: Any) -> Any:
    """The value with decimals as floats, as a YAML parser gives them."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


def _yaml_text(request: Request, headers: Headers) -> str:
    """The body of a change as text; raises 415 and 413 as `read_json`, and FORMAT_ERROR if it is not in its charset."""
    charset = charset_of(headers, YAML_TYPES)
    if len(request.body) > LARGEST_BODY:
        raise BankError("BAD_REQUEST", f"A body has at most {LARGEST_BODY} bytes.", status=413)
    if charset is not UTF_8:
        return request.body.decode(charset)
    try:
        return strict_yaml.decoded(request.body)
    except YamlError as error:
        raise BankError("FORMAT_ERROR", f"Line {error.line}: {error.text}") from None
