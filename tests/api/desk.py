"""A TPP at a bank without a socket: signed requests straight into the pipeline, the PSU straight into the SCA."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from emulator.api.messages import Request, Response
from emulator.api.render import AMOUNT_AS_STRING, DEFAULT_FROM
from emulator.api.service import BankService
from emulator.assemble.composition import registry_for
from emulator.assemble.registry import BankRegistry
from emulator.bank.authentication import sca_control
from emulator.bank.clock import Beginning
from emulator.bank.customers import sessions
from emulator.ca import CertificateAuthority
from emulator.client.clients import Prepared, ResponseHeaders, SendingTpp, TppResponse
from emulator.settings import ServeSettings
from tests.api.shapes import fault
from tests.postgres.remote import RemoteService

BASE = "http://127.0.0.1:8080"
WORDS = {"national_id": "nationalId"}  # of the control interface
AMOUNTS_AS_TEXT = DEFAULT_FROM[AMOUNT_AS_STRING].isoformat()
NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)  # a Monday, 09:00 in Oslo


def seeded_registry(authority: CertificateAuthority) -> BankRegistry:
    """Banks in memory whose ids repeat."""
    return registry_for(ServeSettings(ephemeral=True, seed=1), authority, Beginning(NOW, "frozen"))


def monday(registry: BankRegistry) -> BankService:
    """The default bank in its known state, its clock standing on a Monday morning."""
    return registry.default


class DeskClient(SendingTpp[TppResponse]):
    """The signed client of `emulator.client`, whose requests go to a service instead of a socket."""

    def __init__(
        self, service: BankService, authority: CertificateAuthority, *, name: str = "demo", prefix: str = ""
    ) -> None:
        super().__init__(BASE + prefix, authority.find(name) or authority.issue(name))
        self.service = service
        self._request_prefix = prefix

    def send(self, prepared: Prepared) -> TppResponse:
        request = Request(
            prepared.method,
            prepared.target,
            tuple(prepared.headers.items()),
            prepared.body,
            BASE,
            self._request_prefix,
        )
        answer = self.service.handle(request)
        if not isinstance(self.service, RemoteService):
            self._compare(answer)
        return TppResponse(answer.status, ResponseHeaders(answer.headers), answer.body)

    def _compare(self, answer: Response) -> None:
        """Compare a success with what its operation declares, unless a rule or an old form of amounts changes it."""
        bank = self.service.bank
        if answer.status >= 300 or bank.clock.stamp() < AMOUNTS_AS_TEXT:
            return
        exchange = next(self.service.log.newest())
        if exchange.call is not None and not exchange.rules:
            body = gzip.decompress(answer.body) if ("Content-Encoding", "gzip") in answer.headers else answer.body
            wrong = fault(exchange.call.operation, answer.status, json.loads(body) if body else None)
            assert wrong is None, wrong

    @property
    def tpp_id(self) -> str:
        """How the bank names this TPP."""
        from emulator.api.certificates import read_certificate

        return read_certificate(self.identity.header).tpp.id

    def log_in(self, national_id: str, **more: Any) -> DeskClient:
        """A session and a consent for a person, without the pages; the client sends its ids from now on."""
        if isinstance(self.service, RemoteService):
            wanted = {"tpp": self.tpp_id, "nationalId": national_id, **more}
            session = self.service.wire.control("POST", "sessions", wanted, prefix=self._request_prefix)
        else:
            session = sessions.seed(self.service.bank, tpp_id=self.tpp_id, national_id=national_id, **more)
        self.use_session(session)
        return self


def approve(service: BankService, link_or_id: str, **more: Any) -> dict[str, str]:
    """The PSU approves; the query parameters of the redirect."""
    if isinstance(service, RemoteService):
        return _ended(service, link_or_id, "approve", {WORDS.get(word, word): given for word, given in more.items()})
    bank = service.bank
    with bank.documents.transaction():
        authentication = sca_control.find(bank, link_or_id.rpartition("/")[2])
        redirect = sca_control.approve(bank, authentication, **more)
    return dict(parse_qsl(urlsplit(redirect or "").query))


def _ended(service: RemoteService, link_or_id: str, how: str, more: dict[str, Any]) -> dict[str, str]:
    redirect = service.wire.control("POST", f"sca/{link_or_id.rpartition('/')[2]}/{how}", more)["redirect"]
    return dict(parse_qsl(urlsplit(redirect or "").query))


def reject(service: BankService, link_or_id: str) -> dict[str, str]:
    """The PSU declines; the query parameters of the redirect."""
    if isinstance(service, RemoteService):
        return _ended(service, link_or_id, "reject", {})
    bank = service.bank
    with bank.documents.transaction():
        redirect = sca_control.reject(bank, sca_control.find(bank, link_or_id.rpartition("/")[2]))
    return dict(parse_qsl(urlsplit(redirect).query))


def advance(service: BankService, **by: float) -> None:
    """Move bank time and apply what falls due."""
    service.bank.clock.advance(timedelta(**by))
    service.settle()


def ok(answer: TppResponse, status: int = 200) -> Any:
    """The JSON of an answer that must have this status; None without a body."""
    assert answer.status == status, answer.body
    return answer.json() if answer.body else None


def messages(response: TppResponse) -> list[tuple[str, str | None]]:
    """Code and path of every message of a refusal."""
    return [(entry["code"], entry.get("path")) for entry in response.json()["tppMessages"]]
