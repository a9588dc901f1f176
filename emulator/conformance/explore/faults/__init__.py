"""The kinds of faults of a schedule: their common form, and in the files of this folder one class each.

The members of a kind are what a schedule has to name; from them follow rules and settings of the bank, or changes of it
after a request. To draw a new effect of scenarios, add a kind that names it in `effects`, and the values of its members
in `draws`. `python -m tests.docs.sections` writes the table in find-the-fault.md; `tests/explore/test_schedule.py`
plays the `example` of each kind with the task `pay`, or with `read` for the operations and kinds that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from emulator.api.operations import table
from emulator.bank.validation import Model, one_of
from emulator.discovery import modules

MOST = 1000  # the highest number of a request that a fault may name
COUNTS = (1, 2, 3, 4)  # requests in sequence, as they are drawn

Operation = Annotated[str, one_of("operation", tuple(row.id for row in table()))]
Number = Annotated[int, Field(ge=1, le=MOST)]
Pick = Callable[[Sequence[Any]], Any]  # draws one of these, the first if it does not matter


class PlannedFault(Model):
    """A fault of a schedule; `fault` is the name of its kind. Each class with a `name` is a kind:

    `effects`: the effects of scenarios that it draws (`then`, `feed: NAME`, `change: NAME`); `draws`: the values of its
    members, or how to draw one, simple ones first; those of Literal and bool are all drawn, None is left out;
    `operations`: those that it is drawn for, () for all; `spoils`: the TPP cannot use the answer; `example`: a shrunk
    one; `weight`: how often it is drawn, 1 if its values are few.
    """

    model_config = ConfigDict(alias_generator=None)

    name: ClassVar[str]
    summary: ClassVar[str]
    effects: ClassVar[Collection[str]]
    example: ClassVar[Mapping[str, Any]]
    draws: ClassVar[Mapping[str, Sequence[Any] | Callable[[Pick], Any]]] = {}
    operations: ClassVar[Collection[str]] = ()
    spoils: ClassVar[bool] = False
    weight: ClassVar[int] = 1

    fault: str

    def rules(self) -> Iterable[dict[str, Any]]:
        """The rules of the bank that cause it."""
        return ()

    def settings(self) -> Mapping[str, Any]:
        """The settings of the bank that cause it; lists of several faults are joined."""
        return {}

    def described(self) -> str:
        """What happens, for people."""
        raise NotImplementedError


class NumberedFault(PlannedFault):
    """A fault at request number `at` for the operation `of`."""

    of: Operation
    at: Number = 1


class RequestFault(NumberedFault):
    """A fault of the requests number `at` to `at + count - 1`."""

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


class ChangeFault(NumberedFault):
    """A change of the bank after that request."""

    def start(self, debtor: str, number: str) -> dict[str, Any]:
        """The change, as `start` of a scenario; `debtor`: the account that the TPP is to pay from; `number`: of the
        change in its run."""
        raise NotImplementedError


@cache
def kinds() -> dict[str, type[PlannedFault]]:
    """Every kind of fault by name, in the order in which they are drawn."""
    every = [
        form
        for module in modules(__path__, __name__)
        for form in vars(module).values()
        if isinstance(form, type) and issubclass(form, PlannedFault) and form.__module__ == module.__name__
    ]
    return {form.name: form for form in sorted(every, key=attrgetter("name"))}
