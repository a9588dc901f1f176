"""One bank as the outside reaches it: the domain with its TPP interface, scripted rules and request log.

`health` and `ready` are the answers of `/health` and `/ready` (CONTRACT 2).
"""

from __future__ import annotations

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
    """Who takes note of every request: the conformance report."""

    @property
    def on(self) -> bool:
        """Whether anything is taken note of."""
        ...

    def request(self, exchange: Exchange) -> None:
        """Take note of a request that has been answered."""
        ...

    def page(self, token: str, tpp: str | None, *, link: str) -> None:
        """Take note of a browser at an SCA page."""
        ...

    def judge_some(self, most: int) -> int:
        """Work on what was noted, at most so many; how many wait still."""
        ...

    def forget(self) -> None:
        """Begin again, as after a reset."""
        ...


class BankService:
    """A bank open for business: what the web side, the control interface and the scenario player talk to."""

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
        self.handle: Callable[[Request], Response] = pipeline.handle
        """Answer one request to `/v1`."""
        self.initializing: Callable[[Request], Generator[object, None, Response]] = pipeline.initializing
        """Answer one request to restore the known state, with others between."""
        self.refused: Callable[[Request, Response], None] = pipeline.refused
        """Finish what was answered at the wire to such a request, and enter it into the log."""

    def settle(self) -> None:
        """Apply what bank time has made due; the pages and the control interface call it before they look."""
        settle(self.bank)

    def settling(self) -> Iterator[None]:
        """`settle` in pieces, between which others may use the bank."""
        return settling(self.bank)


def health() -> dict[str, Any]:
    """The process answers."""
    return {"status": "UP"}


def ready(bank: Bank) -> dict[str, Any]:
    """The bank answers, with version, fixtures and counts of documents."""
    about = BANK.read(bank.documents)
    counts = {name: bank.documents.count(kind) for name, kind in COUNTED.items()}
    counts["transactions"] = bank.documents.count(TRANSACTION) + bank.documents.count(CARD_TRANSACTION)
    return {
        "status": "READY",
        "version": __version__,
        "fixtures": None if about is None else about["fixtures"],
        "counts": counts,
    }
