"""Listening sockets, bound before anything else, so that a port in use is reported before the state is opened."""

from __future__ import annotations

import errno
import resource
import socket
from contextlib import ExitStack, suppress
from typing import Literal

BACKLOG = 2048
COPIES = 16
_OPEN_FILES = (65536, 10240)  # macOS reports no hard limit, yet refuses values above 10240


class CannotListen(Exception):
    """The server cannot listen on an address; `at_fault` is the option at fault: "host" or "port"."""

    def __init__(self, at_fault: Literal["host", "port"], text: str) -> None:
        super().__init__(text)
        self.at_fault = at_fault


def listen(host: str, port: int, *, copies: int = COPIES) -> list[socket.socket]:
    """Listening sockets on every address of `host` at one port; 0 picks a free port. Raises CannotListen.

    Each socket is duplicated `copies` times: uvloop accepts one connection per socket and iteration of its loop, so
    clients that connect at the same time would wait for one another.
    """
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CannotListen("host", f"{host} is not known: {error}") from error
    sockets: list[socket.socket] = []
    with ExitStack() as undo:
        for family, address in dict.fromkeys((family, address[:2]) for family, _, _, _, address in addresses):
            chosen = sockets[0].getsockname()[1] if sockets else port
            bound = undo.enter_context(_bound(family, str(address[0]), chosen))
            sockets += [bound, *(undo.enter_context(bound.dup()) for _ in range(copies - 1))]
        undo.pop_all()
    return sockets


def _bound(family: int, host: str, port: int) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((host, port))
        bound.listen(BACKLOG)
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotListen("port", f"port {port} is in use") from error
        reason = error.strerror or str(error)
        if error.errno in (errno.EACCES, errno.EPERM):
            raise CannotListen("port", f"port {port}: {reason}") from error
        raise CannotListen("host", f"{host}: {reason}") from error
    return bound


def port_of(sockets: list[socket.socket]) -> int:
    """The port that `listen` bound."""
    return int(sockets[0].getsockname()[1])


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
