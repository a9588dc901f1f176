"""The application: passes each request to the handler of its address, synchronously.

After a kill, a start reads the journal, which takes seconds if it is large. Meanwhile `StartingApplication` answers at
the listening address: /health is 200, /ready 503 with the progress, which is logged, too, the rest 503. Afterwards
/ready is `api/service.ready`, to which `homes` adds what a process of several has.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from ssl import SSLContext
from time import monotonic
from typing import Protocol, runtime_checkable

from emulator.api import render
from emulator.api.headers import Headers
from emulator.api.messages import Answered, Request, Response, Stream, Unfinished, finished
from emulator.api.render import failed
from emulator.api.router import split_target
from emulator.api.service import API_PREFIX, BankService, finish, health, ready
from emulator.assemble.notifier import Notifier, Post
from emulator.assemble.registry import COMPACTING, DEFAULT, BankRegistry, address_of, bank_of, part_of
from emulator.assemble.turns import Turns, refuse
from emulator.bank.clock import moment
from emulator.bank.errors import BankError
from emulator.bank.kinds import SCA
from emulator.bank.payment import progression
from emulator.scenario.target import ScenarioTarget
from emulator.settings import ServeSettings
from emulator.store import StoreLost, StoreUnwritable, StoreVoid
from emulator.web.handler import Application, Turn
from emulator.web.pages.browser import root_of
from emulator.web.pages.rendering import nothing_here, wants_page

logger = logging.getLogger(__name__)

IDLE = 0.25  # seconds without a request after which the process counts as idle
JUDGED = 32  # observations for the conformance report that an idle process judges at a time
PAUSE = 0.001  # seconds between two of these, in which requests are handled
YOUNG = 10_000  # objects since the last garbage collection for which an idle process collects
SLOW_BYTES = 16 << 20
LOG_INTERVAL = 2.0  # seconds
INITIALIZE = "/v1/sandbox/initialize"  # the operation that may take long

_ABOUT = ("/health", "/ready", "/openapi.json")


class ServiceHandler(Protocol):
    """Answers the requests of one path prefix for a bank: control interface, pages, console."""

    def handle(self, service: BankService, request: Request) -> Answered: ...


@runtime_checkable
class Guarded(ServiceHandler, Protocol):
    """A handler that requires a token, before an answer tells which banks exist."""

    def refuse(self, request: Request) -> Response | None: ...


@runtime_checkable
class Pages(ServiceHandler, Protocol):
    """A handler of pages, whose answers about a missing bank and a change that was not stored are pages too."""

    def no_bank(self, request: Request, name: str) -> Response: ...

    def unwritable(self, request: Request, status: int, text: str) -> Response: ...


class BankApplication(Application):
    """The application that the web server serves.

    `handlers`: by first path segment (`_emulator`, `sca`, `console`, ...); all other paths are the TPP interface.
    `scenario_target` gives a bank with all that scenarios change; `post` sends a notification.
    """

    def __init__(
        self,
        registry: BankRegistry,
        *,
        handlers: dict[str, ServiceHandler],
        tls: Callable[[], SSLContext],
        scenario_target: Callable[[BankService], ScenarioTarget],
        post: Post,
    ) -> None:
        self.scenario_target = scenario_target
        self.warm_up: Callable[[], object] = lambda: None
        """Imports what the start has left for the first request; for any thread."""
        self.registry = registry
        self._handlers = handlers
        self._guards = {part: handler.refuse for part, handler in handlers.items() if isinstance(handler, Guarded)}
        self._tls = tls
        self._idle: asyncio.TimerHandle | None = None
        self._close_until: float | None = None
        self._handled_before = 0
        self._turns = Turns(registry, self.step, self.unwritable)
        self.notifier = Notifier(registry.services, registry.opened, change=self._turns.change, post=post)
        registry.on_open = self.notifier.follow

    def refusal(self, request: Request) -> Response | None:
        """The refusal of a request without the right to the control interface or console, before a bank is asked."""
        prefix, _, path = address_of(request.target)
        guard = self._guards.get(part_of(path))
        return None if guard is None else guard(replace(request, prefix=prefix) if prefix else request)

    @property
    def default(self) -> BankService:
        """The default bank."""
        return self.registry.default

    def turn(self) -> Turn:
        """The next turn of requests."""
        return self._turns

    def handle(self, request: Request) -> Response | Stream:
        """Answer a request, with all its steps; never raises."""
        return finished(self.step(request))

    def step(self, request: Request) -> Answered:
        """Answer a request, or do the next step of one with long work; never raises."""
        try:
            if request.unfinished is not None:
                try:
                    self._continues(request, request.unfinished)
                except StoreLost as lost:
                    refuse(request, request.unfinished, lost)
                return request.unfinished.step()
            service = self.registry.opened(DEFAULT) or self._without_default(request)
            if request.target.startswith("/v1/"):
                return _answer(service, request)
            return self._dispatch(service, request)
        except BankError as refused:
            response = render.refusal(refused)
        except StoreVoid as error:
            response = Response(503)
            refuse(request, response, error)
            return response
        except Exception as error:
            response = render.refusal(failed(request, error))
        finish(response, Headers(request.headers))
        return response

    def unwritable(self, request: Request, error: BankError) -> Response | None:
        """The page that says why a browser gets no other one; None where JSON is expected."""
        prefix, _, path = address_of(request.target)
        handler = self._handlers.get(part_of(path))
        if not isinstance(handler, Pages):
            return None
        status = render.refusal(error).status
        return handler.unwritable(replace(request, prefix=prefix), status, error.messages[0].text)

    def _continues(self, request: Request, work: Unfinished) -> None:
        """Mark the bank of unfinished work as in use; StoreLost if another process has it by now, or had it meanwhile.

        Work about a bank as a whole looks for itself what has become of it, as does that in a bank that was deleted.
        """
        name, whole = bank_of(request)
        if name is None or whole:
            return
        service = self.registry.default if name == DEFAULT else self.registry.find(name)
        began = work.documents
        if service is not None and began is not None and began is not service.bank.documents and not began.log.owned:
            raise StoreLost("another process had the bank meanwhile")

    def _dispatch(self, service: BankService, request: Request) -> Answered:
        prefix, name, path = address_of(request.target)
        part = part_of(path)
        handler = self._handlers.get(part)
        if prefix:
            request.prefix = prefix
            if (refused := self.refusal(request)) is not None:
                return refused
            named_service = self._named(name, request)
            if named_service is None and part != "static":  # its files draw a login too
                if isinstance(handler, Pages):
                    return handler.no_bank(replace(request, prefix=""), name)
                raise BankError("NOT_FOUND", f"The bank {name} does not exist.")
            service = named_service or service
        if path.startswith(f"{API_PREFIX}/v1/"):
            return _answer(service, replace(request, prefix=request.prefix + API_PREFIX))
        if handler is not None:
            if progression.is_behind(service.bank):
                return Unfinished(_settled(service, lambda: _handled_by(handler, service, request, path))).step()
            return _handled_by(handler, service, request, path)
        if path in _ABOUT:
            return self._about(service, request, path)
        if path in ("", "/") and "console" in self._handlers and request.method in ("GET", "HEAD"):
            return Response(303, [("Location", f"{root_of(request)}/console")])
        if wants_page(request) and not path.startswith("/v1"):
            return nothing_here(request)
        return _answer(service, request)

    def _without_default(self, request: Request) -> BankService:
        """What answers at a process that does not have the default bank; StoreLost for a request to it."""
        return self.registry.default if bank_of(request)[0] == DEFAULT else self.registry.stand_in()

    def _named(self, name: str, request: Request) -> BankService | None:
        """The named bank. Its control interface makes other banks, too, at their home, which need not have it."""
        try:
            return self.registry.find(name)
        except StoreLost:
            if not bank_of(request)[1]:
                raise
            return self.registry.stand_in()

    def _about(self, service: BankService, request: Request, path: str) -> Response:
        if request.method == "OPTIONS":
            return Response(204, [("Allow", "GET, HEAD, OPTIONS")])
        if request.method not in ("GET", "HEAD"):
            error = BankError("BAD_REQUEST", f"{request.prefix}{path} takes GET.", status=405)
            return render.refusal(error, headers=[("Allow", "GET, HEAD, OPTIONS")])
        if path == "/openapi.json":
            from emulator.api.description import openapi  # only on use, to keep the start fast

            return openapi.respond(request)
        body = health() if path == "/health" else ready(service.bank)
        return render.json_response(200, body, [("Cache-Control", "no-store")])

    def refused(self, request: Request, response: Response) -> None:
        """Let the bank complete and log a refusal of the web server to a request of its TPP interface.

        One that is not in this process, but perhaps in another, does not log it.
        """
        _, name, path = address_of(request.target)
        if part_of(path) in self._handlers or path in _ABOUT:
            return
        service = self.registry.opened(name or DEFAULT)
        if service is None:
            finish(response, Headers(request.headers))
        else:
            service.refused(request, response)

    def next_due(self) -> float | None:
        """Seconds of real time until something falls due in a watched bank; None for nothing."""
        waits = [wait for service in self.registry.watched() if (wait := _seconds_to_due(service)) is not None]
        return min(waits, default=None)

    def apply_due(self) -> Awaitable[None] | None:
        """Apply what is due in watched banks, so that watchers see it without a request."""
        return self._turns.apply_due()

    def tls_context(self) -> SSLContext:
        """The TLS context of --tls-port: TLS 1.2 or higher, with a certificate of the sandbox CA."""
        return self._tls()

    def start(self) -> None:
        """Start background work, within a running loop, before requests are served."""
        self._turns.start()
        self._idle = asyncio.get_running_loop().call_later(IDLE, self._use_idle_time)
        self.notifier.start()

    def _use_idle_time(self) -> None:
        """Close an idle bank; judge observations or collect garbage if no request has come since the last call."""
        handled, self._handled_before = self._handled_before, self._turns.count
        idle, more = handled == self._handled_before, False
        self.registry.close_idle()
        try:
            more = idle and any(service.observer.judge_some(JUDGED) for service in self.registry.services())
            if idle and not more:
                _collect_young()
        finally:
            self._idle = asyncio.get_running_loop().call_later(PAUSE if more else IDLE, self._use_idle_time)

    def stop(self) -> None:
        """Stop background work, after the last request; `close` compacts the documents."""
        if self._idle is not None:
            self._idle.cancel()
        self.notifier.stop()
        self._close_until = monotonic() + COMPACTING
        self._turns.stop()

    def close(self) -> None:
        """Compact the documents and release the state directory."""
        self.registry.close(self._close_until)


def _collect_young() -> None:
    """Collect what is recent, so that a collection seldom becomes due during requests, which would wait for it."""
    young, collections, _ = gc.get_count()
    if young > YOUNG:
        gc.collect(1 if collections > gc.get_threshold()[1] else 0)


def _answer(service: BankService, request: Request) -> Answered:
    """The answer of the TPP interface, after everything due is applied."""
    if progression.is_behind(service.bank):
        return Unfinished(_settled(service, lambda: _handled(service, request))).step()
    return _handled(service, request)


def _handled(service: BankService, request: Request) -> Answered:
    if request.method == "POST" and INITIALIZE in request.target:
        return Unfinished(service.initializing(request)).step()
    answer = service.answer(request)
    return answer if answer.rest is None else Unfinished(_completed(request, answer, answer.rest)).step()


def _completed(request: Request, answer: Response, rest: Iterator[object]) -> Generator[object, None, Answered]:
    """Do what is left to do before an answer is sent; what cannot be stored makes it 503."""
    answer.rest = None
    try:
        yield from rest
    except StoreUnwritable as error:
        refuse(request, answer, error)
    return answer


def _settled(service: BankService, answer: Callable[[], Answered]) -> Generator[None, None, Answered]:
    """Apply everything due in steps, then answer."""
    yield from service.settling()
    return answer()


def _handled_by(handler: ServiceHandler, service: BankService, request: Request, path: str) -> Answered:
    if path.startswith("/sca/") and request.method == "GET" and service.bank.settings.conformance:
        _note_page(service, path.removeprefix("/sca/"), request.target)
    return handler.handle(service, request)


def _note_page(service: BankService, token: str, target: str) -> None:
    """Report a browser at an SCA page to the conformance report. The pages only add `lang` to their address."""
    sca = service.bank.documents.get(SCA, token)
    query = split_target(target)[1]
    if sca is None:
        service.observer.page(token[:100], None, link="unknown")
    else:
        service.observer.page(token, sca["tpp"], link="given" if query in ("", "lang=en", "lang=nb") else "altered")


def _seconds_to_due(service: BankService) -> float | None:
    """Seconds until something falls due; None if the clock stands still."""
    clock = service.bank.clock
    due = progression.next_due(service.bank)
    if due is None or clock.mode == "frozen":
        return None
    return max(0.0, (moment(due) - clock.now()).total_seconds())


# Before there is a bank


def is_slow(settings: ServeSettings) -> bool:
    """Whether the journal of the default bank is so large that clients should see the progress.

    Only the journal counts: a snapshot is read several times as fast.
    """
    with suppress(OSError):  # the start itself reports the error
        journals = (settings.state / "banks" / DEFAULT).glob("*.jsonl")
        return not settings.ephemeral and sum(path.stat().st_size for path in journals) > SLOW_BYTES
    return False


class Progress:
    """How many bytes of the documents have been read; set by the loading thread, read by the other."""

    def __init__(self) -> None:
        self.done = 0
        self.total = 0
        self._logged = monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Set the progress, and log it every few seconds."""
        self.done, self.total = done, total
        now = monotonic()
        if now - self._logged >= LOG_INTERVAL:
            self._logged = now
            logger.info("reading the documents: %d %% of %d MB", self.percent, total >> 20)

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 0


class StartingApplication(Application):
    """The application, and its turn, before there is a bank."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def turn(self) -> StartingApplication:
        return self

    def handle(self, request: Request) -> Response:
        """200 for /health, 503 for everything else; never raises."""
        try:
            path, _ = split_target(request.target)
            if path == "/health":
                return render.json_response(200, health())
            progress = self._progress
            if path == "/ready":
                reading = {"bytes": progress.done, "of": progress.total, "percent": progress.percent}
                return render.json_response(503, {"status": "starting", "reading": reading}, [("Retry-After", "1")])
            text = f"The bank is starting: {progress.percent} % of its documents are read."
            response = render.refusal(BankError("SYSTEM_ERROR", text, status=503), headers=[("Retry-After", "1")])
        except Exception as error:
            response = render.refusal(failed(request, error))
        self.refused(request, response)
        return response

    def end(self) -> None:
        """There are no changes."""

    def refused(self, request: Request, response: Response) -> None:
        finish(response, Headers(request.headers))

    def tls_context(self) -> SSLContext:
        raise RuntimeError("a starting bank serves no TLS")
