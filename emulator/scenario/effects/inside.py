"""Effects that are a member of `call.script` each, by which the bank itself acts otherwise than usual."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from emulator.api.operation import Access, Call
from emulator.api.operations import table
from emulator.bank.notifications import EFFECTS
from emulator.bank.validation import Model, amount, one_of
from emulator.scenario.effects import Effect, EffectKind
from emulator.scenario.values import duration, either

DELAY = timedelta(minutes=10)  # of `late` without a duration


def scripted(**members: Any) -> Effect:
    """The effect that sets these members of `call.script`."""

    def before(call: Call) -> None:
        call.script = replace(call.script, **members)

    return Effect(before)


FEE = EffectKind(
    name="fee",
    summary="The payment has this fee, in the currency of the debtor account.",
    form=Annotated[str, amount(r"(0|[1-9][0-9]{0,9})(\.[0-9]{1,5})?", minimum=0)],
    effect=lambda fee: scripted(fee=fee),
    example="10.00",
    operations=("createPayment",),
    inside=True,
)


PERMISSION = EffectKind(
    name="permission",
    summary="Payments from the account are refused, but it can still be read.",
    form=Annotated[str, one_of("change of permission", ("remove",))],
    effect=lambda _: scripted(permission_removed=True),
    example="remove",
    operations=("createPayment",),
    inside=True,
)


QUOTA = EffectKind(
    name="quota",
    summary="The reads are exhausted, with the customer present too: 429 ACCESS_EXCEEDED.",
    form=Annotated[str, one_of("state of a quota", ("exhausted",))],
    effect=lambda _: scripted(quota_exhausted=True),
    example="exhausted",
    operations=tuple(row.id for row in table() if row.quota),
    inside=True,
)


class Late(Model):
    """The delay of each notification after its change."""

    late: Annotated[timedelta, duration()]


NOTIFICATION = EffectKind(
    name="notification",
    summary=(
        "The notifications that the request orders are late (10 minutes of bank time, or {late: 1h}), sent twice,"
        " reordered in pairs, or dropped; forged: one more is sent, with a false status."
    ),
    form=either(Annotated[str, one_of("effect on notifications", EFFECTS)], Late),
    # stored with the address to notify
    effect=lambda value: scripted(
        notification=("late", value.late.total_seconds()) if isinstance(value, Late) else (value, DELAY.total_seconds())
    ),
    example="twice",
    operations=tuple(row.id for row in table() if row.notifies),
    inside=True,
)


class Slow(Model):
    """The delay of each page of the SCA, in real time."""

    slow: Annotated[timedelta, duration(timedelta(hours=1))]


SCA = EffectKind(
    name="sca",
    summary=(
        "The SCA that the request opens is declined, expires, fails with a server error, is abandoned, or is slow:"
        " each of its pages is delayed, in real time."
    ),
    form=either(Annotated[str, one_of("outcome of an SCA", ("reject", "expire", "fail", "abandon"))], Slow),
    # stored with the SCA
    effect=lambda value: (
        scripted(sca_delay=value.slow.total_seconds()) if isinstance(value, Slow) else scripted(sca=value)
    ),
    example="reject",
    # whose requests may open an SCA: that of what they create, or that of a customer who is not known yet
    operations=(
        *("createPayment", "createConsent", "createBankOfferedConsent"),
        *(one.id for one in table() if one.access is not Access.OPEN and one.id != "createPayment"),
    ),
    inside=True,
)
