"""What clients saw of payments, and whether one bank, doing one thing at a time, could have answered so.

The search is Wing and Gong's ("Testing and Verifying Concurrent Objects", 1993) with the memory of Lowe's: try every
operation that may have been the next one, given who had an answer before who began; never try the same set of done
operations in the same state twice. Payments are independent, so each has a search of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from math import inf

REFUSED = "refused"
NEXT = {"RCVD": "ACTC", "ACTC": "ACSP", "ACSP": "ACSC"}  # with the setting `progression: manual`
MOST = 5_000_000  # steps of one search; none has ever needed a hundredth of it


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


def judge_payments(operations: Iterable[Operation]) -> Iterator[str]:
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
            yield f"payment {payment} is not linearizable; the first answer that nothing explains is marked:\n{lines}"


def judge_creations(creations: Iterable[Creation], stored: dict[str, str]) -> Iterator[str]:
    """What is lost or doubled. `stored`: the reference of each payment that the bank has in the end, by payment."""
    payments: dict[str, list[str]] = {}
    for payment, reference in stored.items():
        payments.setdefault(reference, []).append(payment)
    for one in creations:
        there = payments.pop(one.reference, [])
        if len(set(one.payments)) > 1:
            yield f"{one.reference}: repeats were answered with several payments: {', '.join(one.payments)}"
        if one.payments and not there:
            yield f"{one.reference}: acknowledged as {one.payments[0]}, and lost"
        elif one.payments and one.payments[0] not in there:
            yield f"{one.reference}: acknowledged as {one.payments[0]}, stored as {', '.join(there)}"
        if len(there) > 1:
            yield f"{one.reference}: stored {len(there)} times: {', '.join(there)}"
    for reference, there in payments.items():
        yield f"{reference}: nobody asked for it, stored as {', '.join(there)}"


def judge_money(totals: Iterable[tuple[float, bool, dict[str, str]]]) -> Iterator[str]:
    """What is wrong with the ledgers that were read: (seconds, balanced, totals by currency)."""
    first: dict[str, Decimal] | None = None
    for at, balanced, amounts in totals:
        money = {currency: Decimal(amount) for currency, amount in amounts.items()}
        first = first if first is not None else money
        if not balanced:
            yield f"the ledger read at {at:.3f} is not balanced"
        if money != first:
            expected = {currency: str(amount) for currency, amount in first.items()}
            yield f"the ledger read at {at:.3f} has {amounts}, not {expected}"


def judge_positions(name: str, numbers: Sequence[int]) -> Iterator[str]:
    """Where numbers that go up by one do not."""
    for before, after in pairwise(numbers):
        if after != before + 1:
            yield f"{name}: {after} follows {before}"
