"""The gates that a request passes, in the order of CONTRACT 3; the first that fails answers.

Wire format (the web side has read it), route, signature, TPP role, headers, query, body, scripted rules, PSU and
access, quotas, then the handler with its resource and business rules, inside one change of the documents.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

from cryptography.x509 import Certificate

from emulator.api import customer, render
from emulator.api import query as queries
from emulator.api.headers import MATRIX, Headers, check_headers
from emulator.api.json_body import is_plain, read_json
from emulator.api.log import BODY_KEPT, Exchange, RequestLog
from emulator.api.messages import Request, Response
from emulator.api.negotiation import content_language, refuse_unacceptable
from emulator.api.operation import Call, Operation, Reply
from emulator.api.repeats import Repeats
from emulator.api.router import MethodRefused, Router, split_target
from emulator.api.signature import SignaturePolicy, SignatureRefused, check
from emulator.api.validate import validate
from emulator.bank import products, progression
from emulator.bank.bank import Bank
from emulator.bank.clock import moment, real_now
from emulator.bank.errors import BankError, Message, ScaNeeded
from emulator.store import StoreUnwritable

logger = logging.getLogger(__name__)

API_PREFIX = "/api-sandbox"
_NO_HEADERS = Headers()


class Acting(Protocol):
    """The scripted rules that act on one request."""

    @property
    def names(self) -> Sequence[str]: ...
    def before(self, call: Call) -> Reply | None: ...
    def after(self, call: Call, response: Response) -> Response: ...


class Rules(Protocol):
    """The scripted rules of a bank; the scenario room has them."""

    @property
    def rules(self) -> Sequence[object]: ...
    def match(self, call: Call, signed: bool) -> Acting | None: ...


Signer = Callable[[Response, str], None]


class Pipeline:
    """The TPP interface of one bank: `handle(Request) -> Response`, whole and synchronous, never raising."""

    def __init__(
        self,
        bank: Bank,
        *,
        router: Router,
        rules: Rules,
        log: RequestLog,
        trusted_ca: Callable[[], Certificate | None],
        sign_response: Signer,
    ) -> None:
        self._bank = bank
        self._router = router
        self._rules = rules
        self._log = log
        self._trusted_ca = trusted_ca
        self._sign_response = sign_response

    def handle(self, request: Request) -> Response:
        """Answer one request of a TPP and enter it into the log."""
        began = time.perf_counter()
        exchange = self._log.begin(self._bank.clock.hold(), request)
        headers = Headers(request.headers)
        try:
            response = self._through_the_gates(exchange, headers)
        except Exception:
            logger.exception("%s %s failed", request.method, split_target(request.target)[0])
            response = render.refusal(render.INTERNAL)
        finally:
            self._bank.clock.release()
        self._finish(response, headers)
        if exchange.call is not None:
            # the log shows the request as it came; what was read out of it need not be kept a thousand requests long
            exchange.call.headers, exchange.call.body = _NO_HEADERS, None
        exchange.response = response
        exchange.seconds = time.perf_counter() - began
        if len(request.body) + len(response.body) > BODY_KEPT:
            self._log.weigh(exchange)
        if self._bank.watchers:
            self._bank.publish({"type": "request", **exchange.summary()})
        return response

    def _finish(self, response: Response, headers: Headers) -> None:
        request_id = headers.get("x-request-id")
        language = content_language(headers) if "accept-language" in headers else "en"
        if request_id and request_id.isascii() and request_id.isprintable():
            response.headers += (("X-Request-ID", request_id), ("Content-Language", language))
        else:
            response.headers.append(("Content-Language", language))
        if self._bank.settings.sign_responses:
            self._sign_response(response, request_id or "")

    def _through_the_gates(self, exchange: Exchange, headers: Headers) -> Response:
        acting: list[Acting] = []
        try:
            settle(self._bank)
            call = self._routed(exchange, headers)
            reply = self._scripted(call, exchange, acting, False) or self._acted(call, exchange, acting)
            response = render.json_response(reply.status, reply.body, reply.headers)
        except ScaNeeded as refused:
            response = self._send_to_sca(exchange.call, refused)
        except MethodRefused as refused:
            response = render.refusal(refused, headers=[("Allow", ", ".join(refused.allowed))])
        except BankError as refused:
            response = render.refusal(refused)
        except StoreUnwritable as failed:
            logger.error("the state cannot be written: %s", failed)
            response = render.refusal(render.UNWRITABLE)
        for effects in acting:
            if exchange.call is not None:
                response = effects.after(exchange.call, response)
        return response

    def _routed(self, exchange: Exchange, headers: Headers) -> Call:
        request = exchange.request
        refuse_unacceptable(headers)
        path, query = split_target(request.target)
        prefix = request.prefix
        if prefix:
            path = path[len(prefix) :]
        operation, params = self._router.find(request.method, path)
        exchange.call = call = Call(
            self._bank,
            request,
            operation,
            params,
            headers,
            query,
            request.base if prefix in ("", API_PREFIX) else request.base + prefix,
        )
        if self._bank.settings.links == "absolute":
            call.links_base = request.base + prefix
        if "payment-product" in params:
            products.find(params["payment-service"], params["payment-product"])
        column = operation.column
        call.column = column if isinstance(column, str) else column(params)
        return call

    def _scripted(self, call: Call, exchange: Exchange, acting: list[Acting], signed: bool) -> Reply | None:
        effects = self._rules.match(call, signed) if self._rules.rules else None
        if effects is None:
            return None
        acting.append(effects)
        exchange.rules = [*exchange.rules, *effects.names]
        return effects.before(call)

    def _acted(self, call: Call, exchange: Exchange, acting: list[Acting]) -> Reply:
        self._signed(call, exchange)
        operation = call.operation
        if operation.roles.isdisjoint(call.tpp.roles):
            needed = " or ".join(sorted(operation.roles))
            raise BankError("FORBIDDEN", f"The certificate does not give this TPP the role {needed}.")
        self._well_formed(call)
        scripted = self._scripted(call, exchange, acting, True)
        if scripted is not None:
            return scripted
        with self._bank.documents.transaction():
            call.caller = customer.admit(call)
            if not operation.remembers:
                return operation.handler(call)
            return self._once(call)

    def _signed(self, call: Call, exchange: Exchange) -> None:
        settings = self._bank.settings
        request, headers = call.request, call.headers
        takes_body = call.operation.body is not None
        try:
            verified = check(
                request.method,
                request.target,
                request.headers,
                request.body,
                takes_body and _demands_digest(call),
                _policy(settings.profile, settings.trust, settings.date_skew),
                real_now(),
                self._trusted_ca() if settings.trust == "sandbox-ca" else None,
                headers if headers.single else None,
            )
        except SignatureRefused as refused:
            exchange.signature = refused.with_traceback(None)  # the log must not keep the frames of this request
            found = [Message(code, text, path) for code, path, text in refused.messages]
            raise BankError.several(found) from None
        exchange.signature = verified
        call.tpp = verified.tpp

    def _well_formed(self, call: Call) -> None:
        """Headers, query and body, each gate reporting all that it found."""
        operation = call.operation
        wrong = check_headers(
            call.headers, call.column, self._bank.settings.profile, operation.needs, operation.before_first_sca
        )
        if wrong:
            raise BankError.several(wrong)
        if operation.query or call.raw_query:
            call.query = queries.parse(operation.query, call.raw_query)
        if operation.body is not None:
            value = read_json(call.request.body, call.headers)
            shape = operation.body if isinstance(operation.body, str) else operation.body(call.params)
            call.body, call.warnings = validate(shape, value, plain=is_plain(call.request.body))

    def _once(self, call: Call) -> Reply:
        """A creation: the stored answer for a repeat, else the handler's, remembered when it is a 201."""
        header = call.headers.get
        request_id = header("x-request-id")
        if request_id is None:
            return call.operation.handler(call)
        psu = (header("psu-id") or "", header("psu-corporate-id") or "")
        repeats = Repeats(self._bank, call.tpp.id, request_id, call.request, psu)
        stored = repeats.stored()
        if stored is not None:
            return stored
        reply = call.operation.handler(call)
        return repeats.remember(reply) if reply.status == 201 else reply

    def _send_to_sca(self, call: Call | None, refused: ScaNeeded) -> Response:
        """401 with a scaRedirect: the open SCA is the only thing that is added (CONTRACT 3)."""
        if call is None:
            return render.refusal(refused)
        try:
            with self._bank.documents.transaction():
                token = customer.open_access(call)
        except BankError as missing:
            return render.refusal(missing)
        except StoreUnwritable:
            return render.refusal(render.UNWRITABLE)
        return render.refusal(refused, links={"scaRedirect": call.sca_link(token)})


def settle(bank: Bank) -> None:
    """Apply what bank time has made due before a request is answered (CONTRACT 6, Time)."""
    due = progression.next_due(bank)
    if due is None or moment(due) > bank.clock.now():
        return
    try:
        with bank.documents.at_once():  # a step that cannot be written must not take the request along
            progression.run_due(bank)
    except StoreUnwritable as failed:
        # Reads go on with the state as it stands; a write answers 503 by itself.
        logger.error("what is due cannot be written: %s", failed)


def _demands_digest(call: Call) -> bool:
    """Where SPEC 2.1 marks Digest, and on what writes sandbox data (CONTRACT 3.1)."""
    return MATRIX["Digest"][call.column] == "R" or call.operation.path.startswith("/v1/sandbox/")


@lru_cache(maxsize=64)
def _policy(profile: str, trust: str, date_skew: int) -> SignaturePolicy:
    return SignaturePolicy(profile, trust, date_skew)


def operation_by_id(operations: Sequence[Operation], operation_id: str) -> Operation | None:
    """The row with this operationId."""
    return next((operation for operation in operations if operation.id == operation_id), None)
