"""What clients saw of payments, and whether one bank, doing one thing at a time, could have answered so.

The search is Wing and Gong's ("Testing and Verifying Concurrent Objects", 1993) with the memory of Lowe's: try every
operation that may have been the next one, given who had an answer before who began; never try the same set of done
operations in the same state twice. Payments are independent, so each has a search of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from math import inf
from typing import Literal, NamedTuple

REFUSED = "refused"
NEXT = {"RCVD": "ACTC", "ACTC": "ACSP", "ACSP": "ACSC"}  # with the setting `progression: manual`
MOST = 5_000_000  # steps of one search; none has ever needed a hundredth of it


Kind = Literal[
    "history",  # no order of the operations on a payment explains the answers
    "lost",  # an acknowledged payment is not stored
    "doubled",  # a payment, a booking or an item of a list is there twice
    "invented",  # something is stored or shown that nobody asked for
    "money",  # the ledger does not balance, or its total has changed
    "events",  # an event stream lacks a change, repeats one or has them in a wrong order
    "pages",  # a list read page by page lacks an item
    "divergence",  # processes hold different documents
    "answer",  # an answer that no state of the bank explains, such as 500
    "recovery",  # service is not back in time
    "log",  # a process has logged a traceback
]


class Problem(NamedTuple):
    """What is wrong, and the kind of it."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class Operation:
    """One request about a payment. `result` is a status, REFUSED, or None where no answer came (or none was whole).

    `kind`: create, read, approve, advance, cancel. `began` and `ended` are seconds on one clock; an operation without
    an answer may act at any time after it began, or never. `client` and `node` are for people who read a report.
    """

    kind: str
    payment: str
    began: float
    ended: float
    result: str | None
    client: str = ""

    def __str__(self) -> str:
        took = f"{self.began:9.3f} to {self.ended:9.3f}"
        return f"{took}  {self.client:<10} {self.kind:<8} {self.result or 'no answer'}"


def step(status: str | None, kind: str) -> tuple[str | None, str | None]:
    """What an operation makes of a payment in this status (None: there is none): its status then, and the answer."""
    if kind == "create":
        return ("RCVD", "RCVD") if status is None else (status, REFUSED)
    if kind == "read":
        return status, status if status is not None else REFUSED
    if kind == "advance" and status in NEXT:
        return NEXT[status], NEXT[status]
    if status == "RCVD" and kind in ("approve", "cancel"):
        return ("ACTC", "ACTC") if kind == "approve" else ("CANC", "CANC")
    return status, REFUSED


def linearizable(operations: Iterable[Operation]) -> bool:
    """Whether some order of these operations of one payment explains every answer and every time."""
    all_of_them = sorted(
        (one for one in operations if one.result is not None or one.kind != "read"), key=lambda one: one.began
    )
    ends = [inf if one.result is None else one.ended for one in all_of_them]
    answered = sum(1 << at for at, end in enumerate(ends) if end != inf)
    seen: set[tuple[int, str | None]] = set()
    stack: list[tuple[int, str | None]] = [(0, None)]
    while stack:
        done, status = stack.pop()
        if done & answered == answered:
            return True
        if (done, status) in seen:
            continue
        seen.add((done, status))
        if len(seen) > MOST:
            raise RuntimeError(f"gave up on a history of {len(all_of_them)} operations")
        first_end = min(end for at, end in enumerate(ends) if not done >> at & 1)
        for at, one in enumerate(all_of_them):
            if one.began > first_end:
                break
            if done >> at & 1:
                continue
            after, answer = step(status, one.kind)
            if one.result is None or one.result == answer:
                stack.append((done | 1 << at, after))
    return False


def unexplained(operations: Sequence[Operation]) -> Operation | None:
    """The first answer that no order explains, given all that was answered before it; None: all are explained."""
    if linearizable(operations):
        return None
    answered = sorted((one for one in operations if one.result is not None), key=lambda one: one.ended)
    silent = [one for one in operations if one.result is None]
    for count, last in enumerate(answered, start=1):
        # What was answered later may have acted already, as far as anybody knew at that time.
        later = [replace(one, result=None) for one in answered[count:]]
        known = [one for one in (*answered[:count], *later, *silent) if one.began <= last.ended]
        if not linearizable(known):
            return last
    raise RuntimeError("the whole history is not linearizable, but each part is")


@dataclass(frozen=True, slots=True)
class Creation:
    """A payment that a client wanted: its reference, which no other has, and the ids that answers named.

    Several ids are one too many: a repeat with the same X-Request-ID gives the stored answer.
    """

    reference: str
    payments: tuple[str, ...]


def judge_payments(operations: Iterable[Operation]) -> Iterator[Problem]:
    """What is wrong with the history of each payment, one text per payment."""
    histories: dict[str, list[Operation]] = {}
    for one in operations:
        histories.setdefault(one.payment, []).append(one)
    for payment, history in histories.items():
        last = unexplained(history)
        if last is not None:
            lines = "\n".join(
                f"  {'>' if one is last else ' '} {one}" for one in sorted(history, key=lambda o: o.began)
            )
            text = f"payment {payment} is not linearizable; the first answer that nothing explains is marked:\n{lines}"
            yield Problem("history", text)


def judge_creations(creations: Iterable[Creation], stored: Mapping[str, str]) -> Iterator[Problem]:
    """What is lost or doubled. `stored`: the reference of each payment that the bank has in the end, by payment."""
    payments: dict[str, list[str]] = {}
    for payment, reference in stored.items():
        payments.setdefault(reference, []).append(payment)
    for one in creations:
        there = payments.pop(one.reference, [])
        if len(set(one.payments)) > 1:
            ids = ", ".join(one.payments)
            yield Problem("doubled", f"{one.reference}: repeats were answered with several payments: {ids}")
        if one.payments and not there:
            yield Problem("lost", f"{one.reference}: acknowledged as {one.payments[0]}, and lost")
        elif one.payments and one.payments[0] not in there:
            yield Problem("lost", f"{one.reference}: acknowledged as {one.payments[0]}, stored as {', '.join(there)}")
        if len(there) > 1:
            yield Problem("doubled", f"{one.reference}: stored {len(there)} times: {', '.join(there)}")
    for reference, there in payments.items():
        yield Problem("invented", f"{reference}: nobody asked for it, stored as {', '.join(there)}")


def judge_money(totals: Iterable[tuple[float, bool, dict[str, str]]]) -> Iterator[Problem]:
    """What is wrong with the ledgers that were read: (seconds, balanced, totals by currency)."""
    first: dict[str, Decimal] | None = None
    for at, balanced, amounts in totals:
        money = {currency: Decimal(amount) for currency, amount in amounts.items()}
        first = first if first is not None else money
        if not balanced:
            yield Problem("money", f"the ledger read at {at:.3f} is not balanced")
        if money != first:
            expected = {currency: str(amount) for currency, amount in first.items()}
            yield Problem("money", f"the ledger read at {at:.3f} has {amounts}, not {expected}")


ORDER = {"RCVD": 0, "ACTC": 1, "CANC": 1, "ACSP": 2, "ACSC": 3}


@dataclass(frozen=True, slots=True)
class EventStream:
    """What one connection to `GET /_emulator/events` of one process showed of payments: (payment, status), in order.

    `complete`: it showed the change that was made last, after all operations.
    """

    name: str
    began: float
    seen: Sequence[tuple[str, str]]
    complete: bool


def judge_events(stream: EventStream, operations: Iterable[Operation]) -> Iterator[Problem]:
    """Every acknowledged change appears in a stream once, and after those that were acknowledged before it began.

    A stream that broke may end anywhere, but lacks nothing before the last change that it has shown.
    """
    changes = {
        (one.payment, one.result): one
        for one in operations
        if one.kind != "read" and one.result not in (None, REFUSED) and one.began > stream.began
    }
    places: dict[str, list[int]] = {}
    shown: set[tuple[str, str]] = set()
    latest = -inf  # when the latest of the changes shown so far was asked for
    for payment, status in stream.seen:
        places.setdefault(payment, []).append(ORDER[status])
        shown.add((payment, status))
        change = changes.get((payment, status))
        if change is None:
            continue
        if change.ended < latest:
            text = f"{payment} {status} follows a change that was asked for after its answer"
            yield Problem("events", f"{stream.name}: {text}")
        latest = max(latest, change.began)
    for payment, numbers in places.items():
        if any(after != before + 1 for before, after in pairwise(numbers)):
            yield Problem("events", f"{stream.name}: payment {payment} goes through {numbers}")
    end = inf if stream.complete else latest
    for key, change in changes.items():
        if change.ended < end and key not in shown:
            yield Problem("events", f"{stream.name}: {' '.join(map(str, key))} is missing: {change}")


@dataclass(frozen=True, slots=True)
class Walk:
    """A list of transactions read page by page: (id, text) of the items of each page. `began`: seconds.

    Pages are counted from the newest item, so that the next one may repeat items where new ones came meanwhile.
    """

    began: float
    pages: Sequence[Sequence[tuple[str, str]]]


def judge_walks(walks: Iterable[Walk], booked: Mapping[str, float], wanted: Iterable[str]) -> Iterator[Problem]:
    """No item is missing, and none is there twice.

    `booked`: by text, when the answer came that booked it; `wanted`: the texts of all payments that were asked for.
    """
    asked_for = frozenset(wanted)
    ids: dict[str, str] = {}
    for walk in walks:
        where = f"the walk begun at {walk.began:.3f}"
        for page in walk.pages:
            if len({identity for identity, _ in page}) < len(page):
                yield Problem("doubled", f"{where} shows a transaction twice on a page: {page}")
        items = {(text, identity) for page in walk.pages for identity, text in page}
        for text, identity in sorted(items):
            if ids.setdefault(text, identity) != identity:
                yield Problem("doubled", f"{where} shows {text} as {identity}, another one as {ids[text]}")
            if text not in asked_for:
                yield Problem("invented", f"{where} shows {text}, which nobody has paid")
        shown = {text for text, _ in items}
        for text, at in booked.items():
            if at < walk.began and text not in shown:
                yield Problem("pages", f"{where} lacks {text}, booked at {at:.3f}")
