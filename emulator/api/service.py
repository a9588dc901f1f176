"""One bank with its TPP interface, scripted rules and request log: the pipeline of a request.

A request passes these gates in this order (requests.md#order-of-checks). The first that refuses determines the answer;
headers, query, body and business rules report everything that they find.

    gate                        code                        refuses with
    wire format, size           the web server, `refused`   400, 408, 413, 414, 431
    due steps of bank time      `settling`                  nothing: what cannot be written stays due
    route                       `_routed`                   404 NOT_FOUND, PRODUCT_UNKNOWN; 405
    rules with `unsigned`       `_scripted`                 what the rule says
    signature                   `_signed`                   400
    role of the certificate     `_beyond_routing`           403 FORBIDDEN
    headers, query, body        `_well_formed`              400, 406, 413, 415
    all other rules             `_scripted`                 what the rule says
    PSU, session, consent       `gates.admit`               401 with a scaRedirect, 404, 429
    repeat of a creation        `gates.once`                the stored answer; 409
    resource, business rules    the operation's handler     400, 403, 404, 409

Rules come that late because they match what the gates before have read; a rule that plays a bank that is down is
`unsigned`. The last three gates and all that they write are one transaction; only the day of a consent's last use is
written after it. Bank time stands still from the first gate to the answer.

    failure                     consequence
    BankError, from any depth   its answer; the transaction is undone
    ScaNeeded                   the same; then a transaction of its own opens the SCA, the only trace of a refusal
    StoreUnwritable             503; the change is undone, reads go on
    any other exception         500, logged with its traceback; the transaction is undone

The effects of rules change the answer (but not that 500). Then it gets the headers of every answer and its signature,
and the request log, the report on TPPs, the metrics and the event stream receive it. It is sent by the web server
after the change is stored (`emulator.assemble.turns`). An operation with long work leaves it in the answer's `rest`:
the steps that are done before the answer is final, and only then noted by the metrics.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from cryptography.x509 import Certificate

from emulator import __version__
from emulator.api import gates, render
from emulator.api import query as queries
from emulator.api.headers import Headers, check_headers, malformed, with_one_spelling
from emulator.api.json_body import read_and_validate
from emulator.api.log import LARGE_BODY, Exchange, RequestLog
from emulator.api.messages import Request, Response, values_of
from emulator.api.notification_headers import FORMATS as NOTIFICATION_HEADERS
from emulator.api.operation import Call, Reply
from emulator.api.operations import router
from emulator.api.outcomes import Outcomes
from emulator.api.render import VARY, content_language, failed, unacceptable
from emulator.api.router import MethodRefused, split_target
from emulator.api.signature import SignatureRefused, VerifiedClients, check
from emulator.bank import fixtures, products
from emulator.bank.bank import Bank, reports_preparing
from emulator.bank.clock import real_seconds
from emulator.bank.customers import consents
from emulator.bank.errors import BankError, ScaNeeded
from emulator.bank.fixtures import FixtureError
from emulator.bank.ids import fixed_id, random_uuid
from emulator.bank.kinds import ACCOUNT, BANK, CARD, CARD_TRANSACTION, CUSTOMER, PAYMENT, TRANSACTION
from emulator.bank.payment import progression
from emulator.store import StoreUnwritable, StoreVoid

logger = logging.getLogger(__name__)

API_PREFIX = "/api-sandbox"  # the same interface, for clients with this prefix in their configuration
_NO_HEADERS = Headers()
_NOT_TO_BE_CACHED = (("Cache-Control", "no-store"), VARY)


class MatchedRules(Protocol):
    """The scripted rules that match a request.

    `notes`: why rules that match do not act; `effects`: what they do, by the kind of effect.
    """

    @property
    def names(self) -> Sequence[str]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def effects(self) -> Mapping[str, object]: ...

    def before(self, call: Call) -> Reply[Any] | None:
        """Act before the operation; a reply takes the place of its own."""

    def after(self, response: Response) -> None:
        """Act on the answer."""


class Rules(Protocol):
    """The scripted rules of a bank, implemented in `emulator.scenario`; `rules`: all of them."""

    @property
    def rules(self) -> Sequence[object]: ...

    def match(self, call: Call, signed: bool, earlier: Sequence[MatchedRules]) -> MatchedRules | None:
        """The rules that match a request, before (`signed` False) or after the check of its signature.

        `earlier`: those that have matched before it.
        """


class Observer(Protocol):
    """Observes every request, for the conformance report."""

    def request(self, exchange: Exchange) -> None:
        """Record a request that has been answered."""

    def page(self, token: str, tpp: str | None, *, link: str) -> None:
        """Record that a browser has opened an SCA page."""

    def judge_some(self, most: int) -> int:
        """Process at most `most` recorded events; returns the number that is left."""


Sign = Callable[[Response], None]
Signer = Callable[[], Sign]
"""Returns the function that signs the next answer; called before the request is handled, because it may fail."""


class BankService:
    """A running bank: the interface for the web server, the control interface and the scenario player.

    Synchronous. Exceptions of an operation become answers; those of due steps, of signing and of the observer are left
    to the caller, for whom they are a 500.
    """

    def __init__(
        self,
        bank: Bank,
        *,
        rules: Rules,
        trusted_ca: Callable[[], Certificate | None],
        signer: Signer,
        observer: Observer,
        outcomes: Outcomes,
    ) -> None:
        self.bank = bank
        self._clients = VerifiedClients()
        self.observer = observer
        self.outcomes = outcomes
        self.rules = rules
        self.log = RequestLog()
        self.router = router()
        self._trusted_ca = trusted_ca
        self._signer = signer

    def handle(self, request: Request) -> Response:
        """Apply due steps, answer one request to `/v1`, and do what is left to do before the answer is sent."""
        self.settle()
        response = self.answer(request)
        if response.rest is not None:
            deque(response.rest, maxlen=0)
            response.rest = None
        return response

    def settle(self) -> None:
        """Apply due steps; pages and the control interface call it before they read."""
        for _ in self.settling():
            pass

    def settling(self) -> Iterator[None]:
        """`settle` in pieces, each a change of its own, between which others may use the bank."""
        bank = self.bank
        if not progression.is_behind(bank):
            return
        until = bank.clock.stamp()
        while True:
            try:
                with bank.documents.at_once():  # written separately, so that a failure does not affect the request
                    more = progression.run_piece(bank, until)
                if not more:
                    return
                yield
            except StoreVoid:  # another process has the bank: these documents are nobody's
                raise
            except StoreUnwritable as error:  # of this piece, or of its commit
                # Reads still use the current state; a write answers 503.
                logger.error("due steps cannot be written: %s", error)
                return

    def answer(self, request: Request) -> Response:
        """Answer one request to `/v1`; what bank time has made due is applied already."""
        start = time.perf_counter()
        bank = self.bank
        exchange = self.log.begin(bank.clock.hold(), request)
        headers = Headers(request.headers)
        sign: Sign | None = None
        try:
            if bank.settings.sign_responses:
                sign = self._signer()
            response = self._through_the_gates(exchange, headers)
        except Exception as error:
            response = render.refusal(failed(request, error))
        finally:
            bank.clock.release()
        finish(response, headers, partial(_own_id, exchange))
        if exchange.rules:
            _prefer_scripted(response)
        if sign is not None:
            sign(response)
        if exchange.call is not None:
            # The log shows the request as sent, and need not store the parsed values too.
            exchange.call.headers, exchange.call.body = _NO_HEADERS, None
            if exchange.request is not request:
                exchange.request.prepared = None
        exchange.response = response
        exchange.seconds = time.perf_counter() - start
        if len(request.body) + len(response.body) > LARGE_BODY:
            self.log.weigh(exchange)
        if bank.settings.conformance:
            self.observer.request(exchange)
        if self.outcomes.followers:
            if response.rest is None:
                self.outcomes.note(bank.name, exchange)
            else:
                response.rest = self._noted_after(response.rest, exchange)
        if bank.watchers:
            bank.publish({"type": "request", **exchange.summary()})
        return response

    def _noted_after(self, rest: Iterator[object], exchange: Exchange) -> Iterator[object]:
        """Do what is left to do before an answer is final, then note its exchange."""
        try:
            yield from rest
        finally:
            self.outcomes.note(self.bank.name, exchange)

    def initializing(self, request: Request) -> Generator[object, None, Response]:
        """`answer` for a request that restores the known state, whose documents are prepared in a thread before.

        Nothing is prepared for a request that will be refused. If preparing fails, `answer` refuses the request; if the
        bank is replaced meanwhile, it restores the state of the new one.
        """
        bank = self.bank
        if self._is_admitted(request):
            try:
                with bank.preparing():
                    prepared = yield from fixtures.prepare(
                        bank.documents,
                        fixtures.initial_state(bank),
                        today=bank.clock.today(),
                        ids_form=bank.ids.form,
                        report=reports_preparing(bank),
                    )
                request.prepared = prepared
            except StoreVoid:
                raise
            except (BankError, FixtureError, OSError, StoreUnwritable):
                pass
        response = self.answer(request)
        request.prepared = None  # the log keeps the request
        return response

    def _is_admitted(self, request: Request) -> bool:
        """Whether the signature is valid and its TPP may call the operation."""
        exchange = Exchange(0, "", request)
        try:
            call = self._routed(exchange, Headers(request.headers))
            self._signed(call, exchange)
        except BankError:
            return False
        return not call.operation.roles.isdisjoint(call.tpp.roles)

    def refused(self, request: Request, response: Response) -> None:
        """Complete the answer to a request that the web server has refused, and add it to the request log."""
        bank = self.bank
        exchange = self.log.begin(bank.clock.stamp(), request)
        exchange.response = response
        finish(response, Headers(request.headers), partial(_own_id, exchange))
        if bank.settings.sign_responses:
            try:
                self._signer()(response)
            except Exception as error:
                failed(request, error)  # logs the error; the refusal is sent unsigned
        self.outcomes.tell([(bank.name, exchange)])
        if bank.watchers:
            bank.publish({"type": "request", **exchange.summary()})

    def _through_the_gates(self, exchange: Exchange, headers: Headers) -> Response:
        acting: list[MatchedRules] = []
        try:
            if exchange.request.method == "OPTIONS":  # needs no signature (assumed)
                path, prefix = split_target(exchange.request.target)[0], exchange.request.prefix
                allowed = self.router.methods(path[len(prefix) :], prefix)
                return Response(204, [("Allow", ", ".join(allowed))])
            call = self._routed(exchange, headers)
            scripted = self._scripted(call, exchange, acting, False) if self.rules.rules else None
            if scripted is not None:
                # The log and the report know whose request it was, also when a bank that is down answers nobody.
                with suppress(BankError):
                    self._signed(call, exchange)
            reply = scripted or self._beyond_routing(call, exchange, acting)
            response = render.json_response(reply.status, reply.body, reply.headers)
            if reply.rest is not None:
                response.rest = reply.rest
        except ScaNeeded as refused:
            response = self._send_to_sca(exchange.call, refused)
        except (BankError, StoreUnwritable) as error:
            response = render.refusal(failed(exchange.request, error))
        if acting:
            exchange.response = response
            exchange.created = exchange.payment_id  # now: an effect may spoil the body that names it
            for effects in acting:
                effects.after(response)
        return response

    def _routed(self, exchange: Exchange, headers: Headers) -> Call:
        request = exchange.request
        prefix = request.prefix
        path, query = split_target(request.target)
        try:
            route = self.router.find(request.method, path[len(prefix) :], prefix)  # the path within the bank
        except MethodRefused as refused:
            if "payment-product" in refused.params:  # of an unknown product nothing has a method
                products.find(refused.params["payment-service"], refused.params["payment-product"])
            raise
        exchange.call = call = Call(
            self.bank,
            request,
            route,
            route.operation,
            route.params,
            headers,
            query,
            request.base + prefix.removesuffix(API_PREFIX) if prefix else request.base,
        )
        if self.bank.settings.links == "absolute":
            call.links_base = request.base + prefix
        return call

    def _scripted(self, call: Call, exchange: Exchange, acting: list[MatchedRules], signed: bool) -> Reply[Any] | None:
        effects = self.rules.match(call, signed, acting)
        if effects is None:
            return None
        acting.append(effects)
        exchange.rules = [*exchange.rules, *effects.names]
        exchange.notes = [*exchange.notes, *effects.notes]
        return effects.before(call)

    def _beyond_routing(self, call: Call, exchange: Exchange, acting: list[MatchedRules]) -> Reply[Any]:
        operation = call.operation
        self._signed(call, exchange)
        if (spelled := with_one_spelling(call.request.headers)) is not None:
            # the request log, rules, counts, repeats and the report all see these
            call.request = exchange.request = replace(call.request, headers=spelled)
            call.headers = Headers(spelled)
        if operation.roles.isdisjoint(call.tpp.roles):
            needed = " or ".join(sorted(operation.roles))
            raise BankError("FORBIDDEN", f"The certificate does not give this TPP the role {needed}.")
        self._well_formed(call)
        scripted = self._scripted(call, exchange, acting, True) if self.rules.rules else None
        if scripted is not None:
            return scripted
        with self.bank.documents.transaction():
            call.caller = gates.admit(call)
            reply = gates.once(call) if operation.remembers else gates.handled(call)
        if call.caller is not None:
            call.caller.held = None  # the log keeps the call for long
            if call.caller.consent is not None:
                consents.note_use(self.bank, call.caller.consent)
        return reply

    def _signed(self, call: Call, exchange: Exchange) -> None:
        request, headers, settings = call.request, call.headers, self.bank.settings
        try:
            exchange.signature = verified = check(
                request.method,
                request.target,
                request.headers,
                request.body,
                digest_required=call.route.digest,
                settings=settings,
                instant=real_seconds(),
                trusted_ca=self._trusted_ca() if settings.trust == "sandbox-ca" else None,
                present=headers if headers.single else None,
                clients=self._clients,
                base=request.base,
            )
        except SignatureRefused as refused:
            exchange.signature = refused.with_traceback(None)  # a traceback would keep this request's frames in memory
            raise BankError.several(refused.messages) from None
        call.tpp = verified.tpp

    def _well_formed(self, call: Call) -> None:
        """Check headers, query and body; each of these gates reports all problems."""
        route, operation, headers = call.route, call.operation, call.headers
        wrong = check_headers(
            headers,
            route.column,
            profile=self.bank.settings.profile,
            needs=operation.needs,
            session_optional=operation.before_first_sca,
            acts=operation.acts,
        )
        if operation.notifies and self.bank.settings.notifications:
            wrong += malformed(headers, NOTIFICATION_HEADERS)
        if (refused := unacceptable(headers)) is not None:
            raise BankError.several([*wrong, refused], status=None if wrong else 406)
        if wrong:
            raise BankError.several(wrong)
        call.query = queries.parse(operation.query, call.raw_query)
        if route.shape is not None:
            call.body, call.warnings = read_and_validate(route.shape, call.request.body, headers)

    def _send_to_sca(self, call: Call | None, refused: ScaNeeded) -> Response:
        """401 with a scaRedirect: the open SCA is the only change that a refusal leaves."""
        if call is None:
            return render.refusal(refused)
        try:
            with self.bank.documents.transaction():
                token = gates.open_access(call)
        except (BankError, StoreUnwritable) as error:
            return render.refusal(failed(call.request, error))
        return render.refusal(refused, links={"scaRedirect": call.sca_link(token)})


def _own_id(exchange: Exchange) -> str:
    """The bank's X-Request-ID for a request without one; it repeats with a seed, without using up an id."""
    return fixed_id(f"request {exchange.id} at {exchange.at}")


def _prefer_scripted(response: Response) -> None:
    """Remove a header of the bank's own that the answer also has from a rule."""
    for own in _NOT_TO_BE_CACHED:
        if len(values_of(response.headers, own[0].lower())) > 1:
            response.headers.remove(own)


def finish(response: Response, headers: Headers, own_id: Callable[[], str] = random_uuid) -> None:
    """Add the headers that every answer of the TPP interface has."""
    request_id = headers.get("x-request-id")
    if not (request_id and request_id.isascii() and request_id.isprintable()):
        request_id = own_id()
    response.headers += (
        ("X-Request-ID", request_id),
        ("Content-Language", content_language(headers)),
        *_NOT_TO_BE_CACHED,
    )


def health() -> dict[str, Any]:
    """The answer of a running process."""
    return {"status": "UP"}


def ready(bank: Bank) -> dict[str, Any]:
    """The answer of a ready bank, with version, fixtures and counts of documents."""
    about, count = BANK.read(bank.documents), bank.documents.count
    return {
        "status": "READY",
        "version": __version__,
        "fixtures": None if about is None else about["fixtures"],
        "counts": {
            "customers": count(CUSTOMER),
            "accounts": count(ACCOUNT),
            "cardAccounts": count(CARD),
            "payments": count(PAYMENT),
            "transactions": count(TRANSACTION) + count(CARD_TRANSACTION),
        },
    }
