"""A schedule, played with a TPP and judged by five rules: what it did and claims against what is true in the bank."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from emulator.assemble.local_banks import LocalBanks
from emulator.bank.documents import Payment
from emulator.bank.ids import random_uuid
from emulator.bank.scheme.transitions import FINAL
from emulator.conformance.check import decimal, ready, state_of
from emulator.conformance.program import ClaimUnreadable, Ending, Program, RunFailed, claim_of, credentials, visit
from emulator.explore.play import AccountTruth, Row, Run
from emulator.explore.schedule import FaultSchedule

# Failures of what should have come until the end
_UNDONE = frozenset(one.text for check in ready() for one in check.expect if one.kind == "next")
# Checks that tell customers apart by address or session
_ONE_CUSTOMER = frozenset(
    check.check for check in ready() for one in check.expect if {"address", "session"}.intersection(one.by)
)
_NO_CONSENT = "stops-on-a-revoked-consent"
# Failures to wait
_PACES = frozenset(one.text for check in ready() for one in check.expect if isinstance(one.within, timedelta))
# Checks about answers that the TPP does not get
_ABOUT_LOST = frozenset(check.check for check in ready() if "answerLost" in check.seen)
GRACE = 20  # answers after the end of a payment within which the TPP may not have asked for it yet
UNNAMED = "NOTPROVIDED"  # what ISO 20022 has for a payment without an endToEndIdentification
PAYS_ONE = ("pay", "pay-and-cancel")  # tasks of one payment each
LOOK = 0.05  # seconds between two looks while nothing happens
SILENCE = 0.5  # seconds without a request after which bank time moves to what is due
STARTING = 10.0  # the same for a command that was killed and has not sent anything since its new start
OVER = 2.0  # seconds without a request, while nothing is due, after which a run is over


Claims = Callable[[str, str], Mapping[str, Any] | None]
"""What the TPP claims, of `payments` or `accounts` and an id; None: it knows no such thing."""


@dataclass(frozen=True, slots=True)
class Process:
    """The TPP under test: a command that is started for each run, or a hook that is POSTed to.

    `{run}` in the address of its claims stands for the name of the run (BANK_RUN). `restarts`: its command can be
    killed and started again. Tests have objects with these members in its place.
    """

    program: Program
    restarts: bool = False

    def play(self, run: Run) -> Ending:
        """Run the TPP, and act as the customer meanwhile, until it has ended or the run is over."""
        with tempfile.TemporaryDirectory(prefix="explore-") as folder:
            lasting = Path(folder, "lasting")
            lasting.mkdir()
            files = credentials(Path(folder), run.tpp.certificate_pem, run.tpp.key_pem.decode())
            environment = {**run.environment, "BANK_FOLDER": str(lasting), **files}
            accompany = partial(self._drive, run, time.monotonic() + self.program.timeout)
            ending = self.program.run(environment, accompany)
            while run.killed:
                run.call(run.restarted)
                ending = self.program.run(environment, accompany)
        if ending.refused:
            raise RunFailed(str(ending.problem))
        return ending

    def stop(self) -> None:
        """End all runs, as the search is interrupted."""
        self.program.stopped.set()

    def _drive(self, run: Run, deadline: float, ended: Future[Any]) -> bool:
        """Act as the customer, and move bank time while the TPP waits, until it has ended or has no time left.

        Returns True if how it ends does not count: the run is over before, or the TPP is to be killed, or sends for
        ever. Raises RunFailed if stopped.
        """
        ended.add_done_callback(lambda _: run.news.set())
        silence, patience, requests, before = 0.0, STARTING, run.requests, time.monotonic()
        while not ended.done():
            run.news.wait(LOOK)
            run.news.clear()
            if self.program.stopped.is_set():
                raise RunFailed("the run was stopped")
            now = time.monotonic()
            silence += min(now - before, LOOK)  # what takes longer here is a slow machine, and no silence of the TPP
            before = now
            if run.endless is not None or run.killed:
                return True
            if now > deadline:
                return False
            if requests != run.requests:
                silence, patience, requests = 0.0, SILENCE, run.requests
            silent = silence > patience
            if run.waiting:
                for redirect in run.call(partial(run.act, silent=silent)):
                    visit(redirect)
                    silence = 0.0
            elif silent and requests:
                patience = SILENCE
                if run.call(run.wait):
                    silence = SILENCE / 2  # the TPP gets a moment to react
                elif silence > OVER and run.call(partial(run.leave, requests=requests)):
                    return True
        for redirect in run.call(run.act):
            visit(redirect)
        return run.endless is not None

    def claims(self, run: Run) -> Claims | None:
        """What the TPP claims; None if it has no address for that."""
        address = self.program.claims
        return None if address is None else partial(_asked, address.replace("{run}", run.name))


def _asked(address: str, kind: str, identity: str) -> Mapping[str, Any] | None:
    try:
        return claim_of(address, kind, identity)
    except ClaimUnreadable as problem:
        raise RunFailed(f"--claims: {problem}") from None


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong: the number of the rule, a name for files, and a sentence; `believed` and `true` beside it."""

    rule: int
    what: str
    text: str
    believed: str = ""
    true: str = ""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run came to; `silent`: the TPP has sent no request; `refused`: the last one, if the bank refused all."""

    schedule: FaultSchedule
    findings: Sequence[Finding]
    rows: Sequence[Row]
    silent: bool = False
    refused: str = ""
    output: str = ""


def play(schedule: FaultSchedule, banks: LocalBanks, client: Process, name: str) -> RunOutcome:
    """Play a schedule on a bank of its own, and judge it."""
    run = Run(schedule, banks, name, restarts=client.restarts)
    try:
        ending = client.play(run)
        run.call(run.finish)
        findings = judge(run, ending, client.claims(run))
        refused = "" if run.accepted else run.refused
        return RunOutcome(schedule, findings, run.rows, run.requests == 0, refused, ending.printed)
    finally:
        run.close()


def replay(schedules: Sequence[FaultSchedule], banks: LocalBanks, client: Process) -> Iterator[RunOutcome]:
    """Play schedules again, in order."""
    name = random_uuid()[:6]
    for number, schedule in enumerate(schedules, 1):
        yield play(schedule, banks, client, f"replay-{name}-{number}")


def judge(run: Run, ending: Ending, claims: Claims | None) -> list[Finding]:
    """All that is wrong with a finished run."""
    payments = run.payments()
    return [
        *_paid_too_often(run, payments),
        *_paid_after_a_decline(run, payments),
        *_ended(run, ending),  # before what follows from it
        *(_believed(run, payments, claims) if claims is not None else ()),
        *_checks(run, payments),
    ]


# 1. Each order is paid at most once, and not after a decline


def order_of(payment: Payment) -> str | None:
    """The id that the TPP gives an order: endToEndIdentification, for a bulk paymentInformationId."""
    initiation = payment["initiation"]
    named = _named(initiation) or initiation.get("paymentInformationId")
    if named is None and "payments" in initiation:
        return " ".join(_named(one) or "" for one in initiation["payments"]).strip() or None
    return None if named is None else str(named)


def _named(initiation: Mapping[str, Any]) -> str | None:
    named = initiation.get("endToEndIdentification")
    return None if named in (None, UNNAMED) else str(named)


def _is_paid(payment: Payment) -> bool:
    return payment["status"] in ("ACSC", "PART")


def _paid_too_often(run: Run, payments: list[Payment]) -> Iterator[Finding]:
    paid: dict[str, list[str]] = defaultdict(list)
    for payment in payments:
        if _is_paid(payment) and (order := order_of(payment)) is not None:
            paid[order].append(payment["id"])
    for order, ids in paid.items():
        if len(ids) > 1:
            text = f"The order {order} was paid {len(ids)} times: payments {_listed(ids)}."
            yield Finding(1, "paid-twice", text, "one order", f"{len(ids)} payments are booked")
            return
    for kinds, service in ((PAYS_ONE, "payments"), (("pay-bulk",), "bulk-payments")):
        ordered = sum(task in kinds for task in run.schedule.tasks)
        booked = [one["id"] for one in payments if one["service"] == service and _is_paid(one)]
        of_baskets = service == "payments" and "basket" in run.schedule.tasks  # a basket may have any number of them
        if len(booked) > ordered and not of_baskets:
            text = f"{ordered} orders of {service} were to be paid, and {len(booked)} were: {_listed(booked)}."
            yield Finding(1, "paid-twice", text, f"{ordered} orders", f"{len(booked)} payments are booked")
            return


def _paid_after_a_decline(run: Run, payments: list[Payment]) -> Iterator[Finding]:
    orders = {payment["id"]: order_of(payment) for payment in payments}
    only_one = len(run.schedule.tasks) == 1 and run.schedule.tasks[0] in PAYS_ONE
    for target, at in run.declined.items():
        for declined in run.members_of(target) or [target]:
            for payment in payments:
                same = only_one or (orders.get(declined) is not None and orders.get(declined) == orders[payment["id"]])
                if _is_paid(payment) and same and payment["created"] >= at:
                    text = f"The customer declined {declined[:8]}, and {payment['id'][:8]} was paid for the same order."
                    yield Finding(1, "paid-after-decline", text, "ordered again", "the customer had declined")
                    return


# 2. Claims agree with the ledger


def _believed(run: Run, payments: list[Payment], claims: Claims) -> Iterator[Finding]:
    for payment in payments:
        if (finding := _payment(run, payment, claims("payments", payment["id"]))) is not None:
            yield finding
            break
    for account, truth in run.accounts.items():
        claim = claims("accounts", account)
        if claim is not None:
            yield from _account(run, account, truth, claim)


def _payment(run: Run, payment: Payment, claim: Mapping[str, Any] | None) -> Finding | None:
    status = payment["status"]
    true, name = state_of(status), payment["id"][:8]
    if status == "PART":
        return None  # partly paid: the TPP may call it what it wants
    if claim is None:
        if true != "paid":
            return None
        return Finding(2, "forgotten", f"Payment {name} is paid, and the TPP does not know it.", "nothing", "paid")
    state = str(claim.get("state"))
    if state == true:
        return None
    if state == "open":
        later = run.answers - run.ended.get(payment["id"], run.answers)
        unasked = later < GRACE or run.endless is not None
        if status not in FINAL or (payment["id"] not in run.known and unasked):
            return None  # it could not know
    text = f"The TPP claims that payment {name} is {state}; it is {true} ({status})."
    return Finding(2, f"believed-{state}", text, state, f"{true} ({status})")


def _account(run: Run, account: str, truth: AccountTruth, claim: Mapping[str, Any]) -> Iterator[Finding]:
    name = account[:8]
    balance = decimal(claim.get("balance"))
    # A TPP that was killed may have lost the last answer before it stored it.
    known = truth.balances[-2:] if run.schedule.restarts else truth.balances[-1:]
    if balance is not None and known and balance not in known:
        text = f"The TPP claims the balance {balance} of account {name}; it read {known[-1]}."
        yield Finding(2, "wrong-balance", text, str(balance), str(known[-1]))
    count = claim.get("transactions")
    if count is None or truth.fewest is None or truth.fewest <= count <= truth.most:
        return
    between = str(truth.most) if truth.fewest == truth.most else f"{truth.fewest} to {truth.most}"
    text = f"The TPP claims {count} transactions of account {name}; it has {between}."
    yield Finding(2, "wrong-transactions", text, str(count), between)


# 3. No check of level must fails


def _checks(run: Run, payments: list[Payment]) -> Iterator[Finding]:
    if run.schedule.restarts:
        return  # checks are about one process: one that was killed may ask again
    for row in run.report()["checks"]:
        failures = row["failures"] if row["verdict"] == "fail" else ()
        counted = next((one for one in failures if _counts(run, payments, row["check"], one)), None)
        if counted is not None:
            yield Finding(3, f"check-{row['check']}", counted["text"], "", row["about"])


def _counts(run: Run, payments: list[Payment], check: str, failure: Mapping[str, Any]) -> bool:
    """Whether a failure is the TPP's: it did something wrong, and has got all answers since the occasion.

    What it did not do before it ended does not count: rule 2 finds what it does not know. Nor does its pace, as
    programs that are explored make no pauses.
    """
    if failure["text"] in _PACES or (check == _NO_CONSENT and not _was_withdrawn(run)):
        return False
    if check in _ONE_CUSTOMER and "somebody-else" in run.schedule.customer:
        return False
    numbers = [int(identity) for identity in failure["requests"]]
    if "instead" not in failure and failure["text"] in _UNDONE:
        return check in _ABOUT_LOST and any(_ordered_again(run.created.get(number), payments) for number in numbers)
    between = range(min(numbers, default=0), max(numbers, default=0) + 1)
    return check in _ABOUT_LOST or run.unseen.isdisjoint(between)


def _ordered_again(identity: str | None, payments: list[Payment]) -> bool:
    """Whether the order of this payment has another payment too."""
    orders = {payment["id"]: order_of(payment) for payment in payments}
    order = orders.pop(identity, None) if identity is not None else None
    return order is not None and order in orders.values()


def _was_withdrawn(run: Run) -> bool:
    """Whether a consent was withdrawn, and no other SCA failed: without a consent the bank gives the same answer."""
    willing = all(act in ("approve", "late", "twice") for act in run.schedule.customer)
    return run.withdrawn and willing and all(fault.fault != "sca" for fault in run.schedule.faults)


# 4. The TPP does not crash; 5. it does not send for ever


def _ended(run: Run, ending: Ending) -> Iterator[Finding]:
    if ending.problem is not None:
        yield Finding(4, "crash", ending.problem)
    if run.endless is not None:
        yield Finding(5, "endless", f"The TPP does not stop sending: {run.endless}.")


def _listed(ids: list[str]) -> str:
    return ", ".join(identity[:8] for identity in ids)
