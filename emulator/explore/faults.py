"""The kinds of faults of a schedule: their common form, and one class each.

The members of a kind are what a schedule has to name; from them follow rules and settings of the bank, or changes of it
after a request. To draw a new effect of scenarios, add a kind whose rules have it, with the values of its members in
`draws`. `python -m tests.docs.sections` writes the table in find-the-fault.md; `tests/explore/test_schedule.py`
plays the `example` of each kind with the task `pay`, or with `read` for the operations and kinds that it names.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from emulator.api.operations import table
from emulator.bank import feed, notifications
from emulator.bank.payment import flows
from emulator.bank.scheme.transitions import FINAL
from emulator.bank.validation import Model, Omittable, one_of
from emulator.scenario.effects import effects as scenario_effects

MOST = 1000  # the highest number of a request that a fault may name
COUNTS = (1, 2, 3, 4)  # requests in sequence, as they are drawn

Operation = Annotated[str, one_of("operation", tuple(row.id for row in table()))]
Number = Annotated[int, Field(ge=1, le=MOST)]
Pick = Callable[[Sequence[Any]], Any]  # draws one of these, the first if it does not matter


class PlannedFault(Model):
    """A fault of a schedule; `fault` is the name of its kind. Each class with a `name` is a kind:

    `draws`: the values of its members, or how to draw one, simple ones first; those of Literal and bool are all drawn,
    None is left out; `text`: what happens, with `{member}`; `operations`: those that it is drawn for, () for all;
    `often`: those of them that are drawn as often as all of them together; `spoils`: the TPP cannot use the answer;
    `example`: a shrunk one; `weight`: how often it is drawn, 1 if its values are few.
    """

    model_config = ConfigDict(alias_generator=None)

    name: ClassVar[str]
    summary: ClassVar[str]
    text: ClassVar[str] = ""
    example: ClassVar[Mapping[str, Any]]
    draws: ClassVar[Mapping[str, Sequence[Any] | Callable[[Pick], Any]]] = {}
    operations: ClassVar[Collection[str]] = ()
    often: ClassVar[Collection[str]] = ()
    spoils: ClassVar[bool] = False
    weight: ClassVar[int] = 1

    fault: str

    def rules(self) -> Iterable[dict[str, Any]]:
        """The rules of the bank that cause it."""
        return ()

    def settings(self) -> Mapping[str, Any]:
        """The settings of the bank that cause it; lists of several faults are joined."""
        return {}

    def what(self) -> str:
        """What happens, for people."""
        return self.text.format_map(dict(self))

    def described(self) -> str:
        """The same with the requests that it concerns."""
        return self.what()


class NumberedFault(PlannedFault):
    """A fault at request number `at` for the operation `of`."""

    of: Operation
    at: Number = 1


class RequestFault(NumberedFault):
    """A fault of the requests number `at` to `at + count - 1`."""

    then: ClassVar[Mapping[str, str]] = {}

    count: Annotated[int, Field(ge=1, le=20)] = 1

    def scripted(self) -> dict[str, Any]:
        """The effects on each of these requests: those of `then`, with `{member}`s."""
        return {effect: value.format_map(dict(self)) for effect, value in self.then.items()}

    def rules(self) -> Iterable[dict[str, Any]]:
        # A rule whose effects an earlier one has taken does not count the request: the latest number comes first.
        for number in reversed(range(self.at, self.at + self.count)):
            name = f"{self.fault}: {self.of} {number}"
            yield {"name": name, "when": {"operation": self.of}, "times": {"at": number}, "then": self.scripted()}

    def numbers(self) -> str:
        """The requests in words."""
        last = self.at + self.count - 1
        return f"{self.of} {self.at}" if last == self.at else f"{self.of} {self.at} to {last}"

    def described(self) -> str:
        return f"{self.numbers()}: {self.what()}"


class ChangeFault(NumberedFault):
    """A change of the bank after that request."""

    @abstractmethod
    def start(self, debtor: str) -> dict[str, Any]:
        """The change, as `start` of a scenario; `debtor`: the account that the TPP is to pay from."""

    def described(self) -> str:
        return f"after {self.of} {self.at}: {self.what()}"


# Answers


class Lost(RequestFault):
    name = "lost"
    summary = "The connection closes without an answer: before the bank acts, or after it has."
    then: ClassVar = {"disconnect": "{when}"}
    draws: ClassVar = {"count": COUNTS}
    example: ClassVar = {"of": "createPayment", "at": 1, "count": 2, "when": "after"}
    often = ("createPayment", "createSigningBasket")
    spoils = True
    weight = 3

    when: Literal["after", "before"] = "after"

    def what(self) -> str:
        return f"the {'answer' if self.when == 'after' else 'request'} is lost"


class Malformed(RequestFault):
    name = "malformed"
    summary = "The bank acts, but its answer cannot be read."
    then: ClassVar = {"malformed": "{form}"}
    text = "the body of the answer is {form}"
    draws: ClassVar = {"count": COUNTS}
    example: ClassVar = {"of": "getPaymentStatus", "at": 1, "count": 1, "form": "truncated"}
    spoils = True

    form: Literal["truncated", "not-json", "wrong-type", "empty", "html"] = "truncated"


class NewMembers(RequestFault):
    name = "new-members"
    summary = "An answer has members that nobody knows, as banks add them without notice."
    then: ClassVar = {"malformed": "new-members"}
    text = "the answer has new members"
    example: ClassVar = {"of": "getPaymentStatus", "at": 1}


class SlowAnswer(RequestFault):
    name = "slow"
    summary = "An answer comes late, in real time."
    then: ClassVar = {"delay": "{ms}ms"}
    text = "the answer takes {ms} ms longer"
    draws: ClassVar = {"ms": (20, 100)}
    example: ClassVar = {"of": "createPayment", "at": 1, "ms": 200}

    ms: Annotated[int, Field(ge=1, le=60_000)] = 100


class Unavailable(RequestFault):
    """`retry`: the seconds of Retry-After."""

    name = "unavailable"
    summary = "The bank answers 503 or 429, with or without Retry-After."
    draws: ClassVar = {"retry": (None, 1, 30), "count": COUNTS}
    example: ClassVar = {"of": "getPaymentStatus", "at": 1, "count": 1, "status": 503}
    spoils = True
    weight = 6

    status: Literal[503, 429] = 503
    retry: Omittable[Annotated[int, Field(ge=1, le=86400)]] = None

    def scripted(self) -> dict[str, Any]:
        text = "The bank is unavailable for a moment." if self.status == 503 else "Too many requests."
        headers = {} if self.retry is None else {"headers": {"Retry-After": str(self.retry)}}
        return {"answer": {"status": self.status, "text": text, **headers}}

    def what(self) -> str:
        return f"answered {self.status}" + ("" if self.retry is None else f" with Retry-After: {self.retry}")


# Access


ENDS = {
    "consent-revoked": {"consents": "revoked"},
    "consent-expired": {"consents": "expired"},
    "session-over": {"sessions": "expired"},
    "quota-used-up": {"quotas": "exhausted"},
}


class AccessEnds(ChangeFault):
    name = "access"
    summary = "The access of the TPP ends between two requests: its consents, sessions or the reads of the day."
    example: ClassVar = {"of": "getTransactions", "at": 1, "ends": "consent-revoked"}
    operations = ("getAccounts", "getBalances", "getTransactions", "createPayment")  # statuses need no access
    weight = 2

    ends: Literal["consent-revoked", "consent-expired", "session-over", "quota-used-up"]

    def start(self, debtor: str) -> dict[str, Any]:
        del debtor
        return {"change": [ENDS[self.ends]]}

    def what(self) -> str:
        return self.ends.replace("-", " ")


class ReadsUsedUp(RequestFault):
    name = "quota"
    summary = "The reads of the day are used up: 429 ACCESS_EXCEEDED."
    then: ClassVar = {"quota": "exhausted"}
    text = "the reads of the day are used up"
    example: ClassVar = {"of": "getTransactions", "at": 1}
    operations = scenario_effects()["quota"].operations
    spoils = True


class ScaEnds(RequestFault):
    """`outcome`: of the SCA that the request opens."""

    name = "sca"
    summary = "The customer's authentication fails, expires, is declined or abandoned."
    then: ClassVar = {"sca": "{outcome}"}
    example: ClassVar = {"of": "createPayment", "at": 1, "outcome": "fail"}
    operations = (
        "createPayment",
        "createSigningBasket",
        "startCancellationAuthorisation",
        "getAccounts",
        "createConsent",
    )

    outcome: Literal["fail", "expire", "reject", "abandon"] = "fail"

    def what(self) -> str:
        ends = {"fail": "fails", "expire": "expires", "reject": "is declined", "abandon": "is abandoned"}
        return f"the authentication {ends[self.outcome]}"


# Payments


class Fee(RequestFault):
    """`amount`: of the fee, in the currency of the debtor's account.

    If it is missing, each fault has another: two equal bookings of a day would look like one that is shown twice.
    """

    name = "fee"
    summary = "A payment has a fee."
    example: ClassVar = {"of": "createPayment", "at": 1, "amount": "10.00"}
    operations = ("createPayment",)

    amount: Omittable[str] = None

    @property
    def fee(self) -> str:
        return self.amount or f"{9 + self.at}.00"

    def scripted(self) -> dict[str, Any]:
        return {"fee": self.fee}

    def what(self) -> str:
        return f"the payment has a fee of {self.fee}"


class Notified(RequestFault):
    """`effect`: on the notifications that the request orders."""

    name = "notification"
    summary = "Notifications of a payment come late, twice, in the wrong order, forged, or not at all."
    then: ClassVar = {"notification": "{effect}"}
    text = "its notifications are {effect}"
    draws: ClassVar = {"effect": notifications.EFFECTS}
    example: ClassVar = {"of": "createPayment", "at": 1, "effect": "reordered"}
    operations = ("createPayment",)
    weight = 4

    effect: Annotated[str, one_of("effect", notifications.EFFECTS)] = "twice"

    def settings(self) -> Mapping[str, Any]:
        return {"notifications": True}


class Permission(RequestFault):
    """The payment is refused: 403 FORBIDDEN. `lasts`: and so is every later one."""

    name = "permission"
    summary = "Payments from the account are refused, though it can be read."
    then: ClassVar = {"permission": "remove"}
    example: ClassVar = {"of": "createPayment", "at": 1, "lasts": True}
    text = "refused, the account may not be paid from"
    operations = ("createPayment",)
    weight = 2

    lasts: bool = False

    def rules(self) -> Iterable[dict[str, Any]]:
        for rule in super().rules():
            yield {**rule, "times": {"after": self.at - 1}} if self.lasts else rule

    def numbers(self) -> str:
        return super().numbers() + (" and every later one" if self.lasts else "")


WAITS = ("2s", "1h", "3d")
LENGTHS = (1, 2, 3, 4)  # of a path
UNKNOWN = "ACCC"  # a status that nobody knows: it may follow any
LATER = {"RJCT": "3d", "ACSC": "1h"}  # an end much later


@cache
def _following(status: str) -> tuple[str, ...]:
    """The statuses after this one in any flow; a payment is not cancelled by itself."""
    ends = {step.end for flow in flows.FLOWS.values() for step in flow.transitions if step.start == status}
    return tuple(sorted(ends - {"CANC", "PART"}))


def _path(pick: Pick) -> list[Any]:
    steps: list[Any] = []
    status = "RCVD"
    for left in reversed(range(pick(LENGTHS))):
        following = _following(status)
        going_on = [one for one in following if left == 0 or one not in FINAL]
        if not going_on:
            break
        status = pick(going_on)
        wait = pick(("", *WAITS)) if steps or status == "ACTC" else ""  # after a wait, a path begins in ACTC
        steps.append({status: wait} if wait else status)
    if status not in FINAL and pick((False, True)):
        steps.append(pick((UNKNOWN, *({end: wait} for end, wait in LATER.items() if end in _following(status)))))
    return steps


class Statuses(RequestFault):
    """`path`: as the effect `progress` takes it; of the payment that the request creates."""

    name = "statuses"
    summary = "A payment takes another path: any that transitions allow, or one with a status that nobody knows."
    draws: ClassVar = {"path": _path}
    example: ClassVar = {"of": "createPayment", "at": 1, "path": ["ACTC", "ACCP", {"RJCT": "3d"}]}
    operations = ("createPayment",)
    weight = 8

    path: Annotated[list[Any], Field(min_length=1, max_length=20)]

    def scripted(self) -> dict[str, Any]:
        return {"progress": self.path}

    def what(self) -> str:
        steps = [
            step if isinstance(step, str) else "{} after {}".format(*next(iter(step.items()))) for step in self.path
        ]
        return f"the payment goes {', '.join(steps)}"


# Accounts


class Booked(ChangeFault):
    """`entries`: how many are booked, today, to the account that the TPP pays from; a hundred are more than a page."""

    name = "booked"
    summary = "Something is booked between two requests, so that the borders of pages move."
    text = "{entries} more booked"
    draws: ClassVar = {"entries": (1, 100)}
    example: ClassVar = {"of": "getTransactions", "at": 1, "entries": 1}
    operations = ("getTransactions", "getAccounts")  # after the latter, before anything is read
    weight = 2

    entries: Annotated[int, Field(ge=1, le=200)] = 1

    def start(self, debtor: str) -> dict[str, Any]:
        booked = {"account": debtor, "date": "0d", "name": "Kiosken", "text": f"{self.of} {self.at}"}
        amounts = [f"-{17 + entry}.{self.at:02}" for entry in range(self.entries)]
        return {"add": {"transactions": [{**booked, "amount": amount} for amount in amounts]}}


class Feed(PlannedFault):
    """`effect`: as the setting `feed` takes it; `chance`: of each entry."""

    name = "feed"
    summary = "The account feed drifts between two reads."
    text = "the feed drifts: {effect} ({chance:.0%} of the entries)"
    draws: ClassVar = {"effect": feed.EFFECTS, "chance": (1.0, 0.3)}
    example: ClassVar = {"effect": "duplicate", "chance": 1.0}
    operations = ("getTransactions",)
    weight = 2

    effect: Annotated[str, one_of("effect", feed.EFFECTS)]
    chance: Annotated[float, Field(ge=0, le=1)] = 1.0

    def settings(self) -> Mapping[str, Any]:
        return {"feed": [{"effect": self.effect, "chance": self.chance}]}


class MoneyGone(ChangeFault):
    name = "money"
    summary = "The money is gone: the accounts are empty from a request on."
    text = "the accounts are empty"
    example: ClassVar = {"of": "createPayment", "at": 1}

    def start(self, debtor: str) -> dict[str, Any]:
        del debtor
        return {"change": [{"account": "NO*", "balance": "0.00", "creditLine": "0.00"}]}


@cache
def kinds() -> dict[str, type[PlannedFault]]:
    """Every kind of fault by name, in the order in which they are drawn."""
    every = [
        form
        for form in globals().values()
        if isinstance(form, type) and issubclass(form, PlannedFault) and "name" in vars(form)
    ]
    return {form.name: form for form in sorted(every, key=attrgetter("name"))}
