"""One bank as the outside reaches it: the domain with its TPP interface, scripted rules and request log."""

from __future__ import annotations

from collections.abc import Callable

from cryptography.x509 import Certificate

from emulator.api.log import RequestLog
from emulator.api.messages import Request, Response
from emulator.api.pipeline import Pipeline, Rules, Signer, settle
from emulator.api.router import Router
from emulator.bank.bank import Bank


class BankService:
    """A bank open for business: what the web side, the control interface and the scenario player talk to."""

    def __init__(
        self,
        bank: Bank,
        *,
        router: Router,
        rules: Rules,
        trusted_ca: Callable[[], Certificate | None],
        signer: Signer,
    ) -> None:
        self.bank = bank
        self.rules = rules
        self.log = RequestLog()
        pipeline = Pipeline(
            bank,
            router=router,
            rules=rules,
            log=self.log,
            trusted_ca=trusted_ca,
            signer=signer,
        )
        self.handle: Callable[[Request], Response] = pipeline.handle
        """Answer one request to `/v1`."""
        self.refused: Callable[[Request, Response], None] = pipeline.refused
        """Finish what was answered at the wire to such a request, and enter it into the log."""

    def settle(self) -> None:
        """Apply what bank time has made due; the pages and the control interface call it before they look."""
        settle(self.bank)
