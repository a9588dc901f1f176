"""The statuses of payments and of baskets, and the transitions between them that flows share (payment-statuses.md).

A flow (`payment/flows.py`) belongs to one kind of product: its transitions are some of these and its own
ones. The manual's diagram shows all of them: a new status needs its place there (`_PLACES` in `tests/docs/pictures.py`)
and a row in payment-statuses.md#each-status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

BasketTransactionStatus = Literal["RCVD", "ACTC", "PATC", "RJCT"]  # baskets.md#status-of-a-basket
STATUSES = ("RCVD", "PATC", "ACTC", "ACWC", "PDNG", "ACCP", "ACSP", "ACWP", "ACSC", "PART", "RJCT", "CANC")
FINAL = frozenset({"ACSC", "RJCT", "CANC", "PART"})
UNSIGNED = frozenset({"RCVD", "PATC"})  # a signature is still missing
NOT_EXECUTED = frozenset({"ACTC", "ACWC", "PDNG", "ACCP"})  # authorised; waits for its date or for money


@dataclass(frozen=True, slots=True)
class Transition:
    """A step from one status to another, with a short text that says when it happens."""

    start: str
    end: str
    when: str


SIGNED = (
    Transition("RCVD", "RJCT", "SCA declined, or 24 h without"),
    Transition("RCVD", "CANC", "DELETE"),
    Transition("RCVD", "PATC", "first of two signatures"),
    Transition("RCVD", "ACTC", "authorised"),
    Transition("PATC", "ACTC", "second signature"),
    Transition("PATC", "RJCT", "30 days without the second signature"),
    Transition("PATC", "CANC", "cancelled"),
    Transition("ACTC", "RJCT", "rejected late, by a script"),
)
"""Of every flow: until the payment is authorised. Late rejections by the bank are the only steps that need a script."""

CANCELLABLE = Transition("ACTC", "CANC", "cancelled")
"""Of flows whose payments can be cancelled after authorisation."""

EXECUTED_ONCE = (
    Transition("ACTC", "ACSP", "executed"),
    Transition("ACTC", "ACCP", "no funds"),
    Transition("ACCP", "ACSP", "money arrived"),
    Transition("ACCP", "RJCT", "given up"),
    Transition("ACCP", "CANC", "cancelled"),
)
"""Of flows whose payments are executed once."""

WAITS_FOR_A_DATE = (
    Transition("RCVD", "ACWC", "authorised, date moved or text changed"),
    Transition("PATC", "ACWC", "second signature, date moved or text changed"),
    Transition("ACTC", "PDNG", "waits for date and cut-off"),
    CANCELLABLE,
    Transition("ACWC", "ACSP", "executed"),
    Transition("ACWC", "PDNG", "waits for date and cut-off"),
    Transition("ACWC", "ACCP", "no funds"),
    Transition("ACWC", "CANC", "cancelled"),
    Transition("ACWC", "RJCT", "rejected late, by a script"),
    Transition("PDNG", "ACSP", "executed"),
    Transition("PDNG", "ACCP", "no funds"),
    Transition("PDNG", "CANC", "cancelled"),
    Transition("PDNG", "RJCT", "rejected late, by a script"),
)
"""Of flows whose payments may wait for an execution date."""

REJECTED = Transition("ACSP", "RJCT", "rejected late, by a script")
"""Of flows of a single payment, which is booked in the end or not at all."""

BOOKED = Transition("ACSP", "ACSC", "booked")

# The statuses of a basket, worst first; a status of a payment that is not in the table counts as ACTC.
WORST_FIRST: tuple[BasketTransactionStatus, ...] = ("RJCT", "RCVD", "PATC", "ACTC")
COUNTS_AS: Mapping[str, BasketTransactionStatus] = {
    "CANC": "RJCT",
    "RJCT": "RJCT",
    "PART": "PATC",
    "PATC": "PATC",
    "RCVD": "RCVD",
}


def basket_status(statuses: Iterable[str]) -> BasketTransactionStatus:
    """The worst of the payments' statuses: RJCT, RCVD, PATC or ACTC; RJCT without payments, after a repair."""
    counted = {COUNTS_AS.get(status, "ACTC") for status in statuses}
    return next((status for status in WORST_FIRST if status in counted), "RJCT")
