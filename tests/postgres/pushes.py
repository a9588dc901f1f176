"""A client that is notified of what becomes of its payments: of each status, in order, at least once, whatever fails.

It often asks nothing for a while: what is due then happens all the same, in whichever process takes the bank over.
"""

from __future__ import annotations

from contextlib import suppress
from http.client import HTTPException
from time import monotonic

from emulator.client import TppClient
from tests.crash.test_notifications_kill import Receiver
from tests.known_state import DOMESTIC, KARI, PAYMENT
from tests.postgres.history import Problem
from tests.postgres.owner import OwnBank

LATEST = 20.0  # seconds until everything has come that was not refused
RETRY = "PT10M"  # after which what was refused is sent again
SILENCE = 8.0  # seconds


class PushOwner(OwnBank):
    """Pays, and has a receiver that refuses some notifications."""

    kind = "pushes"
    bank_spec = {"fixtures": "known-state", "settings": {"notifications": True}}  # noqa: RUF012 - nobody changes it

    def begin(self) -> None:
        self.make_bank()
        self.log_in(KARI)
        self._receiver = Receiver()

    @property
    def tpp(self) -> TppClient:
        client = super().tpp
        client.notification_uri = self._receiver.uri
        return client

    def turn(self) -> None:
        """Some payments, most of which are approved; then nothing for a while."""
        for _ in range(self.chooser.randint(1, 6)):
            payment = self.created(DOMESTIC, PAYMENT)
            self.operations += 1
            if payment is not None:
                with suppress(OSError, HTTPException, ValueError):
                    if self.chooser.random() < 0.8:
                        self.control("POST", f"sca/{payment['paymentId']}/approve")
                    else:
                        self.signed("DELETE", f"{DOMESTIC}/{payment['paymentId']}")
        self.site.over.wait(self.chooser.uniform(0, SILENCE))

    def end(self) -> None:
        """Each payment's statuses are those that the receiver has heard of first."""
        until = monotonic() + LATEST
        while wrong := self._wrong():
            if monotonic() > until:
                self.problems.append(Problem("events", f"{self.name}: {'; '.join(wrong[:5])}"))
                break
            with self._receiver.changed:
                self._receiver.changed.wait(1)
            with suppress(OSError, HTTPException):
                self.control("POST", "clock/advance", {"by": RETRY})
        self._receiver.shutdown()
        self._receiver.server_close()

    def _wrong(self) -> list[str]:
        try:
            status, answer = self.control("GET", "payments?limit=1000")
        except (OSError, HTTPException) as error:
            return [f"the bank does not answer: {type(error).__name__}"]
        payments = answer["payments"] if status == 200 else []
        wrong = []
        for payment in payments:
            happened = [change["status"] for change in payment["history"][1:]]
            with self._receiver.changed:
                heard = self._receiver.received[payment["paymentId"]]
            if list(dict.fromkeys(heard)) != happened:
                wrong.append(f"{payment['paymentId']} was {', '.join(happened)}; it heard {', '.join(heard)}")
        return wrong if status == 200 else [f"the bank answers {status}"]
