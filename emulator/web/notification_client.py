"""Sends one notification: resolves the receiver's name once, checks every address, connects to one of them.

See `bank/notification_targets.py` for the rules. Redirects are not followed, proxy variables of the environment are
ignored, cookies are not stored, and only the status of the answer is read.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Collection
from concurrent.futures import Future
from functools import partial
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from emulator import __version__
from emulator.bank.notification_targets import NOTIFICATION_AGENT, Host, MalformedAddress, Target, is_public, target_of
from emulator.bank.notifications import DeliveryResult
from emulator.bank.threads import aside

MOST_NAMES = 64  # being resolved at the same time, each in a thread
SECONDS = 5.0  # for an attempt: name resolution, connection, TLS, answer

Addresses = list[tuple[socket.AddressFamily, str]]
"""The addresses of a name, each with its family."""


class _NotSent(Exception):
    """The notification was not sent; the argument says why."""


class _PinnedResolver(AbstractResolver):
    """Resolves every name to the addresses that were checked."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST)
            for kind, address in self._addresses
            if family in (socket.AF_UNSPEC, kind)
        ]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


class NotificationClient:
    """Posts notifications; `allowed`: the hosts of `--allow-notify`; `authority`: the sandbox CA in PEM.

    Certificates of receivers must be issued by an authority that the system trusts or by the sandbox CA.
    """

    def __init__(self, *, allowed: Collection[Host], authority: str) -> None:
        self._allowed = allowed
        self._authority = authority
        self._tls: ssl.SSLContext | None = None
        self._resolving: set[Future[Any]] = set()

    async def post(self, uri: str, body: bytes, request_id: str, traceparent: str | None = None) -> DeliveryResult:
        """Post a notification; returns its result and never raises."""
        try:
            async with asyncio.timeout(SECONDS):
                return await self._post(uri, body, request_id, traceparent)
        except TimeoutError:
            return DeliveryResult(error=f"no answer within {SECONDS:g} s")
        except (_NotSent, MalformedAddress) as refused:
            return DeliveryResult(error=f"not sent: {refused}")
        except aiohttp.ClientSSLError as error:
            return DeliveryResult(error=f"TLS failed: {_short(error)}")
        except aiohttp.ClientConnectorError as error:
            reason = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else "no connection"
            return DeliveryResult(error=f"{reason} ({error.host}:{error.port})")
        except aiohttp.ServerDisconnectedError:
            return DeliveryResult(error="the connection was closed before the answer was complete")
        except aiohttp.ClientResponseError as error:  # its own text begins with a status, which nobody has sent
            return DeliveryResult(
                error=f"the answer cannot be read: {_short(Exception(error.message or 'no HTTP')).rstrip(':')}"
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return DeliveryResult(error=_short(error))

    async def _post(self, uri: str, body: bytes, request_id: str, traceparent: str | None) -> DeliveryResult:
        target = target_of(uri)
        connector = aiohttp.TCPConnector(
            resolver=_PinnedResolver(await self._checked(target)),
            use_dns_cache=False,
            force_close=True,
            ssl=await self._context() if target.scheme == "https" else False,
        )
        async with (
            aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False
            ) as session,
            session.post(
                URL(uri, encoded=True),
                data=body,
                headers={
                    "Content-Type": "application/json",
                    "User-Agent": f"{NOTIFICATION_AGENT}/{__version__}",
                    "X-Request-ID": request_id,
                    **({} if traceparent is None else {"traceparent": traceparent}),
                },
                allow_redirects=False,
            ) as answer,
        ):
            return DeliveryResult(status=answer.status)

    async def _checked(self, target: Target) -> Addresses:
        """The addresses of a target, after checking that the bank may connect to every one of them."""
        if len(self._resolving) >= MOST_NAMES:
            raise _NotSent("too many names wait for their name servers")
        # in a thread of its own: a TPP's name server may never answer, which must not block other work in a queue
        resolving = aside(partial(socket.getaddrinfo, target.host, target.port, type=socket.SOCK_STREAM))
        self._resolving.add(resolving)
        resolving.add_done_callback(self._resolving.discard)
        try:
            infos = await asyncio.wrap_future(resolving)
        except OSError as error:
            raise _NotSent(f"the name {target.host} cannot be resolved ({_short(error)})") from error
        addresses: Addresses = [(family, str(address[0])) for family, _, _, _, address in infos]
        if not addresses:
            raise _NotSent(f"the name {target.host} has no address")
        if not target.is_allowed(self._allowed):
            refuse_private(target.host, addresses)
        return addresses

    async def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            # reading the system's certificates takes long enough to delay requests
            self._tls = await asyncio.get_running_loop().run_in_executor(None, self._create_context)
        return self._tls

    def _create_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.load_verify_locations(cadata=self._authority)
        return context


def refuse_private(host: str, addresses: Addresses) -> None:
    """Refuse a name if one of its addresses is not public or belongs to this machine."""
    for family, address in addresses:
        if not is_public(address) or _is_own(family, address):
            raise _NotSent(f"{host} resolves to {address}, which is not public; --allow-notify {host} allows it")


def _is_own(family: socket.AddressFamily, address: str) -> bool:
    """Whether an address belongs to this machine, found by routing; no packet is sent."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 443))
        except OSError:
            return False  # no route to it
        return bool(probe.getsockname()[0] == address)


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
