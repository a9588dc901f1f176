"""The file of a check (add-check.md): what it judges, when its occasion arises, and what a good TPP does then.

Each check needs a TPP that makes its mistake, in `tests/conformance/mutants.py`; the good one,
`tests/explore/merchant.py`, is changed only if it does not meet the occasion. `python -m tests.docs.sections` writes
checks.md, and the number of checks into agents.md.

The page also describes its language: the clauses, and what a MATCH names. A clause only concerns observations of the
TPP of its occasion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from emulator.bank.conditions import (
    Condition,
    Matcher,
    Operators,
    Single,
    fact_matcher,
    fits,
    matcher,
    number,
)
from emulator.bank.problems import Problem, unknown
from emulator.bank.validation import Mismatch, Model, Reads, refuse, validate
from emulator.conformance.facts import EVENT_FACTS, FACTS, SEVERAL, is_fact
from emulator.scenario import durations
from emulator.scenario.loader import parsed, text_of

FOLDER = Path(__file__).parent / "checks"
EVENTS = ("request", "page", "payment", "consent", "return", "customer", "notification")
Tests = Mapping[str, Matcher]
"""The tests of the facts that a MATCH names, and of its event."""
Member = Literal["state", "balance", "transactions"]  # of a claim


def _within(value: Any) -> timedelta | str:
    length = durations.exact(value)
    if length is None and value != "end":
        raise Mismatch(f"{durations.expected(value, calendar=False)}, or end")
    return "end" if length is None else length


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


def _fact(value: Any) -> str:
    if not isinstance(value, str) or not is_fact(value):
        raise Mismatch(text=unknown(value, (*FACTS, *EVENT_FACTS), "There is no fact"))
    return value


class FactMatch(dict[str, Condition]):
    """Facts with their conditions; it is about requests unless it names an event."""

    @cached_property
    def tests(self) -> Tests:
        """The test of each fact: made once for all banks, of which a test may have hundreds."""
        return {
            name: (fact_matcher if name in SEVERAL else matcher)(stated, strict=True, absent=None)
            for name, stated in {"event": "request", **self}.items()
        }


def _match(conditions: Mapping[str, Condition]) -> FactMatch:
    known = (*FACTS, *EVENT_FACTS)
    wrong = [
        Mismatch(text=unknown(name, known, "There is no fact"), path=(name,))
        for name in conditions
        if name != "event" and not is_fact(name)
    ]
    event = conditions.get("event", "request")
    if event not in EVENTS:
        text = unknown(event, EVENTS, "There is no event") if isinstance(event, str) else "Expected one event."
        wrong.append(Mismatch(text=text, path=("event",)))
    if wrong:
        refuse(*wrong)
    return FactMatch(conditions)


def holds(tests: Tests, observed: Mapping[str, Any]) -> bool:
    """Whether an observation passes all tests."""
    for name, test in tests.items():  # a loop takes half as long as `all` of a generator
        value = observed[name]
        if not test(value):
            return False
    return True


if TYPE_CHECKING:
    MatchForm = FactMatch
else:
    MatchForm = Annotated[dict[str, Single], AfterValidator(_match)]
FactName = Annotated[str, Reads(_fact, {"type": "string"})]
Within = Annotated[timedelta | str, Reads(_within, {"type": "string"})]


@dataclass(frozen=True, slots=True)
class Belief:
    """What the TPP claims of a payment (`state`) or an account (`balance` and `transactions`), and what is true.

    None: it claims nothing. `since`: the bank time (seconds since 1970) from which on an account is as it is.
    """

    claimed: Mapping[str, Any]
    true: Mapping[str, Any]
    since: float = 0.0

    @property
    def text(self) -> str:
        """The claim and the truth, in a sentence."""
        claimed, true = self.claimed, self.true
        if "state" in true:
            return f"It claims that the payment is {claimed['state']}; it is {true['state']}."
        return (
            f"It claims {claimed['balance']} and {claimed['transactions']} transactions; "
            f"the account has {true['balance']} and {true['transactions']}."
        )

    def holds(self, claim: Mapping[Member, Any]) -> bool | None:
        """Whether it meets the `claim` of a check; None if the TPP claims nothing, or the payment has changed since."""
        member, wanted = next(iter(claim.items()), ("", None))
        claimed, true = self.claimed.get(member), self.true.get(member)
        if isinstance(wanted, Operators):
            return fits(wanted, claimed, strict=True)
        return None if claimed is None or wanted not in ("ledger", true) else bool(claimed == true)


def state_of(status: str) -> str:
    """The state of a payment with this transactionStatus."""
    if status == "ACSC":
        return "paid"
    return "failed" if status in ("RJCT", "CANC") else "open"


def decimal(value: Any) -> Decimal | None:
    """The decimal number in a string; None for anything else."""
    return number(value) if isinstance(value, str) else None


Group = Literal["signing", "authentication", "accounts", "payments", "robustness"]
GROUPS: tuple[Group, ...] = get_args(Group)


class _CheckModel(Model):
    """A part of the file of a check; its members are written in snake_case."""

    model_config = ConfigDict(alias_generator=None)


class Clause(_CheckModel):
    """One expectation; exactly one of KINDS."""

    itself: MatchForm | None = None
    next: MatchForm | None = None
    each: MatchForm | None = None
    never: MatchForm | None = None
    at_most: int | None = Field(default=None, ge=0)
    from_link: bool | None = None
    claim: dict[Member, Single] | None = None
    seen: MatchForm | None = None
    of: MatchForm = Field(default_factory=FactMatch)
    by: list[FactName] = Field([])
    same: list[FactName] = Field([])
    differ: list[FactName] = Field([])
    within: Within | None = None
    clock: Literal["bank", "real"] = "bank"
    until: Annotated[list[MatchForm], BeforeValidator(_listed)] = Field([])
    text: str = ""

    @property
    def kind(self) -> str:
        """Which one of KINDS it has."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @cached_property
    def wants(self) -> Tests:
        """The tests that the occasion or an observation has to pass, or must not."""
        wanted = self.itself or self.next or self.each or self.never or FactMatch()
        tests = (wanted if self.from_link is None else FactMatch(linked=True)).tests
        return {name: test for name, test in tests.items() if self.kind not in AT_ONCE or name != "event"}

    @model_validator(mode="after")
    def _one_word(self) -> Clause:
        words = [word for word in KINDS if getattr(self, word) is not None]
        if len(words) != 1:
            refuse(Mismatch(text=f"Exactly one of {', '.join(KINDS)} is needed, not {' and '.join(words) or 'none'}."))
        return self


KINDS = ("itself", "next", "each", "never", "at_most", "from_link", "claim")
AT_ONCE = ("itself", "from_link")  # the clauses that the occasion itself decides


class Reaction(_CheckModel):
    """What a run does after a request: advance bank time, or let the customer leave, or withdraw the consent."""

    after: MatchForm
    advance: str | None = None
    customer: Literal["absent", "withdraws"] | None = None
    times: int = Field(default=1, ge=1, le=1000)


class Arm(_CheckModel):
    """How a run prepares the bank before the TPP starts.

    `task`: what the TPP has to do (`BANK_TASK`); `psu`: what the customer does at each SCA; `transactions`: how many
    more the customer's first account has.
    """

    task: Literal["pay", "pay-and-cancel", "read", "read-unattended"] = "pay"
    psu: Literal["approve", "reject", "abandon", "foreign-return", "approve-slowly"] = "approve"
    context: Literal["PRIVATE", "CORPORATE"] = "PRIVATE"
    rules: list[dict[str, Any]] = Field([])
    settings: dict[str, Any] = Field({})
    clock: list[Reaction] = Field([])
    transactions: int = Field(default=0, ge=0, le=10_000)


class Check(_CheckModel):
    """A check. `check` is its name, `role` the TPPs that it is for, `group` its part of reports and of `--group`.

    `practice`: what real banks do; `advice`: what a good TPP does; `spec`: page and anchor in the manual.
    """

    check: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{2,60}$")
    about: str = Field(min_length=10, max_length=200)
    practice: str = Field(min_length=10, max_length=400)
    advice: str = Field(min_length=10, max_length=400)
    level: Literal["must", "should"]
    group: Group
    role: Literal["PISP", "AISP", "any"]
    spec: str
    arm: Arm = Field(default_factory=lambda: Arm.model_validate({}))
    seen: MatchForm
    expect: Annotated[list[Clause], BeforeValidator(_listed)]


def read(text: str, file: str) -> Check:
    """The check in the text of a file; raises InputRefused with every problem."""
    value, origin = parsed(text, file)
    check, problems = validate(Check, value)
    if check is not None and f"{check.check}.yaml" != file:
        problems = [Problem(("check",), f"The name of the check is {check.check}, but not that of the file.")]
    if check is None or problems:
        raise origin.refused(problems)
    return check


@cache
def ready() -> tuple[Check, ...]:
    """The checks of this package, by group and name; raises InputRefused for a file that cannot be used."""
    checks = [read(text_of(file, file.name), file.name) for file in FOLDER.glob("*.yaml")]
    return tuple(sorted(checks, key=lambda check: (GROUPS.index(check.group), check.check)))
