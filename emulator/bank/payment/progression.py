"""Steps that follow bank time: documents have due times, and due steps are applied in their order (bank-time.md).

No timer runs. `due` of a payment, or of a pending transaction of a fixture, is the moment of its next step, and an
index of the store finds the earliest. With notifications an SCA and a consent have one too, the moment of their end.
Whoever reads or changes a bank first applies what is due, the earliest first, of several at one moment the payment that
was created first, so that it gets the money. During a step the clock stands at its `due`: a step that is applied a
month late has the date that it should have.

A status is only changed by `flows.change`, which moves the money with it. It is called by the steps of a flow, here,
and where a person decides: first signature, decline and cancellation in `payments`. The last signature leads to
`accept`.

    status        next step (`_step`, `Flow.step`)                   due (`schedule`, `Flow.due`)
    RCVD          RJCT, its SCA ends                                 24 h after it was created (`initiation`)
    PATC          RJCT, its SCA ends                                 30 days after the first signature
    ACTC, ACWC    PDNG if its execution is later; else as PDNG       after 1 s
    PDNG          ACSP with its money reserved; without money ACCP   1 s after `executeAt`
    ACCP          ACSP with its money; RJCT from `giveUpAt` on       at the flow's next retry
    ACSP, ACWP    the flow's own: ACWP, ACSC, PART                   after 2 s, 1 s
    final         none                                               none

The flow of a product (`flows`) may take steps of its own in any of them, and sets their moments. A script
(`progress`, from a rule) replaces the table from `accept` on; the payment stays in the script's last status.

The setting `progression` determines when the steps of an accepted payment happen: `time` (after seconds, as above),
`immediate`, `polls` (a step after every N status reads, `read`) or `manual` (only `advance`). A change of it applies
to steps that are scheduled afterwards. Dates, execution runs and retries follow bank time except with `manual`
(assumed).

Due steps are applied in pieces of `PIECE`, each one change of the store. A piece that cannot be written
is undone as a whole and its steps are still due: the next request tries again, reads see the state before, writes are
503. Any other exception undoes the piece, too, but then every request to this bank is 500 until the step is gone.
While the clock is moved far ahead (`move_clock`) others may use the bank between two pieces: bank time is then just
before the next step, or at its moment if others of that moment are applied, and only the mover applies steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, cast

from emulator.bank.accounts import ledger
from emulator.bank.authentication import sca
from emulator.bank.bank import Bank, DueSteps, progress_event
from emulator.bank.clock import Mode, moment, stamp
from emulator.bank.customers import consents
from emulator.bank.documents import Payment
from emulator.bank.errors import BankError
from emulator.bank.kinds import CONSENT, PAYMENT, SCA, TRANSACTION
from emulator.bank.payment import flows
from emulator.bank.payment.flows import SECOND
from emulator.bank.scheme.transitions import FINAL, STATUSES, UNSIGNED
from emulator.bank.settings import Settings
from emulator.store import Kind

# The kinds of documents with steps: those that move money, and those that end and may then be notified.
MONEY: tuple[Kind[Any], ...] = (PAYMENT, TRANSACTION)
ACCESS: tuple[Kind[Any], ...] = (SCA, CONSENT)
UNSIGNED_LIFETIME = timedelta(hours=24)
PIECE = 32  # steps in one change of the store
_MICROSECOND = timedelta(microseconds=1)
HALF_SIGNED_LIFETIME = timedelta(days=30)  # from the first signature, then RJCT


def next_due(bank: Bank, kinds: tuple[Kind[Any], ...] = (*MONEY, *ACCESS)) -> str | None:
    """The stamp of the earliest step of these kinds of documents that waits for bank time, or None."""
    return cast("str | None", bank.documents.first_key("due", *kinds))


def run_due(bank: Bank) -> None:
    """Apply all steps that are due by bank time, in due order, each at its own moment.

    Payments that are due at the same moment are processed in the order of their creation: the first gets the money.
    """
    until = bank.clock.stamp()
    while run_piece(bank, until):
        pass


def is_behind(bank: Bank) -> bool:
    """Whether steps are due that nothing else is about to apply."""
    due = next_due(bank)
    return due is not None and due <= bank.clock.stamp() and not bank.advances


def run_piece(bank: Bank, until: str) -> bool:
    """Apply up to PIECE steps that are due by `until`, as one change; returns whether there may be more."""
    until = min(until, bank.clock.stamp())  # since an earlier piece a reset may have set the clock back
    with bank.documents.transaction():
        return _take(bank, until) == PIECE


def _take(bank: Bank, until: str) -> int:
    """Apply up to PIECE steps; returns their number."""
    try:
        return sum(1 for _ in islice(_due_steps(bank, until), PIECE))
    except BaseException:
        bank.due_steps = None  # it lacks the steps that are now undone
        raise


def move_clock(bank: Bank, *, now: datetime | None = None, mode: Mode | None = None) -> Iterator[int]:
    """Set bank time and apply all steps that are due by then, in pieces; yields the number of steps of each piece.

    Each piece is one change of the store. Between two pieces the bank may be used: bank time is then just before the
    next step, but not before what is applied; due steps are not applied otherwise. CONFLICT if the bank is reset in the
    meantime.
    """
    documents, clock = bank.documents, bank.clock
    began, content, published = clock.now(), documents.content(), 0
    bank.advances += 1
    try:
        while True:
            with documents.transaction():
                standing = clock.now()
                clock.set(now=None if now is None or now < standing else now, mode=mode)
                mode, until = None, clock.now()
                applied = _take(bank, stamp(until))
                due = next_due(bank) if applied == PIECE else None
                following = None if due is None else moment(due)
                if following is None or following > until:
                    return
                is_under_way = bank.due_steps is not None and bank.due_steps.due == due
                reached = following if is_under_way else max(following - _MICROSECOND, standing)
                clock.set(now=reached)
            moved, total = reached - began, max(until - began, _MICROSECOND)
            if (hundredths := 100 * moved // total) > published:
                published = hundredths
                bank.publish(progress_event(bank, "clock", "advancing", done=moved // SECOND, of=total // SECOND))
            yield applied
            if documents.content() is not content:
                raise BankError("CONFLICT", "The bank was reset or deleted in the meantime, and its clock with it.")
    finally:
        bank.advances -= 1


def _due_steps(bank: Bank, until: str) -> Iterator[None]:
    """Apply the steps that are due by `until`, one per iteration; skips documents that were deleted or rescheduled."""
    documents = bank.documents
    while (due := next_due(bank)) is not None and due <= until:
        waiting = _due_at(bank, due)
        while waiting:
            kind, identity = waiting.popleft()
            document: Any = documents.get(kind, identity)
            if document is None or document.get("due") != due:
                continue
            with bank.clock.standing_at(due):
                if kind is PAYMENT:
                    _step(bank, document)
                    documents.put(PAYMENT, document)
                elif kind is TRANSACTION:
                    ledger.settle_pending(bank, document)
                elif kind is SCA:
                    sca.lapse(bank, document)
                else:
                    consents.lapse(bank, document)
            yield


def _due_at(bank: Bank, due: str) -> deque[tuple[Kind[Any], str]]:
    """The documents that are due at this moment and not processed yet; listed once, even for several pieces."""
    documents, listed = bank.documents, bank.due_steps
    content, failures = documents.content(), documents.failures
    if (
        listed is not None
        and listed.waiting
        and listed.content is content
        and (listed.due, listed.failures) == (due, failures)
    ):
        return listed.waiting
    waiting = deque((kind, identity) for kind in (*MONEY, *ACCESS) for identity in documents.ids_at(kind, "due", due))
    bank.due_steps = DueSteps(due, content, failures, waiting)
    return waiting


def accept(bank: Bank, payment: Payment, status: str | None = None) -> None:
    """The payment is authorised: plan its execution and reserve its money; the caller stores the document.

    `status`: the first status, if set manually; else ACTC, or ACWC if the date is moved or a text is changed.
    """
    flow = flows.of(payment)
    payment.pop("sca", None)
    natural, reasons = flow.plan(bank, payment)
    if "fundsAvailable" not in payment:
        flow.foresee(bank, payment)
    progress = payment.get("progress")
    scripted = progress.pop(0)[0] if status is None and progress and progress[0][1] <= 0 else None
    first = status or scripted or natural
    flows.change(bank, payment, first, reasons=reasons if first == natural else ())
    schedule(bank, payment)
    while status is None and "due" in payment and payment["due"] <= bank.clock.stamp():
        _step(bank, payment)


def _step(bank: Bank, payment: Payment, *, by_hand: bool = False) -> None:
    """Take the next step, of the script or of the flow, and schedule the one after it.

    `by_hand`: a payment that waits for money stops waiting.
    """
    status, progress = payment["status"], payment.get("progress")
    if _lacks_signature(payment):
        sca.void(bank, payment["id"], linked=False)
        flows.change(bank, payment, "RJCT", reasons=["notApproved" if status == "RCVD" else "notApprovedTwice"])
    elif progress:
        flows.change(bank, payment, progress.pop(0)[0])
    else:
        flows.of(payment).step(bank, payment, by_hand=by_hand)
    schedule(bank, payment)


def _lacks_signature(payment: Payment) -> bool:
    """Whether the payment waits for its customer; one that a script sets to PATC does not."""
    return payment["status"] in UNSIGNED and "executeAt" not in payment


def schedule(bank: Bank, payment: Payment) -> None:
    """Set `due`, the moment of the next step after this one; removed if the next step does not follow time."""
    payment.pop("due", None)
    if payment["status"] == "PATC" and _lacks_signature(payment):
        payment["due"] = stamp(bank.clock.now() + HALF_SIGNED_LIFETIME)
    elif payment["status"] not in FINAL and not _lacks_signature(payment):
        due = _due(bank, payment)
        if due is not None:
            payment["due"] = stamp(due)


def _due(bank: Bank, payment: Payment) -> datetime | None:
    """The moment of the next step: of the script, of nobody (`manual`), of the flow."""
    pace, progress = bank.settings.progression, payment.get("progress")
    if progress is not None:
        # A scripted payment follows its script, and stays in the script's last status (assumed).
        timed = bool(progress) and pace in ("time", "immediate")
        return bank.clock.now() + timedelta(seconds=progress[0][1]) if timed else None
    return None if pace == "manual" else flows.of(payment).due(bank, payment)


def reschedule(bank: Bank, before: Settings) -> None:
    """After a change of `progression`, schedule the steps that had no moment; the others keep theirs."""
    if bank.settings.progression == before.progression:
        return
    for payment in bank.documents.all(PAYMENT):
        if payment["status"] not in FINAL and "due" not in payment:
            schedule(bank, payment)
            bank.documents.put(PAYMENT, payment)


def read(bank: Bank, payment: Payment) -> None:
    """Count a status read; with `{polls: N}` the Nth one takes a step."""
    pace = bank.settings.progression
    if not isinstance(pace, dict) or not _polls_help(bank, payment):
        return
    payment["polls"] = payment.get("polls", 0) + 1
    if payment["polls"] >= pace["polls"]:
        payment["polls"] = 0
        _step(bank, payment)
    bank.documents.put(PAYMENT, payment)


def _polls_help(bank: Bank, payment: Payment) -> bool:
    """Whether status reads cause the next step: no date, execution run or approval is awaited first."""
    status = payment["status"]
    if status in FINAL or _lacks_signature(payment):
        return False
    if "progress" in payment:
        return bool(payment["progress"])
    if "due" in payment:
        return False
    return status != "PDNG" or str(payment["executeAt"]) <= bank.clock.stamp()


def advance(bank: Bank, payment_id: str, to: str | None = None) -> Payment:
    """Take the next step now, or all steps of the flow up to the status `to`; returns the payment's document.

    Dates and missing money are ignored. RESOURCE_UNKNOWN, FORMAT_ERROR (no such status) or CONFLICT (no path to it).
    """
    payment = bank.find(PAYMENT, payment_id)
    if to is not None and to not in STATUSES:
        raise BankError("FORMAT_ERROR", f"There is no status {to[:20]}; the statuses are {', '.join(STATUSES)}.", "to")
    status = payment["status"]
    way: tuple[str, ...] = ()
    if to is not None:
        # a script may have set a status that no flow knows
        way = flows.of(payment).path(status, to) if status in STATUSES or to in UNSIGNED else (to,)
    if status in FINAL or (to is not None and not way):
        raise BankError("CONFLICT", f"From {status} no step leads to {to}." if to else f"{status} is final.")
    with bank.documents.transaction():
        if status in UNSIGNED:
            sca.void(bank, payment_id)
            payment.pop("sca", None)
        if to is not None:
            for step in way:
                _go(bank, payment, step)
        elif status in UNSIGNED:
            accept(bank, payment)
        else:
            _step(bank, payment, by_hand=True)
        bank.documents.put(PAYMENT, payment)
    return payment


def _go(bank: Bank, payment: Payment, status: str) -> None:
    script, flow = payment.get("progress"), flows.of(payment)
    while script and flow.missing_step(script, status):
        script.pop(0)  # it goes on with what the flow can do from there
    if payment["status"] in UNSIGNED and status in ("ACTC", "ACWC"):
        accept(bank, payment, status)
    else:
        flows.change(bank, payment, status)
        schedule(bank, payment)
