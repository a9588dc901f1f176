"""The kinds of faults of a schedule: their common form, and one file each in this folder.

A file defines `FAULT`. Its form says what a schedule has to name; from that follow rules and settings of the bank, or
changes of it after a request. To draw a new effect of scenarios, add a file that names it in `effects`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from emulator.api.operations import table
from emulator.bank.validation import Model, one_of
from emulator.discovery import discover

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

# The operations that tasks use; faults are drawn for those of the drawn tasks.
WRITES = (
    *("createPayment", "startAuthorisation", "deletePayment", "startCancellationAuthorisation"),
    *("createSigningBasket", "createConsent"),
)
READS = (
    *("getPaymentStatus", "getTransactions", "getBalances", "getAccounts", "getPayment"),
    *("getSigningBasketStatus", "getSigningBasket"),
)
REQUESTS = (*READS, *WRITES)
MOST = 1000  # the highest number of a request that a fault may name
LATEST = 6  # the highest that is drawn

Operation = Annotated[str, one_of("operation", tuple(row.id for row in table()))]
Number = Annotated[int, Field(ge=1, le=MOST)]


@dataclass(frozen=True, slots=True)
class LaterChange:
    """A change of the bank (`start` of a scenario) after request number `at` for an operation."""

    of: str
    at: int
    start: Mapping[str, Any]


class PlannedFault(Model):
    """A fault of a schedule. `fault` is the name of its kind."""

    model_config = ConfigDict(alias_generator=None)
    noun: ClassVar[str] = ""

    fault: str

    def rules(self) -> Iterable[dict[str, Any]]:
        """The rules of the bank that cause it."""
        return ()

    def settings(self) -> Mapping[str, Any]:
        """The settings of the bank that cause it; lists of several faults are joined."""
        return {}

    def changes(self) -> Sequence[LaterChange]:
        """The changes of the bank that cause it."""
        return ()

    def described(self) -> str:
        """What happens, for people."""
        raise NotImplementedError


class RequestFault(PlannedFault):
    """A fault of the requests number `at` to `at + count - 1` for the operation `of`."""

    of: Operation
    at: Number = 1
    count: Annotated[int, Field(ge=1, le=20)] = 1

    def then(self) -> dict[str, Any]:
        """The effects on each of these requests."""
        raise NotImplementedError

    def rules(self) -> Iterable[dict[str, Any]]:
        # A rule whose effects an earlier one has taken does not count the request: the latest number comes first.
        for number in reversed(range(self.at, self.at + self.count)):
            name = f"{self.fault}: {self.of} {number}"
            yield {"name": name, "when": {"operation": self.of}, "times": {"at": number}, "then": self.then()}

    def numbers(self) -> str:
        """The requests in words."""
        last = self.at + self.count - 1
        return f"{self.of} {self.at}" if last == self.at else f"{self.of} {self.at} to {last}"


class ChangeFault(PlannedFault):
    """A change of the bank after request number `at` for the operation `of`."""

    of: Operation
    at: Number = 1

    def start(self) -> dict[str, Any]:
        """The change, as `start` of a scenario."""
        raise NotImplementedError

    def changes(self) -> Sequence[LaterChange]:
        return (LaterChange(self.of, self.at, self.start()),)


Draw = Callable[[Sequence[str]], "SearchStrategy[Any]"]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault, as its file declares it.

    `effects`: the effects of scenarios that it draws (`then`, `feed: NAME`, `change: NAME`); `form`: its members;
    `draw`: the strategy of its members beside `fault`, given the operations that the TPP uses; `operations`: it is
    drawn where the TPP uses one of these; `spoils`: the TPP cannot use the answer; `example`: a shrunk one; `weight`:
    how often it is drawn, 1 if its values are few.
    """

    name: str
    summary: str
    effects: Collection[str]
    form: type[PlannedFault]
    draw: Draw
    example: Mapping[str, Any]
    operations: Collection[str] = REQUESTS
    spoils: bool = False
    weight: int = 1


def drawn(operations: Sequence[str], **members: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """The members of a fault of one of these operations: its number, and these."""
    from hypothesis import strategies as st

    numbers = st.one_of(st.just(1), st.integers(1, 3), st.integers(1, LATEST))
    return st.fixed_dictionaries({"of": st.sampled_from(operations), "at": numbers, **members})


def repeated(operations: Sequence[str], **members: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """`drawn`, of up to four requests in sequence."""
    from hypothesis import strategies as st

    return drawn(operations, count=st.integers(1, 4), **members)


def _problem(fault: object) -> str | None:
    return None if isinstance(fault, FaultKind) and fault.name else "has no FAULT of the class FaultKind with a name"


@cache
def kinds() -> dict[str, FaultKind]:
    """Every kind of fault by name."""
    return discover(__path__, __name__, "FAULT", name=lambda fault: fault.name, problem=_problem)
