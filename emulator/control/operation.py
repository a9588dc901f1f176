"""An operation of the control interface as a row of data, as in the TPP interface."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from typing_extensions import TypedDict

from emulator.api.messages import Request, Response, Stream
from emulator.api.operation import described
from emulator.api.query import QueryParameter
from emulator.api.service import BankService
from emulator.bank.bank import Bank
from emulator.bank.documents import Restored
from emulator.bank.errors import BankError, Message
from emulator.bank.problems import Problem
from emulator.ca import CertificateAuthority
from emulator.scenario.target import ScenarioTarget
from emulator.scenario.transport import Transport

LIMIT = QueryParameter("limit", "int", "At most that many.", minimum=1, maximum=1000, default=100)

Body = TypeVar("Body")


@dataclass(frozen=True, slots=True)
class BankSpec:
    """What a bank is made with: fixture (None: --fixtures), seed and the rest; `prepare` changes it before it is there,
    and what else it does is undone by the ExitStack if the bank is not made.

    `report` is called with the number of parts that are done while a large fixture is read, and of all parts.
    """

    fixture: str | None = None
    seed: int | None = None
    restored: Restored = field(default_factory=Restored)
    prepare: Callable[[BankService, ExitStack], None] = lambda *_: None
    report: Callable[[int, int], None] = lambda *_: None


class Banks(Protocol):
    """The banks of this process; `emulator.assemble` implements it."""

    def names(self) -> list[str]:
        """The names of all banks, the default one first."""

    def exists(self, name: str) -> bool:
        """Whether there is a bank of this name."""

    def making(self, name: str, spec: BankSpec) -> Generator[object, None, BankService]:
        """Create or replace a bank, a damaged one too, in steps between which other requests are answered."""

    def deleting(self, name: str) -> Generator[object, None, None]:
        """Delete a bank, in steps; CONFLICT for the default one, RESOURCE_UNKNOWN if it does not exist."""

    def home(self, name: str) -> str | None:
        """The address of the process that has the bank, if several share banks."""

    def publish_to_all(self, kind: str, name: str, status: str) -> None:
        """Publish an event about the process at every watched bank."""

    def transport(self) -> Transport:
        """A new, separate bank to play a story on."""


@dataclass(slots=True)
class ControlCall(Generic[Body]):
    """The argument of a handler: the bank, the parameters and the body of a request.

    `target_of` gives a bank with all that scenarios change; `body` is the validated body, `value` its JSON value, and
    `text` the text of a YAML body.
    """

    service: BankService
    banks: Banks
    authority: CertificateAuthority
    target_of: Callable[[BankService], ScenarioTarget]
    request: Request
    body: Body
    value: Any = None
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None

    @property
    def bank(self) -> Bank:
        return self.service.bank

    @property
    def scenario_target(self) -> ScenarioTarget:
        return self.target_of(self.service)

    def publish(self, kind: str, status: str) -> None:
        """Publish an event about a change of the whole bank."""
        self.bank.publish({"type": kind, "id": self.bank.name, "status": status, "at": self.bank.clock.stamp()})


def refusal(problems: Iterable[Problem]) -> BankError:
    """One FORMAT_ERROR with an entry for each problem of a body or scenario."""
    messages = []
    for problem in problems:
        place = f"Line {problem.line}, column {problem.column}: " if problem.line else ""
        messages.append(Message("FORMAT_ERROR", f"{place}{problem.text}", problem.where() or None))
    return BankError.several(messages)


class AnswerSpec(NamedTuple):
    """An answer of an operation: a description, and the type of its body, None if there is none."""

    text: str
    form: Any = None
    media: str = "application/json"


Answers = Mapping[int, str | tuple[Any, ...]]
"""By status a description, alone or with the members of an AnswerSpec.

Its form may also be the members of the body by name, `{"payments": list[Payment]}`.
"""

_typed_dict: Any = TypedDict  # the type checker knows the call with literals only


Json = Mapping[str, object]
Answer = Response | Stream | Json | None
Work = Generator[object, None, Answer]
Handler = Callable[[ControlCall[Any]], Answer | Work]
"""A handler gives the JSON of its answer, None for no body; its status is the first of the operation.

A handler that has to choose the status gives a Response. One of long work is a generator: other requests are answered
between its steps.
"""


@dataclass(frozen=True, slots=True)
class ControlOperation:
    """One operation; `path` follows /_emulator.

    `answers`: by status; refusals all have the form of an error. `body`: the form that validates the body, a type or
    `module:Name`; None if it takes no body. An empty body counts as {}. `yaml`: the body may also be application/yaml,
    and the handler validates it.
    """

    id: str
    method: str
    path: str
    summary: str
    description: str
    handler: Handler
    answers: Mapping[int, AnswerSpec]
    query: tuple[QueryParameter, ...] = ()
    body: Any = None
    example: Any = None
    yaml: bool = False


def operation(method: str, path: str, answers: Answers, **members: Any) -> Callable[[Handler], ControlOperation]:
    """Make an operation of its handler, see `described`; `members`: others of ControlOperation."""

    def complete(handler: Handler) -> ControlOperation:
        own = described(handler)

        def spec(answer: AnswerSpec) -> AnswerSpec:
            if not isinstance(answer.form, dict):
                return answer
            form = _typed_dict(f"{own['id'][0].upper()}{own['id'][1:]}Answer", answer.form)
            form.__doc__, form.__pydantic_config__ = answer.text, {"extra": "forbid"}
            return answer._replace(form=form)

        specs = {
            status: spec(AnswerSpec(answer) if isinstance(answer, str) else AnswerSpec(*answer))
            for status, answer in answers.items()
        }
        return ControlOperation(**own, method=method, path=path, answers=specs, **members)

    return complete
