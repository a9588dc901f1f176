"""The server: listening sockets, and the application that runs on them until a signal ends the process."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import resource
import signal
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, TypeVar

from emulator.failure import Failed
from emulator.settings import ServeSettings
from emulator.signals import ending_signals
from emulator.web.connection import Connection, Connections
from emulator.web.handler import Application, Handler
from emulator.web.wire import Base, Limits

Result = TypeVar("Result")

_HANDSHAKE_SECONDS = 15.0
_BACKLOG = 2048
_COPIES = 16
_ATTEMPTS = 10  # at one free port for several addresses
_OPEN_FILES = (65536, 10240)  # macOS reports no hard limit, yet refuses values above 10240


class CannotListen(Failed):
    """The server cannot listen on an address; `flag` is the one at fault."""

    def __init__(self, flag: str, text: str) -> None:
        super().__init__(f"--{flag}: {text}", page="flags")


def listen(hosts: Sequence[str], port: int, *, flag: str = "port", copies: int = _COPIES) -> list[socket.socket]:
    """Listening sockets on every address of `hosts` at the port of this flag; 0 picks a free one. Raises CannotListen.

    Each socket is duplicated `copies` times: uvloop accepts one connection per socket and iteration of its loop, so
    clients that connect at the same time would wait for one another.
    """
    places = dict.fromkeys(place for host in hosts for place in _addresses(host, port))
    attempts = _ATTEMPTS if port == 0 else 1
    while True:
        sockets: list[socket.socket] = []
        try:
            with ExitStack() as undo:
                for family, address in places:
                    bound = undo.enter_context(_bound(family, address, port_of(sockets) if sockets else port, flag))
                    sockets += [bound, *(undo.enter_context(bound.dup()) for _ in range(copies - 1))]
                undo.pop_all()
                return sockets
        except CannotListen:  # a port that was free on one address may be in use on another
            attempts -= 1
            if attempts == 0:
                raise


def _addresses(host: str, port: int) -> list[tuple[int, str]]:
    """Family and address of each address of `host`; `localhost` has both families, where the machine has IPv6."""
    if host.lower() == "localhost":
        both: list[tuple[int, str]] = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
        return both if _has_ipv6() else both[:1]
    try:
        listed = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CannotListen("host", f"{host} is not known: {getattr(error, 'strerror', None) or error}") from error
    return [(family, str(address[0])) for family, _, _, _, address in listed]


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _bound(family: int, host: str, port: int, flag: str) -> socket.socket:
    try:
        bound = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CannotListen(flag, f"port {port} is in use") from error
        reason = os.strerror(error.errno) if error.errno else str(error)
        if error.errno in (errno.EACCES, errno.EPERM):
            raise CannotListen(flag, f"port {port}: {reason}") from error
        raise CannotListen("host", f"{host}: {reason}") from error
    bound.setblocking(False)
    return bound


def port_of(sockets: list[socket.socket]) -> int:
    return int(sockets[0].getsockname()[1])


class WebServer:
    """Serves one application on a plain and optionally a TLS address, within a running event loop.

    Of `settings`: the first --host, --public-url and the names of hosts decide the base of links.
    """

    def __init__(
        self,
        application: Application,
        settings: ServeSettings,
        *,
        plain: list[socket.socket],
        tls: list[socket.socket] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._application = application
        self.connections = Connections(Handler(application), limits or Limits())
        self._addresses = [
            (Base(scheme, port_of(sockets), settings), sockets)
            for scheme, sockets in (("http", plain), ("https", tls))
            if sockets is not None
        ]
        self._servers: list[asyncio.Server] = []

    @property
    def urls(self) -> list[str]:
        """The URLs of the listening addresses, the plain one first."""
        return [base.listening for base, _ in self._addresses]

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._application.start()
        for base, sockets in self._addresses:
            secure: dict[str, Any] = {}
            if base.scheme == "https":
                secure = {"ssl": self._application.tls_context(), "ssl_handshake_timeout": _HANDSHAKE_SECONDS}
            accept = partial(Connection, self.connections, base)
            for bound in sockets:
                self._servers.append(await loop.create_server(accept, sock=bound, backlog=_BACKLOG, **secure))

    async def stop(self) -> None:
        """Accept no new requests, let those in progress finish within the time limit, close every connection."""
        for server in self._servers:
            server.close()
        self._application.stop()
        self.connections.handler.stop()
        await self.connections.end(self._application.leave)


async def _serve(server: WebServer, ready: Callable[[list[str]], None], ends: set[signal.Signals]) -> None:
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ends:
        loop.add_signal_handler(number, ending.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
    await server.start()
    try:
        ready(server.urls)
        await ending.wait()
    finally:
        await server.stop()
        for number in ends:  # a second one neither ends what is left to do nor changes the exit status
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)


def run(server: WebServer, ready: Callable[[list[str]], None]) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP; `ready` is called with the addresses once requests are answered."""
    ends = ending_signals()
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # a signal while uvloop creates its loop would break it
    raise_file_limit()
    gc.freeze()  # what exists by now stays: later collections need not look at it
    # Requests leave no cycles, so collections find nothing and only look at what stays. That is mostly the last
    # thousand requests in the log, and up to 8192 that wait to be judged, with about 14 objects each: the threshold
    # lets most of them go before a collection.
    gc.set_threshold(100_000, 10, 10)
    gc.enable()  # disabled during the start
    run_loop(_serve(server, ready, ends))


def raise_file_limit() -> None:
    """Raise the limit on open files, which also limits connections, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for target in _OPEN_FILES:
        most = target if hard == resource.RLIM_INFINITY else min(target, hard)
        if soft == resource.RLIM_INFINITY or soft >= most:
            return
        with suppress(ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            return


def run_loop(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` on uvloop."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
