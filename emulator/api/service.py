"""One bank with its TPP interface, scripted rules and request log.

`health` and `ready` are the answers of `/health` and `/ready` (CONTRACT 2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Protocol

from cryptography.x509 import Certificate

from emulator import __version__
from emulator.api.log import Exchange, RequestLog
from emulator.api.messages import Request, Response
from emulator.api.operation import Operation, Route
from emulator.api.pipeline import Pipeline, Rules, Signer, settle, settling
from emulator.api.router import Router
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT, BANK, CARD, CARD_TRANSACTION, CUSTOMER, PAYMENT, TRANSACTION
from emulator.store import Kind

COUNTED: Mapping[str, Kind[Any]] = {
    "customers": CUSTOMER,
    "accounts": ACCOUNT,
    "cardAccounts": CARD,
    "payments": PAYMENT,
}


class Observer(Protocol):
    """Observes every request, for the conformance report."""

    @property
    def on(self) -> bool:
        """Whether it observes anything."""
        ...

    def request(self, exchange: Exchange) -> None:
        """Record a request that has been answered."""
        ...

    def page(self, token: str, tpp: str | None, *, link: str) -> None:
        """Record that a browser has opened an SCA page."""
        ...

    def judge_some(self, most: int) -> int:
        """Process at most `most` recorded events; returns the number that is left."""
        ...

    def forget(self) -> None:
        """Delete everything recorded, as after a reset."""
        ...


class BankService:
    """A running bank: the interface for the web server, the control interface and the scenario player."""

    def __init__(
        self,
        bank: Bank,
        *,
        router: Router[Operation, Route],
        rules: Rules,
        trusted_ca: Callable[[], Certificate | None],
        signer: Signer,
        observer: Observer,
        log: RequestLog | None = None,
    ) -> None:
        self.bank = bank
        self.observer = observer
        self.rules = rules
        self.log = log or RequestLog()
        pipeline = Pipeline(
            bank,
            router=router,
            rules=rules,
            log=self.log,
            trusted_ca=trusted_ca,
            signer=signer,
            observe=observer.request,
        )
        self.answer: Callable[[Request], Response] = pipeline.handle
        """Answer one request to `/v1`; what bank time has made due is applied already."""
        self.initializing: Callable[[Request], Generator[object, None, Response]] = pipeline.initializing
        """Answer one request to restore the known state, with others between."""
        self.refused: Callable[[Request, Response], None] = pipeline.refused
        """Complete the answer to such a request that the web server refused, and add it to the request log."""

    def handle(self, request: Request) -> Response:
        """Answer one request to `/v1`."""
        self.settle()
        response = self.answer(request)
        if response.rest is not None:
            deque(response.rest, maxlen=0)
            response.rest = None
        return response

    def settle(self) -> None:
        """Apply due steps; pages and the control interface call it before they read."""
        settle(self.bank)

    def settling(self) -> Iterator[None]:
        """`settle` in pieces, between which others may use the bank."""
        return settling(self.bank)


def health() -> dict[str, Any]:
    """The answer of a running process."""
    return {"status": "UP"}


def ready(bank: Bank) -> dict[str, Any]:
    """The answer of a ready bank, with version, fixtures and counts of documents."""
    about = BANK.read(bank.documents)
    counts = {name: bank.documents.count(kind) for name, kind in COUNTED.items()}
    counts["transactions"] = bank.documents.count(TRANSACTION) + bank.documents.count(CARD_TRANSACTION)
    return {
        "status": "READY",
        "version": __version__,
        "fixtures": None if about is None else about["fixtures"],
        "counts": counts,
    }
