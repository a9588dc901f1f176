"""Whatever happens to payments, receivers and processes: nothing lost, nothing invented, the order stays."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from emulator.bank import notifications
from emulator.bank.bank import Bank
from emulator.bank.kinds import KINDS, NOTIFICATION
from emulator.bank.notifications import DeliveryResult
from emulator.store import memory_store

PAYMENTS = st.sampled_from("pqr")
STEPS = ("ACTC", "PDNG", "ACSP", "ACWP")


class Notifying(RuleBasedStateMachine):
    """One process after the other sends what three payments queue; what is undone and what was taken is remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.bank = Bank(memory_store(KINDS), seed=1)
        self.bank.clock.set(mode="frozen")
        self.bank.change_settings({"notifications": True})
        for target in "pqr":
            uri = f"https://{target}.example/"
            notifications.subscribe(self.bank, target, "payment", tpp=target, uri=uri, content=("PROCESS",))
        self.happened: defaultdict[str, list[str]] = defaultdict(list)
        self.taken: defaultdict[str, list[str]] = defaultdict(list)
        self.sending: set[str] = set()

    @rule(payment=PAYMENTS, undone=st.booleans())
    def change(self, payment: str, undone: bool) -> None:
        """A new status, each another one than the last; or one that is taken back."""
        status = STEPS[len(self.happened[payment]) % len(STEPS)]
        try:
            with self.bank.documents.transaction():
                notifications.status_changed(self.bank, payment, status)
                if undone:
                    raise InterruptedError
        except InterruptedError:
            return
        self.happened[payment].append(status)

    @rule(most=st.integers(1, 3))
    def claim(self, most: int) -> None:
        self.sending |= {one["id"] for one in notifications.claim(self.bank, most=most, each=1)}

    @rule(data=st.data(), taken=st.booleans(), noted=st.booleans())
    def send(self, data: st.DataObject, taken: bool, noted: bool) -> None:
        """The receiver takes it or not; the process notes how it went, or is killed before."""
        if not self.sending:
            return
        identity = data.draw(st.sampled_from(sorted(self.sending)))
        notification = self.bank.documents.get(NOTIFICATION, identity)
        assert notification is not None
        assert notifications.is_claimed(self.bank, identity)
        if taken:
            self.taken[notification["target"]].append(notification["body"]["transactionStatus"])
        if noted:
            self.sending.discard(identity)
            notifications.settle(self.bank, identity, DeliveryResult(status=204 if taken else 503))
        else:
            self.restart()

    @rule()
    def restart(self) -> None:
        """The process is killed with all that it was sending, and the next one looks at what it has left."""
        self.sending.clear()
        notifications.release_abandoned(self.bank, sending=())

    @rule()
    def bank_time_passes(self) -> None:
        self.bank.clock.advance(notifications.GAPS[-1])

    @invariant()
    def what_came_is_what_happened(self) -> None:
        """Up to now: in order, without a gap; what came again came right behind itself."""
        for target in self.taken.keys() - self._given_up():
            seen = [status for status, _ in groupby(self.taken[target])]
            assert seen == self.happened[target][: len(seen)]

    def _given_up(self) -> set[str]:
        """The payments of which a notification was refused so often that the next one was sent."""
        return {one["target"] for one in self.bank.documents.find(NOTIFICATION, state="failed")}

    def teardown(self) -> None:
        """In the end everything comes, once its receiver takes it."""
        self.restart()
        for _ in range(200):
            claimed = notifications.claim(self.bank, most=9, each=9)
            for one in claimed:
                self.taken[one["target"]].append(one["body"]["transactionStatus"])
                notifications.settle(self.bank, one["id"], DeliveryResult(status=204))
            self.bank.clock.advance(notifications.GAPS[-1])
            if not claimed and notifications.next_due(self.bank) is None:
                break
        for target in self.happened.keys() - self._given_up():
            assert [status for status, _ in groupby(self.taken[target])] == self.happened[target]


TestNotifying = Notifying.TestCase
TestNotifying.settings = settings(stateful_step_count=40)
