"""A schedule: the document that says what happens to a TPP in one run, and its YAML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import yaml
from pydantic import ConfigDict, Field

from emulator.bank import products
from emulator.bank.problems import InputRefused, Problem, unknown
from emulator.bank.validation import Mismatch, Model, Omittable, Reads, refuse, union, validate
from emulator.explore.faults import ChangeFault, PlannedFault, kinds
from emulator.scenario import durations
from emulator.scenario.loader import from_value, parsed, text_of

Task = Literal["pay", "read", "pay-and-cancel", "basket", "pay-bulk", "read-unattended"]
TASKS: tuple[Task, ...] = get_args(Task)
Behaviour = Literal["approve", "decline", "leave", "late", "twice", "somebody-else"]
BEHAVIOURS: tuple[Behaviour, ...] = get_args(Behaviour)
Begins = Literal["now", "midnight", "month-end"]
BEGINS: tuple[Begins, ...] = get_args(Begins)
MOST_TASKS = 5
MOST_PASSING = 400  # days

# About how many requests a TPP sends for each task, by operation: faults are drawn for those.
REQUESTS: Mapping[Task, Mapping[str, int]] = {
    "pay": {"getPaymentStatus": 4, "createPayment": 1},
    "read": {"getTransactions": 6, "getBalances": 2, "getAccounts": 2},
    "pay-and-cancel": {
        "getPaymentStatus": 4,
        "createPayment": 1,
        "deletePayment": 1,
        "startCancellationAuthorisation": 1,
    },
    "basket": {
        "getPaymentStatus": 6,
        "createPayment": 2,
        "createSigningBasket": 1,
        "getSigningBasketStatus": 2,
        "getAccounts": 2,
        "getBalances": 1,
    },
    "pay-bulk": {"getPaymentStatus": 4, "createPayment": 1},
    "read-unattended": {"getTransactions": 4, "getAccounts": 2},
}


def _passes(value: Any) -> str:
    length = durations.exact(value)
    if length is None:
        raise Mismatch(durations.expected(value, calendar=False))
    if length.days > MOST_PASSING:
        raise Mismatch(text=f"At most {MOST_PASSING} days were expected.")
    return str(value)


class _Part(Model):
    model_config = ConfigDict(alias_generator=None)


class Passing(_Part):
    """Bank time that passes after the TPP's request number `after`."""

    after: Annotated[int, Field(ge=1, le=10_000)]
    passes: Annotated[str, Reads(_passes, {"type": "string"})]


def _no_fault(value: Any) -> Any:
    if not isinstance(value, dict):
        raise Mismatch("a mapping")
    name = value.get("fault", "")
    refuse(Mismatch(text=unknown(str(name), kinds(), "There is no fault"), path=("fault",)))


def _kind(value: Any) -> str:
    return str(value.get("fault") if isinstance(value, dict) else getattr(value, "fault", None))


if TYPE_CHECKING:
    AnyFault = PlannedFault
else:
    AnyFault = union(kinds(), _kind, refused=_no_fault)


class FaultSchedule(_Part):
    """What happens to a TPP in one run.

    `begins`: bank time at the start (now, or shortly before the end of today or of the month); `customer`: what the
    customer does at each SCA, then `approve`; `restarts`: the numbers of requests after which the command is killed and
    started again; `seed`: of the bank; `found`: what a saved schedule has found.
    """

    found: Omittable[str] = None
    tasks: Annotated[list[Task], Field(min_length=1, max_length=MOST_TASKS)]
    begins: Begins = "now"
    customer: Annotated[list[Behaviour], Field(max_length=50)] = Field([])
    faults: Annotated[list[AnyFault], Field(max_length=50)] = Field([])
    time: Annotated[list[Passing], Field(max_length=50)] = Field([])
    restarts: Annotated[list[Annotated[int, Field(ge=1, le=10_000)]], Field(max_length=50)] = Field([])
    seed: Annotated[int, Field(ge=0, le=10**18)] = 0

    def document(self) -> dict[str, Any]:
        """As JSON of the same structure as its YAML; what is as it is anyway is left out."""
        shown = self.model_dump(mode="json", exclude_none=True, serialize_as_any=True)
        return {name: value for name, value in shown.items() if name == "tasks" or value not in ([], 0, "now")}

    def text(self) -> str:
        return yaml.safe_dump(self.document(), sort_keys=False, allow_unicode=True, width=100)

    @property
    def key(self) -> str:
        """The same for schedules of the same content, whatever they have found."""
        document = self.document()
        document.pop("found", None)
        return json.dumps(document, sort_keys=True)

    @property
    def digest(self) -> str:
        """Eight characters that name it in a file name."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:8]


def read(text: str, source: str) -> FaultSchedule:
    """The schedule in a YAML text; raises InputRefused with every problem."""
    value, origin = parsed(text, source)
    schedule, problems = validate(FaultSchedule, value)
    if schedule is None or problems or (problems := list(_unfit(schedule))):
        raise origin.refused(problems)
    return schedule


def _unfit(schedule: FaultSchedule) -> Iterator[Problem]:
    """What no rule of the bank can do, or no product."""
    for number, fault in enumerate(schedule.faults):
        try:
            scenario = from_value({"scenario": "schedule", "start": {"from": "current"}, "rules": [*fault.rules()]})
        except InputRefused as refused:
            yield Problem(("faults", number), refused.problems[0].text)
            continue
        for rule in scenario.rules:
            reasons = [
                rule.unfit(one, product) for one in rule.when.operations for product in products.table().values()
            ]
            if reasons and all(reasons):
                yield Problem(("faults", number), next(iter(reasons[0].values())))
                break


def of(value: Mapping[str, Any]) -> FaultSchedule:
    """The schedule in a drawn value."""
    return FaultSchedule.model_validate(value)


def from_path(path: Path) -> list[tuple[Path, FaultSchedule]]:
    """The schedules of a file, or of the *.yaml files of a folder; raises InputRefused."""
    files = sorted(filter(Path.is_file, path.glob("*.yaml"))) if path.is_dir() else [path]
    if not files:
        raise InputRefused(str(path), [Problem((), "There is no schedule (*.yaml) in this folder.")])
    return [(file, read(text_of(file, str(file)), str(file))) for file in files]


def scenario_of(schedule: FaultSchedule, name: str) -> str:
    """A scenario (YAML) with the faults of a schedule; raises ValueError, a sentence, if it needs more than that.

    A scenario is applied at once to whatever the TPP does, so it has no customer, time, restarts, or changes later.
    """
    waits = [
        *(["customer"] if any(act != "approve" for act in schedule.customer) else []),
        *(["time"] if schedule.time else []),
        *(["begins"] if schedule.begins != "now" else []),
        *(["restarts"] if schedule.restarts else []),
        *(f"faults ({fault.fault})" for fault in schedule.faults if isinstance(fault, ChangeFault)),
    ]
    if waits:
        raise ValueError(f"{', '.join(waits)} cannot be part of a scenario that is applied at once")
    summary = "; ".join(fault.described() for fault in schedule.faults) or "No fault."
    document: dict[str, Any] = {"scenario": name, "summary": summary[:500], "start": {"from": "current"}}
    if changed := settings_of(schedule):
        document["start"]["settings"] = changed
    document["rules"] = rules_of(schedule)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def rules_of(schedule: FaultSchedule) -> list[dict[str, Any]]:
    """The rules of its faults, those of the latest requests first, each with a name of its own."""
    rules = [rule for fault in schedule.faults for rule in fault.rules()]
    rules.sort(key=lambda rule: -rule["times"].get("at", 0))  # see RequestFault.rules
    names: dict[str, int] = {}
    for rule in rules:
        names[rule["name"]] = number = names.get(rule["name"], 0) + 1
        if number > 1:
            rule["name"] += f" ({number})"
    return rules


def settings_of(schedule: FaultSchedule) -> dict[str, Any]:
    """The settings of its faults; lists are joined."""
    joined: dict[str, Any] = {}
    for fault in schedule.faults:
        for name, value in fault.settings().items():
            joined[name] = [*joined.get(name, []), *value] if isinstance(value, list) else value
    return joined
