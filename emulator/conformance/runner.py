"""Runs the checks (`conformance run`, judge-your-client.md).

For each check it creates and prepares a bank, starts the TPP, acts as the customer, advances bank time, and then judges
the check. It only uses the control interface of a running bank, so the TPP sees nothing but a normal bank.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from emulator.conformance.check import Check, Reaction, holds
from emulator.conformance.program import Program, RunFailed, awaited, claims_of, credentials, visit
from emulator.conformance.report import report
from emulator.failure import Refused
from emulator.scenario.transport import Transport, TransportFailed

POLL_INTERVAL = 0.02  # seconds
ANSWER_SECONDS = 60.0  # for an answer of the bank
MOST_DAYS = 80  # before today, on which an arm adds transactions: a list shows 90 days


BankControl = Callable[..., Any]
"""The control interface of one bank, as `Transport.ask`."""
PROBLEMS = (RunFailed, TransportFailed, Refused)  # of one check
Connect = Callable[[str], Transport]
"""Gives the bank at a base address."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run the TPP: `jobs` checks at the same time, or `by_hand`, which asks a person for each of them.

    {check} in the address of its claims stands for the name of the check.
    """

    program: Program
    by_hand: Callable[[Check, Mapping[str, str]], None] | None = None
    jobs: int = 1


@dataclass(slots=True)
class CheckRun:
    """The verdict of one check, as a row of the report, problems of its run, and whether the TPP sent a request."""

    row: dict[str, Any]
    problems: list[str] = field(default_factory=list)
    reached: bool = False


def run(checks: Iterable[Check], base: str, plan: Plan, connect: Connect) -> Generator[CheckRun]:
    """Run the checks on the bank at `base`; yields their outcomes in order.

    Raises TransportFailed if that bank cannot be reached; problems of one check are in its outcome.
    """
    process = connect(base)
    _ = process.ask("GET", "/clock")["now"]  # a program that is no bank has none

    def outcome(check: Check) -> CheckRun:
        try:
            return _run(check, process.ask, plan, connect)
        except PROBLEMS as problem:
            return CheckRun(report([check], {})["checks"][0], [str(problem)])

    if plan.by_hand is not None:  # a person runs the TPP, and is asked by this thread
        yield from map(outcome, checks)
        return
    # A signal that arrives while this thread starts a command would leave that behind.
    with ThreadPoolExecutor(plan.jobs, thread_name_prefix="check") as pool:
        try:
            yield from map(awaited, [pool.submit(outcome, check) for check in checks])
        except BaseException:  # Ctrl+C, or nobody wants the others
            plan.program.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def silence(outcomes: Sequence[CheckRun]) -> str | None:
    """What is to be said if the TPP has sent no request in any check, so that nothing was judged."""
    if any(outcome.reached for outcome in outcomes):
        return None
    problem = next((problem for outcome in outcomes for problem in outcome.problems), "")
    return f"the TPP sent no request in any check{f': {problem}' if problem else ''}"


def _run(check: Check, process: BankControl, plan: Plan, connect: Connect) -> CheckRun:
    name = f"check-{check.check}"[:63]
    settings = {"links": "absolute", "progression": "immediate", "weather": "calm", **check.arm.settings}
    answer = process("PUT", f"/banks/{name}", {"settings": settings, "clock": "live", "tpp": {"name": name}})
    try:
        bank = connect(answer["baseUrl"]).ask
        arm(check, bank)
        with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
            files = credentials(Path(folder), answer["tpp"]["certificate"], answer["tpp"]["key"])
            person, other, debtor = persons_of(bank("GET", "/people")["people"], check.arm.context)
            environment = {
                "BANK_URL": answer["baseUrl"],
                "BANK_CHECK": check.check,
                "BANK_TASK": check.arm.task,
                **files,
                "BANK_CONTEXT": check.arm.context,
                "BANK_NATIONAL_ID": person,
                "BANK_DEBTOR": debtor,
            }
            customer = SimulatedCustomer(check, bank, answer["tpp"]["tppId"], person, other)
            problems = _drive(check, plan, environment, customer)
            return _judged(check, bank, plan, problems, reached=customer.saw_requests)
    finally:
        with suppress(*PROBLEMS):
            process("DELETE", f"/banks/{name}")


def arm(check: Check, bank: BankControl) -> None:
    """Prepare a bank for a check: its rules, and more transactions of the customer's first account."""
    for rule in reversed(check.arm.rules):
        bank("POST", "/rules", rule)
    if check.arm.transactions:
        *_, account = persons_of(bank("GET", "/people")["people"], check.arm.context)
        added = []
        for number, first in enumerate(range(0, check.arm.transactions, MOST_DAYS), start=1):
            amounts = [f"{number}.00", f"-{number}.00"] * (MOST_DAYS // 2)
            daily = {"date": "-1d", "every": "1d", "amounts": amounts[: check.arm.transactions - first]}
            added.append({"account": account, "name": "Prøveblad Blomster", **daily})
        start = {"from": "current", "add": {"transactions": added}}
        bank("POST", "/scenario", {"scenario": "more-transactions", "start": start})


def persons_of(people: Sequence[Mapping[str, Any]], context: str) -> tuple[str, str, str]:
    """The identity numbers of the customer of a run and of somebody else, and the IBAN that the customer pays from."""
    corporate = [person for person in people if person["agreements"]]
    private = [person for person in people if person["accounts"] and not person["agreements"]]
    chosen = next(iter(corporate if context == "CORPORATE" else private), None)
    if chosen is None:
        raise RunFailed(f"the bank has no person for the context {context}")
    others = [person["nationalId"] for person in people if person is not chosen]
    if not others:
        raise RunFailed("the bank has one person, and the checks need somebody else too")
    debtor = next((account["iban"] for account in chosen["accounts"]), "")
    return chosen["nationalId"], others[0], debtor


def _drive(check: Check, plan: Plan, environment: Mapping[str, str], customer: SimulatedCustomer) -> list[str]:
    """Run the TPP, and act as the customer meanwhile; returns problems. Ends with the TPP or at the timeout."""
    if plan.by_hand is not None:
        plan.by_hand(check, environment)
        customer.play()
        return []
    deadline = time.monotonic() + plan.program.timeout

    def accompany(ended: Future[Any]) -> bool:
        while not ended.done() and time.monotonic() < deadline:
            customer.play()
            if plan.program.stopped.wait(POLL_INTERVAL):
                raise RunFailed("the run was stopped")
        customer.play()
        return False

    ending = plan.program.run(environment, accompany)
    if ending.problem is None:
        return []
    lines = ending.printed.splitlines()
    return [ending.problem, *(lines if len(lines) > 1 else ())]


@dataclass(slots=True)
class SimulatedCustomer:
    """Acts as the customer and advances bank time, as the check says, in reaction to the requests of the TPP.

    `visit` opens an address of the TPP; `clock` gives real time in seconds.
    """

    check: Check
    bank: BankControl
    tpp_id: str
    person: str
    other: str
    visit: Callable[[str], None] = visit
    clock: Callable[[], float] = time.monotonic
    present: bool = True
    _opened_at: dict[str, float] = field(default_factory=dict)
    _done: set[str] = field(default_factory=set)
    _newest: int = 0
    _taken: Counter[int] = field(default_factory=Counter)  # of each step of the check, how often it was taken

    @property
    def saw_requests(self) -> bool:
        """Whether the TPP has sent anything to the bank."""
        return self._newest > 0

    def play(self) -> None:
        """Complete every SCA whose page was opened, and take the steps that are due."""
        opened = set(self.bank("GET", "/conformance/opened")["opened"]) - self._done
        for sca in self.bank("GET", "/sca?limit=100")["sca"] if opened else ():
            if sca["status"] == "started" and sca["id"] in opened:
                self._authenticate(sca)
        entries = self.bank("GET", "/requests?limit=1")["requests"]
        if entries and int(entries[0]["id"]) > self._newest:  # mostly there is nothing new
            entries = self.bank("GET", "/requests?limit=200")["requests"]
        for entry in sorted(entries, key=lambda one: int(one["id"])):
            if int(entry["id"]) > self._newest:
                self._newest = int(entry["id"])
                self._after(entry["id"])

    def _authenticate(self, sca: Mapping[str, Any]) -> None:
        arm, identity = self.check.arm, sca["id"]
        first = self._opened_at.setdefault(identity, self.clock())
        if arm.psu == "abandon" or (arm.psu == "approve-slowly" and self.clock() - first < 1.0):
            return
        self._done.add(identity)
        action, body = "approve", {"nationalId": self.person, "context": arm.context}
        if arm.psu == "reject":
            action, body = "reject", {}
        if arm.psu == "foreign-return":
            self._forge(sca)
        redirect = self.bank("POST", f"/sca/{quote(identity)}/{action}", body)["redirect"]
        self.visit(redirect)

    def _forge(self, sca: Mapping[str, Any]) -> None:
        """Send a browser to the TPP with the psu-id of somebody else, as if from another flow."""
        foreign = self.bank("POST", "/sessions", {"tpp": self.tpp_id, "nationalId": self.other})
        parts = urlsplit(sca["redirectUri"])
        query = [(name, f"{value}-of-another-flow") for name, value in parse_qsl(parts.query)]
        query += [("psu-id", foreign["psuId"]), ("tpp-session-id", foreign["tppSessionId"]), ("context", "PRIVATE")]
        redirect = urlunsplit(parts._replace(query=urlencode(query)))
        self._report({"event": "return", "redirect": redirect, "forged": True})
        self.visit(redirect)

    def _report(self, observation: Mapping[str, Any]) -> None:
        self.bank("POST", "/conformance/observations", {"tpp": self.tpp_id, **observation})

    def _after(self, identity: str) -> None:
        """Take the steps that follow a request."""
        for number, step in enumerate(self.check.arm.clock):
            if self._taken[number] < step.times:
                names = quote(",".join(step.after))
                facts = self.bank("GET", f"/conformance/facts/{identity}?names={names}")["facts"]
                if holds(step.after.tests, {"event": "request", **facts}):
                    self._taken[number] += 1
                    self._take(step)

    def _take(self, step: Reaction) -> None:
        if step.customer == "absent":
            self.present = False
            self._report({"event": "customer", "present": False})
        elif step.customer == "withdraws":
            for consent in self.bank("GET", "/consents?limit=1")["consents"]:
                self.bank("POST", f"/consents/{consent['consentId']}/revoke")
        if step.advance is not None:
            self.bank("POST", "/clock/advance", {"by": step.advance})


def _judged(check: Check, bank: BankControl, plan: Plan, problems: list[str], *, reached: bool) -> CheckRun:
    if plan.program.claims is not None:
        address = plan.program.claims.replace("{check}", check.check)
        beliefs, unanswered = claims_of(address, bank("GET", "/conformance/claims"))
        bank("PUT", "/conformance/claims", {"beliefs": beliefs})
        problems += unanswered
    shown = bank("GET", "/conformance")
    row = next(row for row in shown["checks"] if row["check"] == check.check)
    return CheckRun(row, problems, reached)
