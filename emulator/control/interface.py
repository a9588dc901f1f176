"""Handles requests under /_emulator: checks, routing, body, operation and answer; synchronous."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from emulator.api import render
from emulator.api.description.writer import resolved
from emulator.api.headers import Headers
from emulator.api.messages import Answered, Request, Response, Steps, Stream, Unfinished
from emulator.api.query import parse
from emulator.api.render import failed
from emulator.api.router import MethodRefused, Router, split_target
from emulator.api.service import BankService
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.fixtures import FixtureError
from emulator.bank.problems import Problem
from emulator.bank.snapshots import Snapshots
from emulator.bank.threads import in_thread
from emulator.ca import CertificateAuthority
from emulator.control import gate
from emulator.control.operation import Banks, ControlCall, ControlOperation, refusal
from emulator.scenario.loader import ScenarioRefused, too_large
from emulator.scenario.rules import RuleSet
from emulator.scenario.target import ScenarioTarget
from emulator.store import StoreUnwritable

logger = logging.getLogger(__name__)

PREFIX = "/_emulator"
NO_STORE = ("Cache-Control", "no-store")

_Router = Router[ControlOperation, tuple[ControlOperation, Mapping[str, str]]]


class Control:
    """The control interface of every bank of the process.

    `snapshots_of` gives the snapshots of a bank by name, and is called once per bank; `token` is the --control-token;
    `allowed_hosts` are Host names in addition to the loopback names.
    """

    def __init__(
        self,
        banks: Banks,
        authority: CertificateAuthority,
        *,
        token: str | None = None,
        allowed_hosts: Iterable[str] = (),
        snapshots_of: Callable[[str], Snapshots] = lambda _: Snapshots(),
    ) -> None:
        self._banks = banks
        self._authority = authority
        self._gate = gate.Gate(token=token, allowed_hosts=allowed_hosts)
        self._snapshots_of = snapshots_of
        self._snapshots: WeakKeyDictionary[Bank, Snapshots] = WeakKeyDictionary()
        self._router: _Router | None = None

    def _routing(self) -> _Router:
        # The table is imported with the first request, as importing the forms of the bodies would slow down the start.
        from emulator.control.operations import table

        return Router(table(), _with_parameters, prefix=PREFIX, hint=f"; see {PREFIX}/openapi.json")

    def scenario_target(self, service: BankService) -> ScenarioTarget:
        """The bank of a service, with all that a scenario changes."""
        bank = service.bank
        if not isinstance(service.rules, RuleSet):
            raise TypeError("the rules of a service are a RuleSet")
        snapshots = self._snapshots.get(bank)
        if snapshots is None:
            snapshots = self._snapshots[bank] = self._snapshots_of(bank.name)
        return ScenarioTarget(bank, service.rules, service.log, snapshots)

    def refuse(self, request: Request) -> Response | None:
        """The answer to a request that may not use the interface, whichever bank it names; None if it may."""
        try:
            self._gate.check(request, Headers(request.headers))
        except BankError as error:
            response = _gate_refusal(error)
            response.headers.append(NO_STORE)
            return response
        return None

    def handle(self, service: BankService, request: Request) -> Answered:
        """Answer a request under /_emulator to the bank of `service`, or do the first step of that; never raises."""
        return Unfinished(self._steps(service, request)).step()

    def _steps(self, service: BankService, request: Request) -> Steps:
        headers = Headers(request.headers)
        response: Response | Stream
        try:
            self._gate.check(request, headers)
            response = yield from self._operated(service, request, headers)
        except MethodRefused as error:
            response = render.refusal(error, headers=[("Allow", ", ".join(error.allowed))])
        except BankError as error:
            response = _gate_refusal(error)
        except ScenarioRefused as error:
            response = render.refusal(refusal(error.problems))
        except FixtureError as error:
            response = render.refusal(refusal([Problem(("fixtures",), line) for line in error.lines()]))
        except StoreUnwritable as error:
            logger.error("the state cannot be written: %s", error)
            response = render.refusal(render.UNWRITABLE)
        except Exception as error:
            response = render.refusal(failed(request, error))
        response.headers.append(NO_STORE)
        return response

    def _operated(self, service: BankService, request: Request, headers: Headers) -> Steps:
        if self._router is None:  # half a second of imports
            self._router = yield from in_thread(self._routing)
        path, query = split_target(request.target)
        path = "/" + path[len(request.prefix) + len(PREFIX) :].strip("/")
        if request.method == "OPTIONS":
            return Response(204, [("Allow", ", ".join(self._router.methods(path)))])
        operation, params = self._router.find(request.method, path)
        call: ControlCall[Any] = ControlCall(
            service=service,
            banks=self._banks,
            authority=self._authority,
            target_of=self.scenario_target,
            openapi=_openapi,
            request=request,
            body=None,
            params=params,
            query=parse(operation.query, query),
        )
        if operation.method in gate.CHANGING:
            _read_body(call, operation, headers)
        handled = operation.handler(call)
        answer = operation.response((yield from handled) if isinstance(handled, Generator) else handled)
        if request.method == "HEAD" and isinstance(answer, Stream):
            return Response(answer.status, answer.headers)
        return answer


def _openapi(base: str) -> dict[str, Any]:
    from emulator.control.openapi import document  # only on use: most processes never show it

    return document(base)


def _gate_refusal(error: BankError) -> Response:
    challenge = [("WWW-Authenticate", "Bearer")] if error.status == 401 else []
    return render.refusal(error, headers=challenge)


def _read_body(call: ControlCall[Any], operation: ControlOperation, headers: Headers) -> None:
    """Validate the body by the form of the operation; raises FORMAT_ERROR with every problem."""
    from emulator.bank.validation import validate_as

    if operation.yaml and gate.is_yaml(headers):
        call.text = gate.yaml_text(call.request)
        return
    gate.require_json(call.request, headers)
    call.value = gate.json_value(call.request, headers)
    large = list(too_large(call.value))
    if large:
        raise refusal(large)
    if operation.body is None and call.value != {}:
        raise BankError("FORMAT_ERROR", "This operation takes no body.")
    if operation.body is not None and not operation.yaml:
        call.body, problems = validate_as(resolved(operation.body), call.value)
        if problems:
            raise refusal(problems)


def _with_parameters(
    operation: ControlOperation, params: Mapping[str, str]
) -> tuple[ControlOperation, Mapping[str, str]]:
    return operation, params
